// Puts server-rendered fragments where they belong: by their own id, else into the id they name.
// Messages and works, once there, stay: only what can change is replaced.

const STAYS = ["message", "work"];

function stays(id) {
  return STAYS.some((kind) => id.startsWith(`${kind}-`));
}

function keepOpen(old, fresh) {
  const details = old.querySelector("details");
  const twin = fresh.querySelector("details");
  if (details && twin) twin.open = details.open;
}

/** Return what should have the focus after `old` has gone, if the focus is inside it. */
function focusAfter(old, fresh) {
  const active = document.activeElement;
  if (!active || !old.contains(active)) return null;
  const same = active.id ? fresh.querySelector(`#${CSS.escape(active.id)}`) : null;
  return same || fresh.querySelector("[tabindex='-1']") || fresh.querySelector("summary, a, button");
}

function replace(old, fresh) {
  keepOpen(old, fresh);
  const focus = focusAfter(old, fresh);
  old.replaceWith(fresh);
  if (focus) focus.focus({ preventScroll: true });
}

function insertOrdered(into, fresh) {
  const order = Number(fresh.dataset.order || Infinity);
  const after = [...into.children].find((child) => Number(child.dataset.order || 0) > order);
  into.insertBefore(fresh, after || null);
}

/** Drop ids that the fresh fragment brings along and that stand elsewhere: they have moved. */
function moveAway(fresh) {
  for (const part of fresh.querySelectorAll("[id]")) {
    const old = document.getElementById(part.id);
    if (old) old.remove();
  }
}

/**
 * Place every element of a fragment.
 * Returns the ids of containers that are missing, for the caller to fetch first.
 */
export function place(html) {
  const template = document.createElement("template");
  template.innerHTML = html;
  const missing = [];
  for (const fresh of [...template.content.children]) {
    const old = document.getElementById(fresh.id);
    if (old && stays(fresh.id)) continue;
    if (old) {
      replace(old, fresh);
      continue;
    }
    const into = document.getElementById(fresh.dataset.into);
    if (!into) {
      missing.push(fresh.dataset.into);
      continue;
    }
    moveAway(fresh);
    insertOrdered(into, fresh);
  }
  return missing;
}
