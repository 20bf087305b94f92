// The chat page: wires stream, fragments, live text and composer. Every fact is on the server.

import { actInPlace } from "./act.js";
import { say, sayQuietly } from "./announce.js";
import { Composer } from "./composer.js";
import { Edits } from "./edits.js";
import { tellElapsed } from "./elapsed.js";
import { Fragments } from "./fragments.js";
import { chatKeys } from "./keys.js";
import { Live } from "./live.js";
import { reread } from "./reread.js";
import { following, followGrowth, toEnd } from "./scroll.js";
import { signedIn } from "./session.js";
import { Stream } from "./stream.js";

const page = document.querySelector("[data-chat]");
const place = document.getElementById("live");
const lost = document.getElementById("line-lost");
const words = {
  working: "Working.",
  ready: "Answer ready.",
  approval: "Approval needed.",
  edited: "Message changed.",
  removed: "Message removed.",
};

const live = new Live(place, document.getElementById("live-message"));
const fragments = new Fragments(page.dataset.fragments, {
  placed: (change) => edits.keep(() => following(change)),
  failed: () => {},
});

const handlers = {
  message(data) {
    const done = data.role === "assistant" ? () => live.clear(data.run) : undefined;
    fragments.want("message", data.message, done);
  },
  message_edited(data) {
    fragments.want("text", data.message);
    // The form that changes it stands there, with its text.
    fragments.want("run", data.run);
    fragments.want("head", page.dataset.chat);
    say(words.edited);
  },
  message_removed(data) {
    fragments.want("text", data.message);
    fragments.want("head", page.dataset.chat);
    say(words.removed);
  },
  run(data) {
    fragments.want("run", data.run);
    if (data.state === "running") say(words.working);
    if (data.state !== "waiting") return;
    say(words.approval);
    fragments.want("head", page.dataset.chat);
  },
  reset: (data) => live.clear(data.run),
  delta: (data) => live.add(data.run, data.text, data.at),
  call: (data) => fragments.want("call", data.call),
  review: (data) => fragments.want("review", data.review),
  export(data) {
    fragments.want("export", data.export);
    if (data.total) sayQuietly(`Export: ${data.done} of ${data.total} rows.`);
  },
  stop(data) {
    live.clear(data.run);
    fragments.want("stop", data.run);
    fragments.want("run", data.run);
    fragments.want("head", page.dataset.chat);
    say(words.ready);
  },
  reread: () => reread(page.dataset.self, live, (change) => edits.keep(change)),
};

function connectionLost() {
  document.getElementById("line-lost-at").textContent = new Date().toLocaleTimeString([], {
    hour: "2-digit",
    minute: "2-digit",
  });
  lost.hidden = false;
  signedIn(page.dataset.self);
}

const stream = new Stream(page.dataset.stream, page.dataset.after, {
  event: (kind, data) => handlers[kind]?.(data),
  lost: connectionLost,
  back: () => { lost.hidden = true; },
});

function refresh(answer) {
  for (const [kind, id] of answer.refresh || []) fragments.want(kind, id);
}

/** Show what came of a button; a refusal is read where the person writes. */
function acted(answer) {
  if (!answer.ok) composer.tell(answer.error);
  refresh(answer);
}

const composer = new Composer(document.getElementById("composer"), { sent: refresh });
const edits = new Edits(page, {
  done: refresh,
  rescue: (text, why) => composer.take(text, why),
  away: () => composer.field.focus({ preventScroll: true }),
});
actInPlace(page, { done: acted });
followGrowth(place);
tellElapsed();
chatKeys();
if (!location.hash) toEnd();
stream.open();
// A stream that stays open keeps a page from being stored and a server from counting right.
window.addEventListener("pagehide", () => stream.close());
window.addEventListener("pageshow", (event) => { if (event.persisted) stream.open(); });
