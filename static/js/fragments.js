// Fetches fragments one after the other, each kind and id once however often it was asked for.

import { place } from "./place.js";

export class Fragments {
  constructor(base, { placed, failed }) {
    this.base = base;
    this.placed = placed;
    this.failed = failed;
    this.waiting = new Map();
    this.busy = false;
  }

  /** Ask for a fragment; `done` runs in the same frame in which it is placed. */
  want(kind, id, done) {
    const key = `${kind}/${id}`;
    const before = this.waiting.get(key) || [];
    this.waiting.set(key, done ? [...before, done] : before);
    if (!this.busy) this.work();
  }

  async work() {
    this.busy = true;
    while (this.waiting.size) {
      const [key, done] = this.waiting.entries().next().value;
      this.waiting.delete(key);
      await this.fetch(key, done);
    }
    this.busy = false;
  }

  async fetch(key, done) {
    try {
      const html = await this.text(key);
      if (html === null) return;
      this.placed(() => {
        for (const id of place(html)) this.again(id, key);
        for (const then of done) then();
      });
    } catch {
      this.failed(key);
    }
  }

  async text(key) {
    const answer = await fetch(`${this.base}${key}/`, { headers: { "X-Fragment": "1" } });
    if (answer.redirected) location.reload();
    return answer.ok ? answer.text() : null;
  }

  /** Fetch the work of a run first when one of its parts came before it. */
  again(container, key) {
    const run = (container || "").match(/^(?:work|calls|cards|after)-(.+)$/);
    const work = run && `work/${run[1]}`;
    if (!work || work === key || document.getElementById(`work-${run[1]}`)) return;
    this.waiting.set(work, []);
    this.waiting.set(key, []);
  }
}
