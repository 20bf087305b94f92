"""Charge an invoice: its open amount, in full, once, however many ask."""

from __future__ import annotations

from uuid import UUID

from django.conf import settings
from django.db import transaction

from agent_core import faults
from agent_core.contract import RunContext
from payments.balances import charge_needs_review, intent_open
from payments.errors import (
    AmountDiffers,
    InvoiceNotOpen,
    LedgerRefused,
    ReviewMissing,
    TargetMissing,
)
from payments.gateways.base import gateway_named
from payments.locks import invoice_lock
from payments.models import Intent, Invoice, Payment, PaymentMethod
from payments.money import Money
from payments.recording import refusal_recorded
from payments.results import ChargeResult, ended
from payments.sentences import sentence
from payments.services_breaker import breaker_allow
from payments.services_intents import (
    Started,
    intent_attach,
    intent_begin,
    intent_create,
    intent_finish,
    intent_replayed,
)
from payments.services_settle import intent_reason
from payments.states import InvoiceState, Operation, PaymentState, subject_hash
from reviews.errors import ReviewUnusable
from reviews.selectors import review_find
from reviews.services import review_consume


def charge_make(
    *,
    context: RunContext,
    invoice_id: UUID,
    method_id: UUID,
    amount_minor: int,
    currency: str,
    review_id: UUID | None = None,
) -> ChargeResult:
    """Charge an invoice on a saved method, or join the charge that is on its way.

    A paid invoice gives its payment again. A call with the same `call_id` gets the first result.

    Raises:
        AmountDiffers: this is not the invoice's open amount.
        InvoiceNotOpen: it is void, or was paid in some other amount.
        ReviewMissing: it is above the limit and nobody approved it.
        ReviewUnusable: the review is not approved, was used, or approves something else.
        ProcessorResting: the processor does not answer; nothing new begins for now.
        TargetMissing: no such invoice or method in reach.
        StaleAttempt: another worker owns the run; nothing was written.
    """
    asked = Money(amount_minor, currency)

    def begin() -> Started | Payment:
        return _begin(context, invoice_id, method_id, asked, review_id=review_id)

    try:
        started = intent_begin(begin)
    except (LedgerRefused, ReviewUnusable) as refusal:
        wanted = {"amount_minor": amount_minor, "currency": currency, "review": review_id}
        refusal_recorded(
            context, refusal, operation=Operation.CHARGE, target_id=invoice_id, after=wanted
        )
        raise
    if isinstance(started, Payment):
        return _paid_result(started)
    intent = intent_finish(started, context)
    return charge_result(intent, attached=started.attached)


def charge_result(intent: Intent, *, attached: bool) -> ChargeResult:
    """Say how a charge stands; a settled one says the same for ever."""
    amount = Money(intent.amount_minor, intent.currency)
    result = intent.result
    code = str(result.get("code", "charge.being_checked"))
    state = ended(intent.state)
    return ChargeResult(
        state=state,
        reason=intent_reason(intent),
        reference=str(result.get("reference", "")),
        invoice_reference=str(result["target"]),
        amount=amount,
        method_id=UUID(result["method"]),
        already_applied=attached and state == "succeeded",
        code=code,
        sentence=sentence(code, amount, str(result["target"])),
        payment_id=UUID(result["payment"]) if "payment" in result else None,
        intent_id=intent.pk,
    )


def _begin(
    context: RunContext,
    invoice_id: UUID,
    method_id: UUID,
    asked: Money,
    *,
    review_id: UUID | None,
) -> Started | Payment:
    """Step 1: under lock, check the amount, use an approval up and write what is wanted."""
    with faults.commit("charge.intent", transaction.atomic(durable=True)):
        context.fence()
        invoice = invoice_lock(invoice_id)
        _in_reach(context, invoice)
        replayed = intent_replayed(context, Operation.CHARGE, invoice.pk)
        if replayed is not None:
            return replayed
        open_amount = Money(invoice.amount_minor, invoice.currency)
        if invoice.state != InvoiceState.OPEN:
            return _payment_again(invoice, asked)
        if asked != open_amount:
            raise AmountDiffers(open_amount)
        other = intent_open(Operation.CHARGE, invoice.pk)
        if other is not None:
            return intent_attach(context, other)
        method = PaymentMethod.objects.filter(pk=method_id, customer=invoice.customer_id).first()
        if method is None:
            raise TargetMissing
        _approval_use(invoice, review_id)
        return _write(context, invoice, method, review_id)


def _in_reach(context: RunContext, invoice: Invoice) -> None:
    bound = context.customer_id in {None, invoice.customer_id}
    if not bound or invoice.customer.team_id not in context.team_ids:
        raise TargetMissing


def _payment_again(invoice: Invoice, asked: Money) -> Payment:
    payment = Payment.objects.filter(invoice=invoice, state=PaymentState.SUCCEEDED).first()
    if payment is None or Money(payment.amount_minor, payment.currency) != asked:
        raise InvoiceNotOpen
    return payment


def _approval_use(invoice: Invoice, review_id: UUID | None) -> None:
    if review_id is None:
        if charge_needs_review(invoice.amount_minor, invoice.currency):
            raise ReviewMissing
        return
    review = review_find(review_id)
    subject = subject_hash(
        Operation.CHARGE,
        invoice.pk,
        invoice.amount_minor,
        invoice.currency,
        review.version if review is not None else 0,
    )
    review_consume(review_id=review_id, subject_hash=subject)


def _write(
    context: RunContext, invoice: Invoice, method: PaymentMethod, review_id: UUID | None
) -> Started:
    # The last lock that is taken, so that a probe holds up nobody who has not come as far.
    breaker_allow(settings.PAYMENT_GATEWAY)
    gateway = gateway_named(settings.PAYMENT_GATEWAY)
    return intent_create(
        context=context,
        operation=Operation.CHARGE,
        target_id=invoice.pk,
        amount_minor=invoice.amount_minor,
        currency=invoice.currency,
        reference=invoice.reference,
        review_id=review_id,
        result={"method": str(method.pk), "target": invoice.reference},
        body=lambda intent_id: gateway.charge_body(
            intent_id=intent_id,
            amount_minor=invoice.amount_minor,
            currency=invoice.currency,
            method_ref=method.processor_ref,
            reference=invoice.reference,
        ),
    )


def _paid_result(payment: Payment) -> ChargeResult:
    amount = Money(payment.amount_minor, payment.currency)
    invoice = payment.invoice.reference if payment.invoice is not None else ""
    return ChargeResult(
        state="succeeded",
        reason="completed",
        reference=payment.reference,
        invoice_reference=invoice,
        amount=amount,
        method_id=payment.method_id,
        already_applied=True,
        code="charge.completed",
        sentence=sentence("charge.completed", amount, invoice),
        payment_id=payment.pk,
        intent_id=payment.intent_id,
    )
