// After 8 s of work says how long it has taken, after 30 s that one may leave.

const SHOW = 8;
const LEAVE = 30;

function seconds(since) {
  return Math.max(0, Math.floor((Date.now() - Date.parse(since)) / 1000));
}

function update() {
  for (const run of document.querySelectorAll("[data-busy]")) {
    const passed = seconds(run.dataset.busy);
    const figure = run.querySelector("[data-elapsed]");
    const leave = run.querySelector("[data-leave]");
    if (figure && passed >= SHOW) {
      figure.hidden = false;
      figure.textContent = `${passed} s`;
    }
    if (leave) leave.hidden = passed < LEAVE;
  }
}

export function tellElapsed() {
  setInterval(update, 1000);
}
