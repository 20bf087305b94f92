"""The order in which the ledger locks rows: requester, then invoice or payment, then intent.

Whoever locks by hand does it through these functions and in this order; any other order can
deadlock. `no_key` leaves rows that merely refer to a locked one free to be written.
"""

from __future__ import annotations

from uuid import UUID

from django.contrib.auth.models import User

from payments.errors import TargetMissing
from payments.models import Intent, Invoice, Payment
from payments.states import Operation


def requester_lock(user_id: int) -> User:
    """Let nobody else spend from this person's daily limit until the transaction ends.

    Raises:
        TargetMissing: there is no such person.
    """
    user = User.objects.select_for_update(no_key=True).filter(pk=user_id).first()
    if user is None:
        raise TargetMissing
    return user


def payment_lock(payment_id: UUID) -> Payment:
    """Let nobody else refund this payment until the transaction ends.

    Raises:
        TargetMissing: there is no such payment.
    """
    rows = Payment.objects.select_for_update(no_key=True, of=("self",))
    payment = rows.select_related("customer", "method").filter(pk=payment_id).first()
    if payment is None:
        raise TargetMissing
    return payment


def invoice_lock(invoice_id: UUID) -> Invoice:
    """Let nobody else charge this invoice until the transaction ends.

    Raises:
        TargetMissing: there is no such invoice.
    """
    rows = Invoice.objects.select_for_update(no_key=True, of=("self",))
    invoice = rows.select_related("customer").filter(pk=invoice_id).first()
    if invoice is None:
        raise TargetMissing
    return invoice


def target_lock(intent: Intent) -> Payment | Invoice:
    """Lock what an intent is about."""
    if intent.operation == Operation.REFUND:
        return payment_lock(intent.target_id)
    return invoice_lock(intent.target_id)


def intent_lock(intent_id: UUID) -> Intent:
    """Lock an intent and read it anew; its target must be locked already."""
    return Intent.objects.select_for_update(no_key=True).get(pk=intent_id)
