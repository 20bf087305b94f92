"""The states of everything in the ledger, how they may change, and what an approval covers.

Enum, transition table and terminal set stand here and nowhere else. Touches no database.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Final, TypeVar
from uuid import UUID

from django.db.models import TextChoices

StateT = TypeVar("StateT", bound=TextChoices)


class Operation(TextChoices):
    """What an intent wants from the processor."""

    CHARGE = "charge", "charge"
    REFUND = "refund", "refund"


class InvoiceState(TextChoices):
    """An invoice is charged once, in full."""

    OPEN = "open", "open"
    PAID = "paid", "paid"
    VOID = "void", "void"


class PaymentState(TextChoices):
    """A payment is recorded when the processor has said how it ended."""

    SUCCEEDED = "succeeded", "succeeded"
    FAILED = "failed", "failed"


class RefundState(TextChoices):
    """`unknown`: a try ended without an answer; the service goes on asking.

    `accepted`: the processor has it, and the bank has not confirmed it. A bank may send one back
    days after it succeeded, and the processor tells of that as a failure.
    """

    SENDING = "sending", "being sent"
    UNKNOWN = "unknown", "being checked"
    ACCEPTED = "accepted", "on its way"
    SUCCEEDED = "succeeded", "succeeded"
    FAILED = "failed", "failed"


class RefundOrigin(TextChoices):
    """`outside`: made at the processor by somebody there, and learned of from it."""

    DESK = "desk", "made here"
    OUTSIDE = "outside", "made at the processor"


class DisputeState(TextChoices):
    """While it is open, and once it is lost, the bank has the money."""

    OPEN = "open", "open"
    WON = "won", "won"
    LOST = "lost", "lost"


class IntentState(TextChoices):
    """An open intent holds its amount back until the processor's answer is certain."""

    OPEN = "open", "open"
    SUCCEEDED = "succeeded", "succeeded"
    FAILED = "failed", "failed"


class MethodKind(TextChoices):
    """What a customer pays with."""

    CARD = "card", "card"
    PAYPAL = "paypal", "PayPal"
    GIFT_CARD = "gift_card", "gift card"


INVOICE_MOVES: Final[Mapping[InvoiceState, frozenset[InvoiceState]]] = {
    InvoiceState.OPEN: frozenset({InvoiceState.PAID, InvoiceState.VOID}),
    InvoiceState.PAID: frozenset(),
    InvoiceState.VOID: frozenset(),
}
REFUND_MOVES: Final[Mapping[RefundState, frozenset[RefundState]]] = {
    RefundState.SENDING: frozenset(
        {RefundState.UNKNOWN, RefundState.ACCEPTED, RefundState.SUCCEEDED, RefundState.FAILED}
    ),
    RefundState.UNKNOWN: frozenset(
        {RefundState.ACCEPTED, RefundState.SUCCEEDED, RefundState.FAILED}
    ),
    RefundState.ACCEPTED: frozenset({RefundState.SUCCEEDED, RefundState.FAILED}),
    RefundState.SUCCEEDED: frozenset({RefundState.FAILED}),
    RefundState.FAILED: frozenset(),
}
DISPUTE_MOVES: Final[Mapping[DisputeState, frozenset[DisputeState]]] = {
    DisputeState.OPEN: frozenset({DisputeState.WON, DisputeState.LOST}),
    DisputeState.WON: frozenset(),
    DisputeState.LOST: frozenset(),
}
INTENT_MOVES: Final[Mapping[IntentState, frozenset[IntentState]]] = {
    IntentState.OPEN: frozenset({IntentState.SUCCEEDED, IntentState.FAILED}),
    IntentState.SUCCEEDED: frozenset(),
    IntentState.FAILED: frozenset(),
}

INVOICE_TERMINAL: Final = frozenset(state for state, to in INVOICE_MOVES.items() if not to)
REFUND_TERMINAL: Final = frozenset(state for state, to in REFUND_MOVES.items() if not to)
DISPUTE_TERMINAL: Final = frozenset(state for state, to in DISPUTE_MOVES.items() if not to)
INTENT_TERMINAL: Final = frozenset(state for state, to in INTENT_MOVES.items() if not to)
# A refund in one of these holds back, or has taken, its part of the payment.
REFUND_COUNTS: Final = frozenset(RefundState) - {RefundState.FAILED}
# A dispute in one of these has taken its part of the payment.
DISPUTE_COUNTS: Final = frozenset({DisputeState.OPEN, DisputeState.LOST})


def states_before(moves: Mapping[StateT, frozenset[StateT]], target: StateT) -> list[StateT]:
    """List the states from which `target` may be reached: the filter of a conditional update."""
    return [state for state, to in moves.items() if target in to]


def subject_hash(
    operation: str, subject_id: UUID, amount_minor: int, currency: str, version: int
) -> str:
    """Fix what one approval covers: operation, payment or invoice, amount, currency, version."""
    subject = [str(operation), str(subject_id), amount_minor, currency, version]
    return hashlib.sha256(json.dumps(subject).encode()).hexdigest()
