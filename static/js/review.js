// The review page: shows at once when somebody else decided, and what came of it afterwards.

const card = document.querySelector("[data-card]");
const EVERY = 3000;

function untouched() {
  const inside = card.contains(document.activeElement) && document.activeElement !== card;
  const open = card.querySelector("details[open]");
  return !inside && !open;
}

async function look() {
  if (document.hidden) return;
  try {
    const answer = await fetch(card.dataset.card, { headers: { "X-Fragment": "1" } });
    if (!answer.ok || answer.redirected) return;
    const template = document.createElement("template");
    template.innerHTML = await answer.text();
    const fresh = template.content.firstElementChild;
    const decided = fresh.dataset.mark !== card.firstElementChild.dataset.mark;
    // Figures may wait until nobody is typing; a decision may not.
    if (decided && (untouched() || fresh.dataset.final)) card.replaceChildren(fresh);
    if (fresh.dataset.settled) clearInterval(timer);
  } catch {
    // The next look may succeed.
  }
}

const timer = setInterval(look, EVERY);

// Two clicks are one decision: the second would only be told so.
card.addEventListener("submit", (event) => {
  if (card.dataset.sent) event.preventDefault();
  card.dataset.sent = "1";
});
window.addEventListener("pageshow", () => { delete card.dataset.sent; });

card.addEventListener("keydown", (event) => {
  const field = event.target.closest("textarea, input");
  if (field && event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    field.form.requestSubmit();
  }
});
