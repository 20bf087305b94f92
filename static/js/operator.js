// The operators' page: shows every few seconds how things stand, unless somebody is at a button.

const standing = document.getElementById("standing");
const EVERY = 5000;

async function look() {
  if (document.hidden || standing.contains(document.activeElement)) return;
  try {
    const answer = await fetch(standing.dataset.standing);
    if (!answer.ok || answer.redirected) return;
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.getElementById("standing");
    // Somebody may have come to a button while the answer was on its way.
    if (fresh && !standing.contains(document.activeElement)) {
      standing.replaceChildren(...fresh.childNodes);
    }
  } catch {
    // The next look may succeed; the time on the page says how old it is.
  }
}

setInterval(look, EVERY);
