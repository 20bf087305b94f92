"""What the sandbox does with a request to charge or to refund, inside the books' transaction."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import Mapping
from typing import Final

from payments.sandbox import books
from payments.sandbox.books import Answer, refused
from payments.sandbox.tokens import DECLINED, DISPUTED, fault_of

Form = Mapping[str, str]

_METADATA: Final = re.compile(r"metadata\[([A-Za-z0-9_-]{1,40})\]")
_INVALID: Final = "invalid_request_error"


def charge(db: sqlite3.Connection, form: Form) -> Answer:
    """Create a payment and confirm it at once."""
    amount, currency = _amount(form), form.get("currency", "")
    method = form.get("payment_method", "")
    if amount is None or re.fullmatch(r"[a-z]{3}", currency) is None:
        param = "amount" if amount is None else "currency"
        return refused(_INVALID, "parameter_invalid", f"Invalid {param}.", param=param)
    if not method.startswith("pm_"):
        return refused(_INVALID, "resource_missing", "No such payment_method.", status=404)
    if form.get("confirm") != "true":
        return refused(_INVALID, "parameter_missing", "This sandbox only confirms at once.")
    declined = fault_of(method) == DECLINED
    payment = books.pay(
        db,
        amount=amount,
        currency=currency,
        method=method,
        status="requires_payment_method" if declined else "succeeded",
        metadata=_kept(form),
    )
    if declined:
        more = {"decline_code": "generic_decline", "payment_intent": payment}
        return refused("card_error", "card_declined", "Declined.", status=402, **more)
    return Answer(200, payment)


def refund(db: sqlite3.Connection, form: Form) -> Answer:
    """Give a part of a payment back, never more than is left of it."""
    payment = books.find(db, form.get("payment_intent", ""))
    if payment is None:
        return refused(_INVALID, "resource_missing", "No such payment_intent.", status=404)
    left = payment["amount"] - payment["refunded"]
    code = _not_refundable(payment, left)
    if code:
        return refused(_INVALID, code, "The charge cannot be refunded.")
    amount = _amount(form) if "amount" in form else left
    if amount is None or amount > left:
        code = "parameter_invalid" if amount is None else "amount_too_large"
        return refused(_INVALID, code, "Invalid amount.", param="amount")
    return Answer(200, books.give_back(db, payment, amount, _kept(form)))


def _not_refundable(payment: sqlite3.Row, left: int) -> str:
    if payment["status"] != "succeeded":
        return "charge_not_refundable"
    if fault_of(payment["payment_method"]) == DISPUTED:
        return "charge_disputed"
    return "" if left else "charge_already_refunded"


def _amount(form: Form) -> int | None:
    text = form.get("amount", "")
    return int(text) if re.fullmatch(r"[1-9][0-9]{0,12}", text) else None


def _kept(form: Form) -> str:
    found = ((_METADATA.fullmatch(name), value) for name, value in form.items())
    return json.dumps({match[1]: value for match, value in found if match is not None})
