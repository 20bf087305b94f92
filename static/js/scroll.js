// Follows the end of the page until the reader scrolls up, and again once they are back at the end.

const NEAR = 120;
const page = document.documentElement;

let stick = true;
let last = 0;

function distance() {
  return page.scrollHeight - page.clientHeight - page.scrollTop;
}

export function toEnd() {
  stick = true;
  page.scrollTop = page.scrollHeight;
}

/** Change the page with `change`; stay at the end if that is where the reader was. */
export function following(change) {
  change();
  if (stick) toEnd();
}

/** Keep following while the page grows by itself: cards that arrive, text that streams. */
export function followGrowth(target) {
  document.addEventListener("scroll", () => {
    const top = page.scrollTop;
    // Only the reader scrolls up; what grows below them is not their leaving the end.
    if (distance() < NEAR) stick = true;
    else if (top < last - 2) stick = false;
    last = top;
  }, { passive: true });
  const keep = () => { if (stick) toEnd(); };
  target.addEventListener("grown", keep);
  new ResizeObserver(keep).observe(document.body);
}
