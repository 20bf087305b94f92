"""Turn what the ledger answers into the two halves of a tool's answer: text and artifact.

The text is a receipt or a sentence that a customer could read; the artifact is what the router
decides on. Every refusal of the ledger has its place here.
"""

from __future__ import annotations

from typing import Final

from django.utils.translation import gettext as _

from agent_core.contract import Artifact, completed, fatal, policy_block, transient
from payments.errors import (
    AmountDiffers,
    AmountRefused,
    DailyLimitReached,
    IntentBusy,
    LedgerRefused,
    PaymentDisputed,
    PaymentTooOld,
    ProcessorResting,
    RefundAboveLeft,
    RefundsPaused,
    ReviewMissing,
    TargetMissing,
)
from payments.models import Customer, Payment, PaymentMethod
from payments.money import Money, money_format
from payments.proposals import method_text, one_line
from payments.results import ChargeResult, RefundResult, failed
from reviews.errors import ReviewUnusable

Answer = tuple[str, Artifact]

# What a rule or a person forbids; the rest of the ledger's refusals are final facts.
_POLICY: Final = (
    PaymentDisputed,
    PaymentTooOld,
    RefundAboveLeft,
    DailyLimitReached,
    RefundsPaused,
    ReviewMissing,
)
_AGAIN: Final = (AmountRefused, AmountDiffers, IntentBusy, ProcessorResting)


def not_found(reference: str) -> Answer:
    """Say that a reference is unknown: the same for a missing one and for one out of reach."""
    text = _(
        "Nothing was found under “{reference}” for the customer of this conversation. "
        "Please check the reference, or find the customer first."
    ).format(reference=short(reference))
    return text, transient("payment.not_found")


def short(text: str) -> str:
    """Return what somebody wrote, fit to be repeated inside a sentence."""
    return one_line(text)[:60]


def refused_answer(error: LedgerRefused | ReviewUnusable, reference: str) -> Answer:
    """Return the outcome of what the ledger refused; nothing was sent."""
    if isinstance(error, TargetMissing):
        return not_found(reference)
    if isinstance(error, ReviewUnusable):
        text = _("No approval allows exactly this for {reference}, so nothing was moved.")
        return text.format(reference=reference), policy_block("review.missing")
    text = f"{reference}: {error}"
    if isinstance(error, _POLICY):
        return text, policy_block(error.code, data=_figures(error))
    if isinstance(error, _AGAIN):
        return text, transient(error.code)
    return text, fatal(error.code)


def _figures(error: LedgerRefused) -> dict[str, int]:
    """Return how much would still have been possible."""
    if isinstance(error, RefundAboveLeft):
        return {"left_minor": error.left.amount_minor}
    if isinstance(error, DailyLimitReached):
        return {"room_minor": error.room.amount_minor}
    return {}


def charge_answer(result: ChargeResult, customer: Customer, method: PaymentMethod) -> Answer:
    """Return the receipt of a charge, or how it stands."""
    amount = money_format(result.amount)
    data = {
        "summary": _("{amount} for {invoice}").format(
            amount=amount, invoice=result.invoice_reference
        ),
        "reference": result.reference,
        "invoice": result.invoice_reference,
        "amount_minor": result.amount.amount_minor,
        "currency": result.amount.currency,
        "payment_id": result.payment_id,
        "intent_id": result.intent_id,
    }
    if result.state == "unknown":
        return result.sentence, transient(result.code, data={**data, "unknown": True})
    if result.state == "failed":
        return result.sentence, failed(result.reason, result.code, data)
    if result.already_applied:
        text = _(
            "{reference}: {amount} was already charged to {name} for {invoice}, with {method}. "
            "Nothing was charged again."
        )
    else:
        text = _("{reference}: {amount} was charged to {name} for {invoice}, with {method}.")
    text = text.format(
        reference=result.reference,
        amount=amount,
        name=one_line(customer.name),
        invoice=result.invoice_reference,
        method=method_text(method),
    )
    return text, completed(
        result.code, stop=True, already_applied=result.already_applied, data=data
    )


def _refund_data(result: RefundResult) -> dict[str, object]:
    amount = money_format(result.amount)
    return {
        "summary": _("{amount} of {payment}").format(
            amount=amount, payment=result.payment_reference
        ),
        "reference": result.reference,
        "payment": result.payment_reference,
        "amount_minor": result.amount.amount_minor,
        "currency": result.amount.currency,
        "left_minor": result.left.amount_minor,
        "refund_id": result.refund_id,
        "intent_id": result.intent_id,
    }


def refund_answer(result: RefundResult, payment: Payment, asked: Money | None) -> Answer:
    """Return the receipt of a refund, or how it stands; `asked` when a reviewer changed it."""
    amount, data = money_format(result.amount), _refund_data(result)
    if result.state == "unknown":
        return result.sentence, transient(result.code, data={**data, "unknown": True})
    if result.state == "failed":
        return result.sentence, failed(result.reason, result.code, data)
    if result.already_applied:
        text = _(
            "{reference}: {amount} of {payment} was already refunded to {name}, to {method}. "
            "Nothing was refunded again."
        )
    elif result.code == "refund.accepted":
        text = _(
            "{reference}: the refund of {amount} of {payment} to {name}, to {method}, was accepted "
            "by the payment processor and is on its way. The bank has not confirmed it yet."
        )
    else:
        text = _("{reference}: {amount} of {payment} was refunded to {name}, to {method}.")
    lines = [
        text.format(
            reference=result.reference,
            amount=amount,
            payment=result.payment_reference,
            name=one_line(payment.customer.name),
            method=method_text(payment.method),
        )
    ]
    if asked is not None:
        lines.append(
            _("{asked} was asked for; the reviewer changed it to {amount}.").format(
                asked=money_format(asked), amount=amount
            )
        )
    lines.append(
        _("{left} of this payment is left to refund.").format(left=money_format(result.left))
    )
    return " ".join(lines), completed(
        result.code, stop=True, already_applied=result.already_applied, data=data
    )
