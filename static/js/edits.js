// Changing a message that waits in line: in its place, and what is typed is never lost there.

import { post } from "./post.js";

const OPEN = "details[open] > form[data-edit]";
const GONE = "That message no longer waits in line. What you typed is here; send it as a new one.";

function state(form) {
  const field = form.elements.text;
  return {
    form,
    id: form.dataset.edit,
    text: field.value,
    changed: field.value !== field.defaultValue,
    focused: document.activeElement === field,
    from: field.selectionStart,
    to: field.selectionEnd,
  };
}

export class Edits {
  /** `done` gets each answer, `rescue` a text whose message was taken up, `away` the focus. */
  constructor(root, { done, rescue, away }) {
    this.root = root;
    this.handlers = { done, rescue, away };
    root.addEventListener("submit", (event) => this.submit(event));
    root.addEventListener("keydown", (event) => this.key(event));
    root.addEventListener("click", (event) => this.opened(event));
  }

  /** Change the page with `change`: an edit under way goes on in what replaces it. */
  keep(change) {
    const within = this.root.contains(document.activeElement);
    const edits = [...this.root.querySelectorAll(OPEN)].map(state);
    change();
    for (const edit of edits) this.restore(edit);
    if (within && document.activeElement === document.body) this.handlers.away();
  }

  restore(edit) {
    if (edit.form.isConnected) return;
    const form = this.root.querySelector(`form[data-edit="${CSS.escape(edit.id)}"]`);
    if (!form) {
      if (edit.changed) this.handlers.rescue(edit.text, GONE);
      return;
    }
    form.parentElement.open = true;
    const field = form.elements.text;
    if (edit.changed) field.value = edit.text;
    if (!edit.focused) return;
    field.focus({ preventScroll: true });
    field.setSelectionRange(edit.from, edit.to);
  }

  async submit(event) {
    const form = event.target.closest("form[data-edit]");
    if (!form) return;
    event.preventDefault();
    if (form.dataset.sending || !form.elements.text.value.trim()) return;
    form.dataset.sending = "1";
    const answer = await post(form, event.submitter);
    delete form.dataset.sending;
    form.querySelector(".error").textContent = answer.ok ? "" : answer.error;
    if (answer.ok) this.close(form);
    this.handlers.done(answer);
  }

  key(event) {
    const form = event.target.closest?.("form[data-edit]");
    if (!form || event.isComposing) return;
    if (event.key === "Escape") {
      form.reset();
      this.close(form);
    } else if (event.key === "Enter" && !event.shiftKey && event.target.name === "text") {
      event.preventDefault();
      form.requestSubmit();
    }
  }

  close(form) {
    form.parentElement.open = false;
    form.parentElement.querySelector("summary").focus({ preventScroll: true });
  }

  /** Opened by a person, not by us: then they want to type. */
  opened(event) {
    const details = event.target.closest("summary")?.parentElement;
    const field = details?.querySelector("form[data-edit] textarea");
    if (!field) return;
    setTimeout(() => {
      if (!details.open) return;
      field.focus();
      field.setSelectionRange(field.value.length, field.value.length);
    });
  }
}
