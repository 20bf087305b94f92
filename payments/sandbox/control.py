"""What tests switch in the sandbox, and let happen at the bank: `/control/`.

| path | does |
| --- | --- |
| `faults` | the next `times` requests meet the fault `kind` |
| `answers` | the next `times` requests get this `status` and `body` |
| `refunds` | the refund `id` ends, or fails late: `status`, `failure_reason` |
| `disputes` | the payment `payment_intent` is disputed: `reason`, `status` |
| `disputes/close` | the dispute `id` ends: `status` |
| `hook` | events go to `url`, signed with `secret`; an empty `url` ends it |
| `hook/play` | they are `held` (1 or 0), go out `backwards`, or each in `copies` |
| `alter` | the object `id` reads otherwise: `amount`, `currency`, `created`, `status` |
| `gone` | the object `id` was never there |
| `forget-keys`, `clear` | every key is forgotten; everything is |
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from payments.sandbox import books, events
from payments.sandbox.books import Books
from payments.sandbox.shapes import Answer, Shape, refused

# What can be switched on: first those that happen before anything is committed.
BEFORE: Final[Mapping[str, Answer]] = {
    "rate": refused("rate_limit_error", "rate_limit", "Too many requests.", status=429),
    "busy": refused("api_error", "idempotency_key_in_use", "Still working on it.", status=409),
    "server_before": refused("api_error", "", "Something went wrong.", status=500),
    "access": refused("authentication_error", "api_key_expired", "Expired.", status=401),
}
BROKEN: Final = BEFORE["server_before"]
FAULT_KINDS: Final = (
    *BEFORE,
    "drop_before",
    "working",
    "server_after",
    "garbage_after",
    "drop_after",
    # A failure of the processor's own, which it then keeps as the answer of the key for a day.
    "server_kept_before",
    "server_kept_after",
)


def controlled(store: Books, path: str, form: Mapping[str, str]) -> Answer:
    """Do what a test asks; an object that came of it is the answer."""
    name, times = path.removeprefix("/control/"), int(form.get("times", "1"))
    if name == "faults" and form.get("kind") in FAULT_KINDS:
        store.switch_fault(form["kind"], times)
    elif name == "answers":
        store.switch_fault(f"answer {int(form['status'])}", times, form["body"])
    elif name == "forget-keys":
        store.forget_keys()
    elif name == "clear":
        store.clear()
    elif name in ("hook", "hook/play"):
        with store.transaction() as db:
            if name == "hook":
                events.hook_set(db, form["url"], form["secret"])
            else:
                events.hook_play(db, form)
    else:
        shape = _happened(store, name, form)
        return _UNHEARD_OF if shape is None else Answer(200, shape)
    return Answer(200, {})


_UNHEARD_OF: Final = Answer(400, {"error": {"type": "invalid_request_error"}})


def _happened(store: Books, name: str, form: Mapping[str, str]) -> Shape | None:
    with store.transaction() as db:
        if name == "refunds":
            reason = form.get("failure_reason", "")
            return books.refund_end(db, form["id"], form["status"], reason)
        if name == "disputes":
            payment = books.find(db, form["payment_intent"])
            if payment is None:
                return None
            reason = form.get("reason", "fraudulent")
            return books.dispute_open(db, payment, reason, form.get("status", "needs_response"))
        if name == "disputes/close":
            return books.dispute_close(db, form["id"], form["status"])
        if name in ("alter", "gone"):
            return books.tampered(db, form["id"], {n: v for n, v in form.items() if n != "id"})
    return None
