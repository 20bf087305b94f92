"""The checks of refund and charge reviews: what a reviewer may change, and whether it still holds.

Reached from `reviews` by kind, through the settings; reads the ledger anew at each decision.
"""

from __future__ import annotations

from collections.abc import Mapping

from django.contrib.auth.models import User
from django.utils.translation import gettext as _

from agent_core.policy import ReviewProposal
from payments.balances import payment_left
from payments.facts import payment_left_for
from payments.models import Invoice, Payment
from payments.money import Money, MoneyInvalid, money_format, money_parse
from payments.proposals import RefundAsk, reason_text, refund_proposal
from payments.states import InvoiceState, PaymentState
from reviews.errors import ChangeRefused
from reviews.models import Review

_AMOUNT = "amount"
_REASON = "reason"


class RefundSubject:
    """A refund: its amount may change within what is left, and its reason; nothing else."""

    def changed(self, review: Review, changes: Mapping[str, str], actor: User) -> ReviewProposal:
        """Return the proposal with another amount or reason.

        Raises:
            ChangeRefused: another field, no clean amount, or more than is left.
        """
        for name, value in changes.items():
            if name not in (_AMOUNT, _REASON) or not isinstance(value, str):
                raise ChangeRefused(_("Only the amount and the reason can be changed."))
        payment = _payment(review)
        if payment is None:
            raise ChangeRefused(_("The payment of this request is not there any more."))
        held = payment_left_for(payment, review)
        amount_minor = review.amount_minor or 0
        if _AMOUNT in changes:
            amount_minor = _amount(changes[_AMOUNT], payment)
        if amount_minor > held.left_minor:
            raise ChangeRefused(
                _(
                    "{amount} is more than is left on {payment}: {left} can still be refunded."
                ).format(
                    amount=_money(amount_minor, payment),
                    payment=payment.reference,
                    left=_money(held.left_minor, payment),
                )
            )
        return refund_proposal(
            RefundAsk(
                payment=payment,
                amount_minor=amount_minor,
                refunded_minor=held.refunded_minor,
                left_minor=held.left_minor,
                reason=reason_text(changes.get(_REASON, _reason_now(review))),
                why=_card_text(review, _("Why you")),
                asked_by=_card_text(review, _("Asked by")),
                origins=_origins(review),
                version=review.version + 1,
            )
        )

    def stale(self, review: Review) -> str | None:
        """Say why this refund can no longer be approved, with the figures of this moment."""
        payment = _payment(review)
        if payment is None or payment.state != PaymentState.SUCCEEDED:
            return _("There is nothing to refund any more.")
        if payment.disputed:
            return _(
                "{payment} has been disputed at the bank since this was asked, so it cannot be "
                "refunded here."
            ).format(payment=payment.reference)
        left = payment_left(payment)
        if (review.amount_minor or 0) > left:
            return _(
                "{payment} changed since this was asked: {left} can still be refunded. Lower the "
                "amount or reject the request."
            ).format(payment=payment.reference, left=_money(left, payment))
        return None


class ChargeSubject:
    """A charge: an invoice is charged in full or not at all, so nothing of it can change."""

    def changed(self, review: Review, changes: Mapping[str, str], actor: User) -> ReviewProposal:
        """Refuse.

        Raises:
            ChangeRefused: always.
        """
        raise ChangeRefused(_("An invoice is charged in full, so nothing can be changed here."))

    def stale(self, review: Review) -> str | None:
        """Say why this invoice can no longer be charged."""
        invoice = _invoice(review)
        if invoice is None:
            return _("There is nothing to charge any more.")
        if invoice.state != InvoiceState.OPEN:
            return _("{invoice} is {state} by now, so it is not charged again.").format(
                invoice=invoice.reference, state=InvoiceState(invoice.state).label
            )
        if invoice.amount_minor != review.amount_minor:
            return _("The amount of {invoice} changed since this was asked.").format(
                invoice=invoice.reference
            )
        return None


def _payment(review: Review) -> Payment | None:
    if review.subject_id is None:
        return None
    rows = Payment.objects.select_related("customer", "method")
    return rows.filter(pk=review.subject_id).first()


def _invoice(review: Review) -> Invoice | None:
    if review.subject_id is None:
        return None
    return Invoice.objects.filter(pk=review.subject_id).first()


def _amount(text: str, payment: Payment) -> int:
    """Read the reviewer's amount like any other text of an amount.

    Raises:
        ChangeRefused: it is no clear amount above zero in the payment's currency.
    """
    try:
        amount_minor = money_parse(text, payment.currency)
    except MoneyInvalid as error:
        raise ChangeRefused(str(error)) from error
    if amount_minor <= 0:
        raise ChangeRefused(_("A refund must be above zero. Reject the request to refund nothing."))
    return amount_minor


def _reason_now(review: Review) -> str:
    return str(review.changes.get(_REASON, review.original.get(_REASON, "")))


def _card_text(review: Review, label: str) -> str:
    """Return a row that the change does not touch, as the card has it."""
    return next((row["text"] for row in review.card if row["label"] == label), "")


def _origins(review: Review) -> list[dict[str, str]]:
    """Keep what the card says of where the asked values came from; it stands behind the rest."""
    labels = [row["label"] for row in review.card]
    last = labels.index(_("Customer")) if _("Customer") in labels else len(labels)
    return [dict(row) for row in review.card[last + 1 :]]


def _money(amount_minor: int, payment: Payment) -> str:
    return money_format(Money(amount_minor, payment.currency))
