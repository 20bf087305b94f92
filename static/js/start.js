// The first page: Enter sends, a draft is kept, a second click sends nothing.

import { Draft } from "./draft.js";
import { enterSends } from "./enter.js";

const form = document.querySelector("form[data-draft]");
const draft = new Draft(form.dataset.draft, form.elements.text);
enterSends(form.elements.text);

form.addEventListener("submit", (event) => {
  if (form.dataset.sent) {
    event.preventDefault();
    return;
  }
  form.dataset.sent = "1";
  const typed = form.elements.text.value;
  // Forget the draft only once the page is really being left.
  window.addEventListener("pagehide", () => {
    if (!event.submitter?.name && typed) draft.clear();
  }, { once: true });
});

// Coming back through the history must leave the form usable.
window.addEventListener("pageshow", () => { delete form.dataset.sent; });
