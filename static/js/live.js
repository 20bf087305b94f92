// Text that is still being written, outside the live region: a screen reader hears it once, whole.

// The same signs that the server does not show; one for one, so that places in the text stay.
const UNSHOWN = /[\u0000-\u0008\u000b\u000c\u000e-\u001f\u007f-\u009f\u202a-\u202e\u2028\u2029\u2066-\u2069\ufeff]/g;

export class Live {
  constructor(place, template) {
    this.place = place;
    this.template = template;
    this.node = null;
    this.run = null;
    this.pending = "";
    this.length = 0;
  }

  /** Add text; many pieces within one frame are one change of the page. */
  add(run, text, at) {
    if (this.run !== run || at === 0) this.clear();
    this.run = run;
    // What was restored after a reload may come once more as a piece.
    const fresh = text.slice(Math.max(0, this.length - (at ?? this.length)));
    if (!fresh) return;
    this.length += fresh.length;
    if (!this.pending) requestAnimationFrame(() => this.flush());
    this.pending += fresh;
  }

  flush() {
    if (!this.pending) return;
    if (!this.node) {
      this.node = this.template.content.firstElementChild.cloneNode(true);
      this.place.replaceChildren(this.node);
    }
    this.node.querySelector(".message-text").append(this.pending.replace(UNSHOWN, "\ufffd"));
    this.pending = "";
    this.place.dispatchEvent(new CustomEvent("grown", { bubbles: true }));
  }

  clear(run) {
    if (run && run !== this.run) return;
    this.pending = "";
    this.length = 0;
    this.node = null;
    this.run = null;
    this.place.replaceChildren();
  }
}
