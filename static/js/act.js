// Forms inside the transcript (stop, go on, confirm, withdraw): sent in place, answered in place.

import { warn } from "./announce.js";
import { post } from "./post.js";

export function actInPlace(root, { done }) {
  root.addEventListener("submit", async (event) => {
    const form = event.target.closest("form[data-act]");
    if (!form) return;
    event.preventDefault();
    if (form.dataset.sending) return;
    form.dataset.sending = "1";
    const answer = await post(form, event.submitter);
    delete form.dataset.sending;
    if (!answer.ok && answer.error) warn(answer.error);
    done(answer);
  });
}
