"""What the sandbox does with a request to charge or to refund, inside the books' transaction."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Mapping
from typing import Final

from payments.sandbox import books
from payments.sandbox.shapes import Answer, payment_name, refused, unfit
from payments.sandbox.tokens import (
    NEEDS_ACTION,
    REFUND_PENDING,
    REFUND_UNFUNDED,
    decline_of,
    fault_of,
)

Form = Mapping[str, str]

_METADATA: Final = re.compile(r"metadata\[([A-Za-z0-9_-]{1,40})\]")
_INVALID: Final = "invalid_request_error"
# Stripe tells these in hundredths or thousandths, and takes no fraction of what they really have.
_STEPS: Final = {
    "isk": 100,
    "ugx": 100,
    "bhd": 10,
    "jod": 10,
    "kwd": 10,
    "omr": 10,
    "tnd": 10,
}
_PENDING: Final = {REFUND_PENDING: "processing", REFUND_UNFUNDED: "insufficient_funds"}
# Declines whose name is the error's code, too.
_OWN_CODES: Final = frozenset(
    {
        "authentication_required",
        "expired_card",
        "incorrect_cvc",
        "incorrect_number",
        "invalid_cvc",
        "invalid_expiry_month",
        "invalid_expiry_year",
        "invalid_number",
        "processing_error",
    }
)


def charge(db: sqlite3.Connection, form: Form) -> Answer:
    """Create a payment and confirm it at once."""
    currency, method = form.get("currency", ""), form.get("payment_method", "")
    amount = _amount(form, currency)
    if amount is None or re.fullmatch(r"[a-z]{3}", currency) is None:
        param = "amount" if amount is None else "currency"
        return unfit("parameter_invalid_integer", f"Invalid {param}.", param=param)
    if not method.startswith("pm_"):
        return unfit("resource_missing", "No such payment_method.", status=404)
    if form.get("confirm") != "true":
        return unfit("parameter_missing", "This sandbox only confirms at once.", param="confirm")
    facts = {
        "amount": amount,
        "currency": currency,
        "method": method,
        "metadata": _kept(form),
        "customer": form.get("customer", ""),
    }
    declined = decline_of(method)
    if fault_of(method) == NEEDS_ACTION:
        if form.get("off_session") != "true":
            return Answer(200, books.pay(db, status="requires_action", **facts))
        declined = ("authentication_required", "")
    if declined is None:
        return Answer(200, books.pay(db, status="succeeded", **facts))
    error = _card_error(*declined)
    shown = books.pay(db, status="requires_payment_method", error=json.dumps(error), **facts)
    return Answer(402, {"error": {**error, "payment_intent": shown}})


def refund(db: sqlite3.Connection, form: Form) -> Answer:
    """Give a part of a payment back, never more than is left of it."""
    payment = books.find(db, form.get("payment_intent") or payment_name(form.get("charge", "")))
    if payment is None:
        return unfit("resource_missing", "No such payment_intent.", status=404)
    left = payment["amount"] - payment["refunded"]
    code = _not_refundable(db, payment, left)
    if code:
        return refused(_INVALID, code, "The charge cannot be refunded.")
    amount = _amount(form, payment["currency"]) if "amount" in form else left
    if amount is None:
        return unfit("parameter_invalid_integer", "Invalid amount.", param="amount")
    if amount > left:
        return refused(_INVALID, "amount_too_large", "More than is left.", param="amount")
    pending = _PENDING.get(fault_of(payment["payment_method"]), "")
    return Answer(200, books.give_back(db, payment, amount, _kept(form), pending))


def _not_refundable(db: sqlite3.Connection, payment: sqlite3.Row, left: int) -> str:
    if payment["status"] != "succeeded":
        return "charge_not_refundable"
    if books.holds_refunds(db, payment["id"]):
        return "charge_disputed"
    return "" if left else "charge_already_refunded"


def _card_error(decline_code: str, advice_code: str) -> dict[str, str]:
    code = decline_code if decline_code in _OWN_CODES else "card_declined"
    advice = {"advice_code": advice_code} if advice_code else {}
    return {
        "type": "card_error",
        "code": code,
        "decline_code": decline_code,
        "message": "Your card was declined.",
        **advice,
    }


def _amount(form: Form, currency: str) -> int | None:
    text = form.get("amount", "")
    amount = int(text) if re.fullmatch(r"[1-9][0-9]{0,12}", text) else None
    return None if amount is None or amount % _STEPS.get(currency, 1) else amount


def _kept(form: Form) -> str:
    found = ((_METADATA.fullmatch(name), value) for name, value in form.items())
    return json.dumps({match[1]: value for match, value in found if match is not None})
