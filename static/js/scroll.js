// Follows the end of the page only when the reader already is there.

const NEAR = 120;

function distance() {
  const page = document.documentElement;
  return page.scrollHeight - page.clientHeight - page.scrollTop;
}

export function toEnd() {
  document.documentElement.scrollTop = document.documentElement.scrollHeight;
}

/** Change the page with `change`; stay at the end if that is where the reader was. */
export function following(change) {
  const near = distance() < NEAR;
  change();
  if (near) toEnd();
}

/** Keep following while something grows by itself. */
export function followGrowth(target) {
  let near = true;
  document.addEventListener("scroll", () => { near = distance() < NEAR; }, { passive: true });
  target.addEventListener("grown", () => { if (near) toEnd(); });
}
