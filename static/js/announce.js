// What a screen reader is told beside the transcript: few sentences, never the same one twice.

const status = document.getElementById("status");
const alertNode = document.getElementById("alert");
const QUIET = 10000;
let last = 0;

export function say(text) {
  if (status.textContent === text) return;
  status.textContent = text;
  last = Date.now();
}

/** Say it only when nothing was said for a while: progress must not talk all the time. */
export function sayQuietly(text) {
  if (Date.now() - last > QUIET) say(text);
}

export function warn(text) {
  alertNode.textContent = text;
}
