"""What is left of a payment and of a person's day, and what is still on its way.

The services read these under lock before they write an intent; tools and reviews read them to
tell people. Waiting reviews are not counted here: they hold nothing back at the moment of sending.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db.models import Q, Sum
from django.utils import timezone

from payments.models import Intent, Pause, Payment, Refund
from payments.states import (
    REFUND_COUNTS,
    IntentState,
    MethodKind,
    Operation,
    PaymentState,
    RefundState,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Left:
    """What a payment holds, in minor units: paid, and all that takes from it.

    `refunded_minor` is what was given back or is on its way, wherever it was asked for; of it,
    `sent_minor` has no answer yet and `unknown_minor` is being checked. `disputed_minor` is at the
    bank. What waits for a person, and what earlier calls of the same batch ask (`beside_minor`),
    count for a new request only.
    """

    paid_minor: int
    refunded_minor: int
    sent_minor: int
    unknown_minor: int
    disputed_minor: int
    waiting_minor: int = 0
    beside_minor: int = 0

    @property
    def left_minor(self) -> int:
        """Return what can still be refunded; never below zero."""
        gone = self.refunded_minor + self.disputed_minor + self.waiting_minor + self.beside_minor
        return max(0, self.paid_minor - gone)


def payment_balance(payment: Payment, *, waiting_minor: int = 0, beside_minor: int = 0) -> Left:
    """Break down what is left of a payment; for a new request with what waits, else without."""

    def of(*states: RefundState) -> Q:
        return Q(state__in=states)

    sums = Refund.objects.filter(payment=payment, state__in=REFUND_COUNTS).aggregate(
        refunded=Sum("amount_minor"),
        sent=Sum("amount_minor", filter=of(RefundState.SENDING)),
        unknown=Sum("amount_minor", filter=of(RefundState.UNKNOWN)),
    )
    paid = payment.amount_minor if payment.state == PaymentState.SUCCEEDED else 0
    # A dispute of before there were rows for them is one of the whole payment.
    disputed = (payment.disputed_minor or payment.amount_minor) if payment.disputed else 0
    return Left(
        paid_minor=paid,
        refunded_minor=sums["refunded"] or 0,
        sent_minor=sums["sent"] or 0,
        unknown_minor=sums["unknown"] or 0,
        disputed_minor=disputed,
        waiting_minor=waiting_minor,
        beside_minor=beside_minor,
    )


def payment_left(payment: Payment) -> int:
    """Return what may be refunded at the moment of sending, in minor units."""
    return payment_balance(payment).left_minor


def too_old(payment: Payment) -> bool:
    """Tell whether no bank would take a refund of this payment any more; vouchers have no bank."""
    days: int = settings.REFUND_MAX_AGE_DAYS
    if not days or payment.method.kind == MethodKind.GIFT_CARD:
        return False
    return payment.paid_at < timezone.now() - timedelta(days=days)


def intent_open(operation: Operation, target_id: UUID) -> Intent | None:
    """Return what is on its way for an invoice or a payment; there is at most one."""
    return Intent.objects.filter(
        operation=operation, target_id=target_id, state=IntentState.OPEN
    ).first()


def refunded_today(requester_id: int, currency: str, now: datetime | None = None) -> int:
    """Sum what this person sent back today, in minor units.

    A failed refund does not count, nor does one that failed after it was accepted.
    """
    rows = Intent.objects.filter(
        operation=Operation.REFUND,
        requester_id=requester_id,
        currency=currency,
        created_at__gte=day_start(now),
    ).exclude(state=IntentState.FAILED)
    rows = rows.exclude(refund__state=RefundState.FAILED)
    return rows.aggregate(total=Sum("amount_minor"))["total"] or 0


def daily_limit(currency: str) -> int | None:
    """Return the day's limit in this currency; None when nobody set one."""
    limit: int | None = settings.REFUND_DAILY_LIMIT.get(currency)
    return limit


def charge_needs_review(amount_minor: int, currency: str) -> bool:
    """Tell whether a charge is big, or in a currency nobody set a limit for."""
    limit: int | None = settings.CHARGE_REVIEW_ABOVE.get(currency)
    return limit is None or amount_minor > limit


def refunds_pause() -> Pause | None:
    """Return the pause of all refunds that holds now, with who began it; None when none does."""
    rows = Pause.objects.select_related("paused_by")
    return rows.filter(operation=Operation.REFUND, resumed_at=None).first()


def day_start(now: datetime | None = None) -> datetime:
    """Return the moment at which the current day began, in the desk's time zone."""
    local = timezone.localtime(now)
    return local.replace(hour=0, minute=0, second=0, microsecond=0)
