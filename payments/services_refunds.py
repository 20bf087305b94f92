"""Give money back: only for an approved review, only what is left, and only once.

The approval is used up in the transaction that writes the intent, whoever calls.
"""

from __future__ import annotations

from uuid import UUID

from django.conf import settings
from django.db import transaction

from agent_core import faults
from agent_core.contract import RunContext
from payments.balances import (
    daily_limit,
    intent_open,
    payment_left,
    refunded_today,
    refunds_pause,
    too_old,
)
from payments.errors import (
    AmountRefused,
    DailyLimitReached,
    IntentBusy,
    LedgerRefused,
    PaymentDisputed,
    PaymentNotRefundable,
    PaymentTooOld,
    RefundAboveLeft,
    RefundsPaused,
    ReviewMissing,
    TargetMissing,
)
from payments.gateways.base import gateway_named
from payments.gateways.classes import reason_of
from payments.locks import pause_wait, payment_lock, requester_lock
from payments.models import Intent, Payment, Refund
from payments.money import Money
from payments.recording import refusal_recorded
from payments.references import refund_reference
from payments.results import RefundResult, ended
from payments.sentences import code_of, sentence
from payments.services_breaker import breaker_allow
from payments.services_intents import (
    Started,
    intent_attach,
    intent_begin,
    intent_create,
    intent_finish,
    intent_replayed,
)
from payments.services_settle import failed_later_text, intent_reason, refund_failed_later
from payments.states import Operation, PaymentState, subject_hash
from reviews.errors import ReviewUnusable
from reviews.selectors import review_find
from reviews.services import review_consume


def refund_make(
    *,
    context: RunContext,
    payment_id: UUID,
    amount_minor: int,
    currency: str,
    reason: str = "",
    review_id: UUID | None = None,
) -> RefundResult:
    """Refund a part of a payment, or join the same refund that is on its way.

    A call with the same `call_id` gets the first result. Without a review a call can only join.

    Raises:
        ReviewMissing: nobody approved this.
        ReviewUnusable: the review is not approved, was used, or approves something else.
        RefundAboveLeft: more than is left at this moment.
        DailyLimitReached: more than the requester may still refund today.
        RefundsPaused: operations have paused all refunds; the approval was not used up.
        PaymentDisputed, PaymentNotRefundable, PaymentTooOld: this payment cannot be refunded.
        AmountRefused, TargetMissing: it cannot be.
        ProcessorResting: the processor does not answer; the approval was not used up.
        IntentBusy: another refund of this payment is being checked; this one was not sent.
        StaleAttempt: another worker owns the run; nothing was written.
    """
    asked = Money(amount_minor, currency)

    def begin() -> Started:
        return _begin(context, payment_id, asked, reason=reason, review_id=review_id)

    try:
        started = intent_begin(begin)
    except (LedgerRefused, ReviewUnusable) as refusal:
        wanted = {"amount_minor": amount_minor, "currency": currency, "review": review_id}
        refusal_recorded(
            context, refusal, operation=Operation.REFUND, target_id=payment_id, after=wanted
        )
        raise
    intent = intent_finish(started, context)
    return refund_result(intent, attached=started.attached)


def refund_result(intent: Intent, *, attached: bool) -> RefundResult:
    """Say how a refund stands; a settled one says the same until the bank sends it back."""
    if (later := refund_failed_later(intent)) is not None:
        return _result_failed_later(intent, later)
    refund = Refund.objects.select_related("payment").get(intent=intent)
    amount = Money(intent.amount_minor, intent.currency)
    result = intent.result
    left = int(result["left_minor"]) if "left_minor" in result else payment_left(refund.payment)
    code = str(result.get("code", "refund.being_checked"))
    state = ended(intent.state)
    return RefundResult(
        state=state,
        reason=intent_reason(intent),
        reference=refund.reference,
        payment_reference=refund.payment.reference,
        amount=amount,
        left=Money(left, intent.currency),
        already_applied=attached and state == "succeeded",
        code=code,
        sentence=sentence(code, amount, refund.payment.reference),
        refund_id=refund.pk,
        intent_id=intent.pk,
    )


def _result_failed_later(intent: Intent, refund: Refund) -> RefundResult:
    return RefundResult(
        state="failed",
        reason=reason_of(refund.failure_code),
        reference=refund.reference,
        payment_reference=refund.payment.reference,
        amount=Money(intent.amount_minor, intent.currency),
        left=Money(payment_left(refund.payment), intent.currency),
        already_applied=False,
        code=code_of(Operation.REFUND, refund.failure_code),
        sentence=failed_later_text(refund),
        refund_id=refund.pk,
        intent_id=intent.pk,
    )


def _begin(
    context: RunContext, payment_id: UUID, asked: Money, *, reason: str, review_id: UUID | None
) -> Started:
    """Step 1: under lock, use the approval up, hold the amount back and write what is wanted."""
    with faults.commit("refund.intent", transaction.atomic(durable=True)):
        context.fence()
        pause_wait()
        requester_lock(context.requester_id)
        payment = payment_lock(payment_id)
        _in_reach(context, payment)
        replayed = intent_replayed(context, Operation.REFUND, payment.pk)
        if replayed is not None:
            return replayed
        if payment.state != PaymentState.SUCCEEDED:
            # Before the approval is asked for: none could allow this.
            raise PaymentNotRefundable
        other = intent_open(Operation.REFUND, payment.pk)
        if other is not None and review_id in {None, other.review_id}:
            return _join(context, other, asked)
        if refunds_pause() is not None:
            raise RefundsPaused
        _approval_use(payment, asked, review_id)
        _limits_hold(payment, asked, context.requester_id)
        if other is not None:
            # Approved by itself, so it is no repeat of the other one; it waits for its turn.
            raise IntentBusy(in_flight=other.unknown_at is None)
        return _write(context, payment, asked, reason=reason, review_id=review_id)


def _in_reach(context: RunContext, payment: Payment) -> None:
    bound = context.customer_id in {None, payment.customer_id}
    if not bound or payment.customer.team_id not in context.team_ids:
        raise TargetMissing


def _join(context: RunContext, other: Intent, asked: Money) -> Started:
    if Money(other.amount_minor, other.currency) != asked:
        raise IntentBusy
    return intent_attach(context, other)


def _approval_use(payment: Payment, asked: Money, review_id: UUID | None) -> None:
    if review_id is None:
        raise ReviewMissing
    review = review_find(review_id)
    subject = subject_hash(
        Operation.REFUND,
        payment.pk,
        asked.amount_minor,
        asked.currency,
        review.version if review is not None else 0,
    )
    review_consume(review_id=review_id, subject_hash=subject)


def _limits_hold(payment: Payment, asked: Money, requester_id: int) -> None:
    if payment.disputed:
        raise PaymentDisputed
    if asked.amount_minor <= 0 or asked.currency != payment.currency:
        raise AmountRefused
    if too_old(payment):
        raise PaymentTooOld
    left = payment_left(payment)
    if asked.amount_minor > left:
        raise RefundAboveLeft(Money(left, payment.currency), asked)
    limit = daily_limit(asked.currency)
    if limit is None:
        return
    room = limit - refunded_today(requester_id, asked.currency)
    if asked.amount_minor > room:
        raise DailyLimitReached(Money(max(room, 0), asked.currency), Money(limit, asked.currency))


def _write(
    context: RunContext, payment: Payment, asked: Money, *, reason: str, review_id: UUID | None
) -> Started:
    # The last lock that is taken, so that a probe holds up nobody who has not come as far.
    breaker_allow(settings.PAYMENT_GATEWAY)
    gateway = gateway_named(settings.PAYMENT_GATEWAY)
    reference = refund_reference()
    started = intent_create(
        context=context,
        operation=Operation.REFUND,
        target_id=payment.pk,
        amount_minor=asked.amount_minor,
        currency=asked.currency,
        reference=payment.reference,
        review_id=review_id,
        result={},
        body=lambda intent_id: gateway.refund_body(
            intent_id=intent_id,
            amount_minor=asked.amount_minor,
            currency=asked.currency,
            payment_ref=payment.processor_ref,
            reference=reference,
        ),
    )
    Refund.objects.create(
        reference=reference,
        payment=payment,
        intent=started.intent,
        amount_minor=asked.amount_minor,
        currency=asked.currency,
        reason=reason[:500],
        review_id=review_id,
        requested_by_id=context.requester_id,
    )
    return started
