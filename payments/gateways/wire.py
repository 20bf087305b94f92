"""Read Stripe's answers into replies. Pure; shared by every gateway that speaks that format.

What an answer means stands in the table of `classes`. An answer that is no clear success and no row
of the table ends stays `unknown`: a refusal of this request (no access, too many, a broken line)
proves nothing about an earlier try of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final
from uuid import UUID

from payments.errors import AmountRefused
from payments.gateways.base import Order, Reply, Seen, SeenKind, SeenState
from payments.gateways.bodies import MOST_PAGES, iso_amount, look_up
from payments.gateways.classes import TABLE, AnswerClass, Meaning, declined
from payments.states import Operation

_FAILED_STATUS: Final = frozenset({"requires_payment_method", "canceled", "failed"})
_PENDING: Final = frozenset({"pending", "requires_action"})
_SEEN_STATES: Final[Mapping[SeenKind, Mapping[str, SeenState]]] = {
    "payment": {
        "succeeded": "succeeded",
        "processing": "accepted",
        "requires_action": "accepted",
        "requires_payment_method": "failed",
        "canceled": "failed",
        # A charge's own word, and those of payments of earlier days.
        "pending": "accepted",
        "failed": "failed",
    },
    "refund": {
        "succeeded": "succeeded",
        "pending": "accepted",
        "requires_action": "accepted",
        "failed": "failed",
        "canceled": "failed",
    },
}
_OF_STRIPE: Final = frozenset({"card_error", "invalid_request_error"})
_NO_ROW: Final = "no row"
"""In `Reply.detail`: the answer was Stripe's and the table does not name it."""


def no_answer(detail: str) -> Reply:
    """Return what is known when the line gave nothing that can be read."""
    kind = TABLE["line"]["no_answer"].kind
    return Reply(state="unknown", kind=kind, strain=True, detail=detail)


def names_no_row(reply: Reply) -> bool:
    """Tell whether the answer is one that the table should have a row for."""
    return reply.detail.endswith(_NO_ROW)


def reply_of(order: Order, status: int, body: object) -> Reply:
    """Read the answer to a try."""
    if not isinstance(body, dict):
        kind = TABLE["line"]["unreadable"].kind
        return Reply(state="unknown", kind=kind, strain=True, detail=f"{status} unreadable")
    if status == 200:
        return object_reply(order, body)
    error = body.get("error")
    error = error if isinstance(error, dict) else {}
    found = _error_meaning(order.operation, status, error)
    meaning = found or _unlisted(error)
    words = (_word(error, name) for name in ("type", "code", "decline_code", "advice_code"))
    detail = " ".join(word for word in (str(status), *words, _NO_ROW * (not found)) if word)
    return _reply(
        meaning,
        processor_ref=_object_id(error.get("payment_intent")),
        strain=status >= 500 or status == 429 or not error,
        broke=status >= 500,
        decline_code=_decline_code(error),
        detail=detail,
    )


def object_reply(order: Order, body: Mapping[str, Any]) -> Reply:
    """Read a payment or a refund of the processor."""
    reference, status = _object_id(body), str(body.get("status", ""))
    if not reference or not _is_what_we_asked(order, body):
        kind = TABLE["line"]["unreadable"].kind
        detail = f"other object than asked: {reference} {status}"
        return Reply(state="unknown", kind=kind, detail=detail)
    if status == "succeeded":
        return Reply(state="succeeded", processor_ref=reference)
    if status in _FAILED_STATUS:
        return _failed_object(order, body, reference, status)
    row = TABLE["pending_reason"].get(_word(body, "pending_reason"))
    kind = row.kind if row is not None else AnswerClass.WAITING
    taken = order.operation == Operation.REFUND and status in _PENDING
    return Reply(
        state="accepted" if taken else "unknown",
        kind=kind,
        processor_ref=reference,
        detail=status,
    )


def listed_reply(
    order: Order, page_of: Callable[[dict[str, str]], tuple[int, Any]]
) -> Reply | None:
    """Go through a list, page by page, for the object that carries our intent.

    `page_of` takes a query and returns status and body. None: there is certainly nothing.
    """
    query = look_up(order)
    for _page in range(MOST_PAGES):
        status, listed = page_of(query)
        rows = listed.get("data") if isinstance(listed, dict) else None
        if status != 200 or not isinstance(rows, list):
            return _no_list(order, status, listed)
        for row in rows:
            if is_ours(order, row):
                return object_reply(order, row)
        if not listed.get("has_more"):
            return None
        last = last_of(rows)
        if not last:
            return _no_list(order, status, listed)
        query["starting_after"] = last
    return Reply(state="unknown", kind=AnswerClass.UNKNOWN, detail="too many pages")


def last_of(rows: Sequence[object]) -> str:
    """Name the last object of a page, after which the next begins; empty when it has no name."""
    return _object_id(rows[-1]) if rows else ""


def is_ours(order: Order, body: object) -> bool:
    """Tell whether a listed object carries our intent in its metadata."""
    metadata = body.get("metadata") if isinstance(body, dict) else None
    return isinstance(metadata, dict) and metadata.get("intent") == str(order.intent_id)


def seen_of(kind: SeenKind, body: Mapping[str, Any]) -> Seen | None:
    """Read one of Stripe's objects; None when it says nothing that our books keep.

    That is an inquiry of a bank, which takes no money and forbids no refund, and whatever is not
    in the format at all.
    """
    status, currency = _word(body, "status"), _word(body, "currency").upper()
    state = _dispute_state(status) if kind == "dispute" else _SEEN_STATES[kind].get(status)
    owner = _payment_ref(body) or _object_id(body)
    # A charge is told of by the payment that it belongs to.
    reference = owner if kind == "payment" else _object_id(body)
    try:
        amount_minor = iso_amount(int(body["amount"]), currency)
        created_at = datetime.fromtimestamp(int(body["created"]), UTC)
    except (AmountRefused, KeyError, TypeError, ValueError, OverflowError, OSError):
        return None
    if state is None or not reference or amount_minor <= 0 or len(currency) != 3:
        return None
    return Seen(
        kind=kind,
        processor_ref=reference,
        payment_ref=owner,
        amount_minor=amount_minor,
        currency=currency,
        state=state,
        failure=_failure_of(kind == "refund", body)[0].failure if state == "failed" else "",
        intent_id=_intent_id(body),
        created_at=created_at,
    )


def _dispute_state(status: str) -> SeenState | None:
    if not status or status.startswith("warning_"):
        return None
    ended: dict[str, SeenState] = {"won": "won", "lost": "lost", "prevented": "won"}
    return ended.get(status, "open")


def _payment_ref(body: Mapping[str, Any]) -> str:
    """Return the payment that an object belongs to, whose name may be expanded to the whole."""
    for name in ("payment_intent", "charge"):
        value = body.get(name)
        if value:
            return _object_id(value) if isinstance(value, dict) else str(value)
    return ""


def _intent_id(body: Mapping[str, Any]) -> UUID | None:
    metadata = body.get("metadata")
    try:
        return UUID(str(metadata["intent"])) if isinstance(metadata, dict) else None
    except (KeyError, ValueError):
        return None


def _error_meaning(operation: Operation, status: int, error: Mapping[str, Any]) -> Meaning | None:
    """Find the row of an error. What the status says of the line comes before any code."""
    kind, code = _word(error, "type"), _word(error, "code")
    if status >= 500:
        return TABLE["status"].get(str(status), TABLE["status"]["500"])
    if kind == "card_error":
        return declined(_decline_code(error), _word(error, "advice_code"))
    if kind == "idempotency_error":
        return TABLE["type"][kind]
    if not error:
        return None
    of_refunds = TABLE["refund_code"] if operation == Operation.REFUND else {}
    if not code and (kind, error.get("param")) == ("invalid_request_error", "amount"):
        # Stripe refuses to give back more than is left without a code.
        code = "amount_too_large"
    name = "parameter_*" if code.startswith("parameter") else code
    by_code = of_refunds.get(name) or TABLE["code"].get(name)
    return by_code or TABLE["type"].get(kind) or TABLE["status"].get(str(status))


def _unlisted(error: Mapping[str, Any]) -> Meaning:
    """Class what no row names: Stripe's own refusals are fatal, anything else says nothing."""
    kind = _word(error, "type")
    if kind in _OF_STRIPE:
        return Meaning(AnswerClass.FATAL, "declined" if kind == "card_error" else "refused")
    return TABLE["line"]["unreadable"]


def _reply(meaning: Meaning, **more: Any) -> Reply:
    # Where access was refused, only the ledger knows whether this was the first try.
    over = bool(meaning.failure) and meaning.kind != AnswerClass.CONFIGURATION
    return Reply(
        state="failed" if over else "unknown", failure=meaning.failure, kind=meaning.kind, **more
    )


def _failed_object(order: Order, body: Mapping[str, Any], reference: str, status: str) -> Reply:
    meaning, code, known = _failure_of(order.operation == Operation.REFUND, body)
    detail = " ".join(word for word in (status, code, _NO_ROW * (not known)) if word)
    return _reply(meaning, processor_ref=reference, decline_code=code, detail=detail)


def _failure_of(refund: bool, body: Mapping[str, Any]) -> tuple[Meaning, str, bool]:
    """Return why an object has failed: its row, the processor's code, whether a row names it."""
    if refund:
        code = _word(body, "failure_reason")
        meaning = TABLE["failure_reason"].get(code, TABLE["failure_reason"]["unknown"])
        return meaning, code, code in ("", *TABLE["failure_reason"])
    error = body.get("last_payment_error")
    error = error if isinstance(error, dict) else {}
    code = _decline_code(error)
    found = declined(code, _word(error, "advice_code"))
    return found or TABLE["decline_code"]["generic_decline"], code, not code or found is not None


def _no_list(order: Order, status: int, listed: object) -> Reply:
    """Return what a refused look-up says: of the processor something, of the order nothing."""
    reply = reply_of(order, status, listed) if status != 200 else no_answer("")
    configured = reply.kind == AnswerClass.CONFIGURATION
    return Reply(
        state="unknown",
        failure=reply.failure if configured else "",
        kind=reply.kind if configured else AnswerClass.UNKNOWN,
        strain=reply.strain,
        detail=f"{status} no list",
    )


def _decline_code(error: Mapping[str, Any]) -> str:
    """Return why a card was declined; an error without the one has it in the other field."""
    if error.get("type") != "card_error":
        return ""
    code = _word(error, "code")
    return _word(error, "decline_code") or ("" if code == "card_declined" else code)


def _is_what_we_asked(order: Order, body: Mapping[str, Any]) -> bool:
    same_currency = body.get("currency") == order.body.get("currency", body.get("currency"))
    return str(body.get("amount")) == order.body["amount"] and same_currency


def _word(body: Mapping[str, Any], name: str) -> str:
    return str(body.get(name) or "")[:60]


def _object_id(body: object) -> str:
    return str(body.get("id") or "") if isinstance(body, dict) else ""
