"""Read Stripe's answers into replies. Pure; shared by every gateway that speaks that format.

Certain refusals are few and listed. Whatever else is no clear success stays `unknown`: a refusal of
this request (no access, too many, a broken line) proves nothing about an earlier try of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from payments.gateways.base import Failure, Order, Reply
from payments.states import Operation

_REFUSALS: Final[Mapping[str, Failure]] = {
    "charge_disputed": "disputed",
    "refund_disputed_payment": "disputed",
    "charge_already_refunded": "already_refunded",
    "amount_too_large": "above_left",
}
# The bank says that the same card may work later.
_FOR_NOW: Final = frozenset(
    {
        "approve_with_id",
        "issuer_not_available",
        "processing_error",
        "reenter_transaction",
        "try_again_later",
    }
)
_FAILED_STATUS: Final = frozenset({"requires_payment_method", "canceled", "failed"})


def reply_of(order: Order, status: int, body: object) -> Reply:
    """Read the answer to a try."""
    if not isinstance(body, dict):
        return Reply(state="unknown", detail=f"{status} unreadable")
    if status == 200:
        return object_reply(order, body)
    error = body.get("error")
    error = error if isinstance(error, dict) else {}
    kind, code = str(error.get("type", "")), str(error.get("code", ""))
    detail = f"{status} {kind} {code} {error.get('decline_code', '')}".strip()
    if status == 402 and kind == "card_error":
        return Reply(
            state="failed",
            failure="declined_for_now" if error.get("decline_code") in _FOR_NOW else "declined",
            processor_ref=_object_id(error.get("payment_intent")),
            detail=detail,
        )
    if kind == "idempotency_error":
        return Reply(state="failed", failure="key_conflict", detail=detail)
    if status in {400, 404} and kind == "invalid_request_error":
        return Reply(state="failed", failure=_REFUSALS.get(code, "refused"), detail=detail)
    return Reply(state="unknown", detail=detail)


def object_reply(order: Order, body: Mapping[str, Any]) -> Reply:
    """Read a payment or a refund of the processor."""
    reference, status = _object_id(body), str(body.get("status", ""))
    if not reference or not _is_what_we_asked(order, body):
        return Reply(state="unknown", detail=f"other object than asked: {reference} {status}")
    if status == "succeeded":
        return Reply(state="succeeded", processor_ref=reference)
    if status in _FAILED_STATUS:
        failure: Failure = "declined" if order.operation == Operation.CHARGE else "refused"
        return Reply(state="failed", failure=failure, processor_ref=reference, detail=status)
    return Reply(state="unknown", processor_ref=reference, detail=status)


def is_ours(order: Order, body: object) -> bool:
    """Tell whether a listed object carries our intent in its metadata."""
    metadata = body.get("metadata") if isinstance(body, dict) else None
    return isinstance(metadata, dict) and metadata.get("intent") == str(order.intent_id)


def _is_what_we_asked(order: Order, body: Mapping[str, Any]) -> bool:
    same_currency = body.get("currency") == order.body.get("currency", body.get("currency"))
    return str(body.get("amount")) == order.body["amount"] and same_currency


def _object_id(body: object) -> str:
    return str(body.get("id") or "") if isinstance(body, dict) else ""
