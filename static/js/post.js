// Sends a form as the browser would, and reads our answer as data.

const LOST = "The desk did not answer. Nothing was lost; try again.";

/** Returns { ok, ...data } or { ok: false, error }. */
export async function post(form, submitter) {
  const body = new FormData(form, submitter || undefined);
  // Where a browser without scripts is led afterwards; we stay.
  body.delete("next");
  const url = (submitter && submitter.getAttribute("formaction")) || form.action;
  try {
    const answer = await fetch(url, {
      method: "POST",
      body,
      headers: { Accept: "application/json" },
    });
    if (answer.redirected) {
      location.reload();
      return { ok: false, error: "" };
    }
    const data = await answer.json();
    return { ...data, ok: answer.ok };
  } catch {
    return { ok: false, error: document.body.dataset.lost || LOST };
  }
}
