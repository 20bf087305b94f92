"""What is left of a payment and of a person's day, and what is still on its way.

The services read these under lock before they write an intent; tools and reviews read them to
tell people. Waiting reviews are not counted here: they hold nothing back at the moment of sending.
"""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django.conf import settings
from django.db.models import Sum
from django.utils import timezone

from payments.models import Intent, Pause, Payment, Refund
from payments.states import REFUND_COUNTS, IntentState, Operation, PaymentState


def payment_left(payment: Payment) -> int:
    """Return in minor units what is paid and neither refunded nor on its way back."""
    if payment.state != PaymentState.SUCCEEDED:
        return 0
    return payment.amount_minor - refunded_minor(payment)


def refunded_minor(payment: Payment) -> int:
    """Sum the refunds that were made, are being sent or are being checked."""
    rows = Refund.objects.filter(payment=payment, state__in=REFUND_COUNTS)
    return rows.aggregate(total=Sum("amount_minor"))["total"] or 0


def intent_open(operation: Operation, target_id: UUID) -> Intent | None:
    """Return what is on its way for an invoice or a payment; there is at most one."""
    return Intent.objects.filter(
        operation=operation, target_id=target_id, state=IntentState.OPEN
    ).first()


def refunded_today(requester_id: int, currency: str, now: datetime | None = None) -> int:
    """Sum what this person sent back today, in minor units; a failed refund does not count."""
    rows = Intent.objects.filter(
        operation=Operation.REFUND,
        requester_id=requester_id,
        currency=currency,
        created_at__gte=day_start(now),
    ).exclude(state=IntentState.FAILED)
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
