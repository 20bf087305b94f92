// Sends a form as the browser would, and reads our answer as data.

const LOST = "The desk did not answer. Nothing was lost; try again.";
const ODD = "The desk refused this without a reason. Reload this page; what you typed is kept.";

/** Read what was answered; a page instead of data comes from something between us and the desk. */
async function read(answer) {
  try {
    const data = await answer.json();
    return answer.ok ? { ...data, ok: true } : { ...data, ok: false, error: data.error || ODD };
  } catch {
    return { ok: false, error: answer.ok || answer.status > 500 ? LOST : ODD };
  }
}

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
    return await read(answer);
  } catch {
    return { ok: false, error: document.body.dataset.lost || LOST };
  }
}
