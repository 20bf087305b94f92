"""The sandbox's rows as Stripe's objects: what goes over the line. Pure."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

Shape = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Answer:
    """What goes back over the line. `kept`: it is the answer of its key from now on."""

    status: int
    body: Mapping[str, Any]
    kept: bool = True
    headers: Mapping[str, str] = field(default_factory=dict)


def refused(kind: str, code: str, message: str, *, status: int = 400, **more: Any) -> Answer:
    """Say no in Stripe's words."""
    link = {"doc_url": f"https://stripe.com/docs/error-codes/{code.replace('_', '-')}"}
    named = {"code": code, **link} if code else {}
    return Answer(status, {"error": {"type": kind, "message": message, **named, **more}})


def unfit(code: str, message: str, *, status: int = 400, **more: Any) -> Answer:
    """Refuse what cannot be meant; nothing began, so the key keeps no answer."""
    answer = refused("invalid_request_error", code, message, status=status, **more)
    return Answer(answer.status, answer.body, kept=False)


def payment(row: sqlite3.Row) -> Shape:
    """Return a payment intent."""
    succeeded = row["status"] == "succeeded"
    return {
        "id": row["id"],
        "object": "payment_intent",
        "amount": row["amount"],
        "amount_received": row["amount"] if succeeded else 0,
        "capture_method": "automatic",
        "confirmation_method": "automatic",
        "currency": row["currency"],
        "customer": row["customer"] or None,
        "status": row["status"],
        "payment_method": row["payment_method"],
        "latest_charge": charge_name(row["id"]) if row["status"] != "requires_action" else None,
        "last_payment_error": json.loads(row["error"]) if row["error"] else None,
        "next_action": {"type": "use_stripe_sdk"} if row["status"] == "requires_action" else None,
        "metadata": json.loads(row["metadata"]),
        "created": row["created"],
        "livemode": False,
    }


def charge(row: sqlite3.Row, *, disputed: bool) -> Shape:
    """Return the charge of a payment."""
    succeeded = row["status"] == "succeeded"
    return {
        "id": charge_name(row["id"]),
        "object": "charge",
        "amount": row["amount"],
        "amount_captured": row["amount"] if succeeded else 0,
        "amount_refunded": row["refunded"],
        "captured": succeeded,
        "currency": row["currency"],
        "disputed": disputed,
        "paid": succeeded,
        "payment_intent": row["id"],
        "payment_method": row["payment_method"],
        "refunded": row["refunded"] == row["amount"],
        "status": "succeeded" if succeeded else "failed",
        "metadata": json.loads(row["metadata"]),
        "created": row["created"],
        "livemode": False,
    }


def refund(row: sqlite3.Row) -> Shape:
    """Return a refund; why it is pending or has failed only while that is so."""
    reasons = {name: row[name] for name in ("pending_reason", "failure_reason") if row[name]}
    return {
        "id": row["id"],
        "object": "refund",
        "amount": row["amount"],
        "charge": charge_name(row["payment_intent"]),
        "currency": row["currency"],
        "payment_intent": row["payment_intent"],
        "reason": None,
        "status": row["status"],
        "metadata": json.loads(row["metadata"]),
        "created": row["created"],
        **reasons,
    }


def dispute(row: sqlite3.Row) -> Shape:
    """Return a dispute; one whose state begins with "warning_" is an inquiry."""
    return {
        "id": row["id"],
        "object": "dispute",
        "amount": row["amount"],
        "charge": charge_name(row["payment_intent"]),
        "currency": row["currency"],
        "is_charge_refundable": row["status"].startswith("warning_") or row["status"] == "won",
        "payment_intent": row["payment_intent"],
        "reason": row["reason"],
        "status": row["status"],
        "metadata": {},
        "created": row["created"],
        "livemode": False,
    }


def charge_name(payment_intent: str) -> str:
    """Name the charge of a payment."""
    return f"ch_{payment_intent.removeprefix('pi_')}"


def payment_name(charge: str) -> str:
    """Name the payment of a charge."""
    return f"pi_{charge.removeprefix('ch_')}"


_EXPANDED: Final = frozenset({"latest_charge", "charge", "payment_intent"})


def expanded(shape: Shape, paths: Collection[str], get: Callable[[str], Shape | None]) -> Shape:
    """Put objects in the place of their names, where a client asked for it."""
    wanted = {path.removeprefix("data.") for path in paths} & _EXPANDED & shape.keys()
    found = {name: get(shape[name]) for name in wanted if shape[name]}
    return shape | {name: other for name, other in found.items() if other is not None}
