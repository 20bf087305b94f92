// The conversation's events. EventSource sends Last-Event-ID by itself when it reconnects.

const KINDS = [
  "message", "message_edited", "message_removed", "run", "reset", "call", "review", "export",
  "stop", "delta", "reread",
];
const FIRST_WAIT = 1000;
const LONGEST_WAIT = 15000;

export class Stream {
  constructor(url, after, { event, lost, back }) {
    this.url = url;
    this.after = after;
    this.handlers = { event, lost, back };
    this.wait = FIRST_WAIT;
    this.isLost = false;
    // A browser may keep a dead line open for minutes; the machine knows better.
    window.addEventListener("offline", () => this.lose());
    window.addEventListener("online", () => this.reopen());
  }

  reopen() {
    this.close();
    this.open();
  }

  lose() {
    if (!this.isLost) this.handlers.lost();
    this.isLost = true;
  }

  open() {
    const separator = this.url.includes("?") ? "&" : "?";
    this.source = new EventSource(`${this.url}${separator}after=${this.after}`);
    this.source.onopen = () => this.opened();
    this.source.onerror = () => this.failed();
    for (const kind of KINDS) {
      this.source.addEventListener(kind, (frame) => this.received(kind, frame));
    }
  }

  close() {
    clearTimeout(this.timer);
    this.source?.close();
  }

  opened() {
    this.wait = FIRST_WAIT;
    if (this.isLost) this.handlers.back();
    this.isLost = false;
  }

  failed() {
    this.lose();
    // The browser gives up on an answer that is no stream; then we try again ourselves.
    if (this.source.readyState !== EventSource.CLOSED) return;
    this.source.close();
    this.timer = setTimeout(() => this.open(), this.wait);
    this.wait = Math.min(this.wait * 2, LONGEST_WAIT);
  }

  received(kind, frame) {
    // A lost connection also says "error" without data; ours always carry some.
    if (typeof frame.data !== "string") return;
    if (frame.lastEventId) this.after = frame.lastEventId;
    this.handlers.event(kind, JSON.parse(frame.data));
  }
}
