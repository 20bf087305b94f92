"""Read a webhook: whose signature it bears, and which of our kinds of object it tells of.

The signature is checked by Stripe's own library, over the bytes as they came. Only the fields that
`wire.seen_of` reads are kept of an object: the rest is about people.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final

import stripe

from payments.gateways.base import Seen, SeenKind
from payments.gateways.wire import seen_of

TOLERANCE_SECONDS: Final = 300
"""How old a signature may be; a repeat of an older one is refused."""

KINDS: Final[Mapping[str, SeenKind]] = {
    "payment_intent.succeeded": "payment",
    "payment_intent.payment_failed": "payment",
    "payment_intent.canceled": "payment",
    "payment_intent.processing": "payment",
    "charge.refunded": "refund",
    "charge.refund.updated": "refund",
    "refund.created": "refund",
    "refund.updated": "refund",
    "refund.failed": "refund",
    "charge.dispute.created": "dispute",
    "charge.dispute.updated": "dispute",
    "charge.dispute.closed": "dispute",
    "charge.dispute.funds_withdrawn": "dispute",
    "charge.dispute.funds_reinstated": "dispute",
}
"""The events that say something about our books. Every other one is kept and does nothing."""

_KEPT: Final = (
    "id",
    "object",
    "status",
    "amount",
    "currency",
    "created",
    "payment_intent",
    "charge",
    "failure_reason",
    "pending_reason",
)
_KEPT_OF_ERRORS: Final = ("type", "code", "decline_code", "advice_code")


class EventRefused(Exception):
    """The request is no event of this processor for us; the text is for the log alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """An event whose signature holds. `body` is what is kept of its object."""

    id: str
    kind: str
    object_ref: str
    body: Mapping[str, Any]
    made_at: datetime | None


def event_read(raw: bytes, header: str, *, secrets: Iterable[str], livemode: bool) -> Told:
    """Check a webhook and read it. Any of several secrets will do while one replaces another.

    Raises:
        EventRefused: it is not signed by the processor, not lately, or not meant for us.
    """
    _signed(raw, header, secrets)
    try:
        event = json.loads(raw)
        shape = event["data"]["object"]
        name, kind = str(event["id"]), str(event["type"])
    except (KeyError, TypeError, ValueError):
        raise EventRefused("signed, and no event") from None
    if not isinstance(shape, dict) or not 0 < len(name) <= 120 or len(kind) > 80:
        raise EventRefused("signed, and no event")
    if event.get("account"):
        # We act for no account but our own, whose events name none.
        raise EventRefused("of another account")
    if bool(event.get("livemode")) is not livemode:
        raise EventRefused("of the other mode, live or test")
    reference = str(shape.get("id") or "")[:120]
    body = _kept(shape) if kind in KINDS else {}
    return Told(
        id=name, kind=kind, object_ref=reference, body=body, made_at=_moment(event.get("created"))
    )


def seen_in(kind: str, body: Mapping[str, Any]) -> list[Seen]:
    """Return what a kept event says of our kinds of object; empty when that is nothing."""
    about = KINDS.get(kind)
    if about is None:
        return []
    # A charge tells of its refunds only if the version of its webhook still lists them; each
    # refund also has events of its own.
    shapes = body.get("refunds", []) if body.get("object") == "charge" else [body]
    found = (seen_of(about, shape) for shape in shapes)
    return [seen for seen in found if seen is not None]


def _signed(raw: bytes, header: str, secrets: Iterable[str]) -> None:
    if not header.isascii():
        raise EventRefused("signature: not ASCII")
    said = "no secret"
    for secret in secrets:
        try:
            # Text that is not UTF-8 was never signed.
            stripe.WebhookSignature.verify_header(
                raw.decode("utf-8"), header, secret, TOLERANCE_SECONDS
            )
        except stripe.SignatureVerificationError as error:
            said = str(error.user_message or "refused")[:60]
        except UnicodeDecodeError:
            said = "not UTF-8"
        else:
            return
    raise EventRefused(f"signature: {said}")


def _kept(shape: Mapping[str, Any]) -> dict[str, Any]:
    body: dict[str, Any] = {}
    for name in _KEPT:
        value = shape.get(name)
        # Where an object stands in the place of its name, only the name is ours to know.
        body[name] = value.get("id") if isinstance(value, dict) else value
    body = {name: value for name, value in body.items() if isinstance(value, str | int)}
    metadata, error = shape.get("metadata"), shape.get("last_payment_error")
    if isinstance(metadata, dict) and isinstance(metadata.get("intent"), str):
        body["metadata"] = {"intent": metadata["intent"]}
    if isinstance(error, dict):
        body["last_payment_error"] = {
            name: error[name] for name in _KEPT_OF_ERRORS if isinstance(error.get(name), str)
        }
    refunds = shape.get("refunds")
    rows = refunds.get("data") if isinstance(refunds, dict) else None
    if isinstance(rows, list):
        body["refunds"] = [_kept(row) for row in rows if isinstance(row, dict)]
    return body


def _moment(value: object) -> datetime | None:
    try:
        return datetime.fromtimestamp(int(str(value)), UTC)
    except (ValueError, OverflowError, OSError):
        return None
