"""Look up what the policies read, fresh at each asking: at the gate, and again just before acting.

A call's own waiting review and its own intent never count against it.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.db.models import Q, Sum
from django.utils import timezone
from django.utils.translation import gettext as _

from agent_core.contract import RunContext
from agent_core.policy import ReviewProposal
from payments import balances, selectors
from payments.balances import Left, payment_balance
from payments.lookups import invoice_named, payment_named
from payments.models import IntentCall, Payment
from payments.money import MoneyInvalid, money_parse
from payments.states import InvoiceState, Operation, PaymentState
from payments.words import amount_in_words, key_in_words
from reviews.models import Review
from reviews.states import State

__all__ = [
    "Facts",
    "Left",
    "charge_facts",
    "payment_left_for",
    "refund_facts",
    "refund_facts_of",
    "refund_wanted",
    "review_of",
]

Facts = Mapping[str, Any]
Beside = Mapping[UUID, ReviewProposal | None]
NOTHING: Final[Beside] = MappingProxyType({})


def review_of(context: RunContext) -> Review | None:
    """Return the review of this very call, if one was asked for."""
    if context.call_id is None:
        return None
    return Review.objects.filter(call_id=context.call_id).first()


def payment_left_for(payment: Payment, own: Review | None, beside: Beside = NOTHING) -> Left:
    """Return what is left for a request. Once it is approved, waiting ones no longer count."""
    if own is not None and own.state == State.APPROVED:
        return payment_balance(payment)
    waiting = _waiting(Q(subject_id=payment.pk), own, beside)
    asked = [ask for ask in _refunds(beside) if ask.subject_id == payment.pk]
    same = sum(ask.amount_minor or 0 for ask in asked)
    return payment_balance(payment, waiting_minor=waiting, beside_minor=same)


def refund_wanted(payment: Payment, amount: str, left_minor: int) -> int:
    """Return the amount that is asked for; no amount means all that is left.

    Raises:
        MoneyInvalid: the text is no clear amount above zero in the payment's currency.
    """
    if not amount.strip():
        # While a refund is on its way the same wish means that one, not what remains beside it.
        going = balances.intent_open(Operation.REFUND, payment.pk)
        return going.amount_minor if going and not left_minor else left_minor
    wanted = money_parse(amount, payment.currency)
    if wanted <= 0:
        raise MoneyInvalid(_("A refund must be above zero."))
    return wanted


def refund_facts(context: RunContext, arguments: Mapping[str, Any]) -> Facts | None:
    """Return the facts of a refund; None when the tool itself has to say what is missing."""
    payment = payment_named(context, str(arguments.get("payment", "")))
    if payment is None or payment.state != PaymentState.SUCCEEDED:
        return None
    own = review_of(context)
    held = payment_left_for(payment, own, context.beside)
    try:
        wanted = refund_wanted(payment, str(arguments.get("amount", "")), held.left_minor)
    except MoneyInvalid:
        return None
    if own is not None and own.state == State.APPROVED and own.amount_minor:
        wanted = own.amount_minor
    return refund_facts_of(context, payment, wanted, own=own, held=held)


def refund_facts_of(
    context: RunContext, payment: Payment, wanted_minor: int, *, own: Review | None, held: Left
) -> Facts:
    """Return the facts of a refund of so much; `own` is the review it stands in, if any."""
    going = balances.intent_open(Operation.REFUND, payment.pk)
    return {
        "record": payment,
        "payment": payment.reference,
        "currency": payment.currency,
        "paused": balances.refunds_pause() is not None,
        "disputed": payment.disputed,
        "too_old": balances.too_old(payment),
        "refunded_as": _refunded_as(payment, held),
        "wanted_minor": wanted_minor,
        "left_minor": held.left_minor,
        "refunded_minor": held.refunded_minor,
        "waiting_minor": held.waiting_minor,
        "beside_minor": held.beside_minor,
        "begun": _begun(context),
        "attaches": going is not None and going.amount_minor == wanted_minor,
        "today_minor": _today(context, payment.currency, own),
        "daily_limit_minor": balances.daily_limit(payment.currency),
    }


def _refunded_as(payment: Payment, held: Left) -> str:
    """Name the refunds of a payment that was given back in full; empty for any other."""
    if held.refunded_minor - held.sent_minor - held.unknown_minor < held.paid_minor:
        return ""
    refunds = selectors.refunds_by_payment([payment]).get(payment.pk, [])
    return ", ".join(refund.reference for refund in refunds)


def charge_facts(context: RunContext, arguments: Mapping[str, Any]) -> Facts | None:
    """Return the facts of a charge; None when the tool itself has to say what is missing."""
    invoice = invoice_named(context, str(arguments.get("invoice", "")))
    if invoice is None:
        return None
    going = balances.intent_open(Operation.CHARGE, invoice.pk)
    return {
        "record": invoice,
        "invoice": invoice.reference,
        "currency": invoice.currency,
        "amount_minor": invoice.amount_minor,
        "open": invoice.state == InvoiceState.OPEN,
        "begun": _begun(context),
        "attaches": going is not None,
        "named": key_in_words(invoice.reference, context.words)
        or amount_in_words(invoice.amount_minor, invoice.currency, context.words),
        "review_above_minor": settings.CHARGE_REVIEW_ABOVE.get(invoice.currency),
    }


def _begun(context: RunContext) -> bool:
    """Tell whether this call has its intent already: a replay, which gets the first result."""
    if context.call_id is None:
        return False
    return IntentCall.objects.filter(call_id=context.call_id).exists()


def _today(context: RunContext, currency: str, own: Review | None) -> int:
    """Sum the requester's refunds of this day: sent, and for a new request also what waits."""
    sent = balances.refunded_today(context.requester_id, currency)
    if own is not None and own.state == State.APPROVED:
        return sent
    mine = Q(requested_by_id=context.requester_id, currency=currency)
    waiting = _waiting(mine & Q(created_at__gte=balances.day_start()), own, context.beside)
    asked = [ask for ask in _refunds(context.beside) if ask.currency == currency]
    return sent + waiting + sum(ask.amount_minor or 0 for ask in asked)


def _refunds(beside: Beside) -> list[ReviewProposal]:
    return [ask for ask in beside.values() if ask is not None and ask.kind == "refund"]


def _waiting(about: Q, own: Review | None, beside: Beside) -> int:
    """Sum the refunds that wait for a decision now, but for those of the batch being judged.

    A gate that runs again after a crash finds its own batch's reviews: each would count twice, and
    a later call against an earlier one.

    An approved one runs within seconds and is then the ledger's. One that was approved and then
    blocked stays unused for ever, and must not hold the rest of its payment back.
    """
    rows = Review.objects.filter(
        about, kind="refund", state=State.PENDING, expires_at__gt=timezone.now()
    )
    if own is not None:
        rows = rows.exclude(pk=own.pk)
    rows = rows.exclude(call_id__in=tuple(beside))
    return rows.aggregate(total=Sum("amount_minor"))["total"] or 0
