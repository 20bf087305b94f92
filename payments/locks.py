"""The order in which the ledger locks: the pause, requester, invoice or payment, then intent.

Whoever locks by hand does it through these functions and in this order; any other order can
deadlock. `no_key` leaves rows that merely refer to a locked one free to be written.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

from django.contrib.auth.models import User
from django.db import connection

from payments.errors import TargetMissing
from payments.models import Intent, Invoice, Payment
from payments.states import Operation

_PAUSE: Final = (0x436F, 0x5265)
"""A pair of numbers that names the lock; nothing else of ours takes advisory locks by pair."""


def pause_wait() -> None:
    """Let no pause begin or end until the transaction ends; refunds do not wait for each other."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock_shared(%s, %s)", _PAUSE)


def pause_lock() -> None:
    """Wait until every refund that is being written is written, and let none begin meanwhile."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_xact_lock(%s, %s)", _PAUSE)


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
