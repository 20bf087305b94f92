// The composer: sends without leaving the page, keeps the text when that fails.

import { warn } from "./announce.js";
import { Draft } from "./draft.js";
import { enterSends } from "./enter.js";
import { post } from "./post.js";
import { toEnd } from "./scroll.js";

export class Composer {
  constructor(form, { sent }) {
    this.form = form;
    this.field = form.elements.text;
    this.error = document.getElementById("composer-error");
    this.draft = new Draft(form.dataset.draft, this.field);
    this.sent = sent;
    this.sending = false;
    enterSends(this.field);
    form.addEventListener("submit", (event) => this.submit(event));
  }

  async submit(event) {
    event.preventDefault();
    if (this.sending || !this.field.value.trim()) return;
    this.sending = true;
    const text = this.field.value;
    const answer = await post(this.form, null);
    this.sending = false;
    this.show(answer.ok ? "" : answer.error);
    if (!answer.ok) return;
    // The key belongs to this text alone; the next one gets its own.
    this.form.elements.client_key.value = answer.client_key;
    if (this.form.elements.measure) this.form.elements.measure.checked = false;
    if (this.field.value === text) this.draft.clear();
    this.field.focus();
    this.sent(answer);
    toEnd();
  }

  /** Say why something beside the composer was not done; what is typed here stays as it is. */
  tell(text) {
    this.error.textContent = text;
  }

  /** Take over what was typed elsewhere and has lost its place there. */
  take(text, why) {
    const typed = this.field.value.trim();
    this.field.value = typed ? `${this.field.value}\n\n${text}` : text;
    this.draft.write();
    this.tell(why);
    warn(why);
    this.field.focus();
  }

  show(error) {
    this.error.textContent = error;
    this.field.toggleAttribute("aria-invalid", Boolean(error));
    if (error) this.field.setAttribute("aria-invalid", "true");
  }
}
