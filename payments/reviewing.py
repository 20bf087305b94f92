"""The checks of refund and charge reviews: what a reviewer may change, and whether it still holds.

Reached from `reviews` by kind, through the settings; reads the ledger anew at each decision.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace
from typing import Final

from django.contrib.auth.models import User
from django.utils.translation import gettext as _

from agent_core.contract import RunContext
from agent_core.policy import Proposal, ReviewProposal, Verdict, verdict_of
from payments.facts import Left, payment_left_for, refund_facts_of
from payments.models import Invoice, Payment
from payments.money import Money, MoneyInvalid, money_format, money_parse
from payments.policies import REFUND_POLICIES
from payments.proposals import (
    ChargeAsk,
    RefundAsk,
    charge_proposal,
    reason_text,
    refund_proposal,
)
from payments.risks import origin_flags_kept
from payments.selectors import scope_of
from payments.states import InvoiceState, PaymentState
from reviews.errors import ChangeRefused
from reviews.models import Review
from reviews.states import State
from reviews.subjects import CardNow
from reviews.words import person_name

_AMOUNT = "amount"
_REASON = "reason"
# Rules about the one who asked: their sentences say "you" to that person.
_PERSONAL: Final = ("right.missing", "refund.daily_limit")


class RefundSubject:
    """A refund: its amount may change within what is left, and its reason; nothing else."""

    def changed(self, review: Review, changes: Mapping[str, str], actor: User) -> ReviewProposal:
        """Return the proposal with another amount or reason, gated anew as if it were asked so.

        Raises:
            ChangeRefused: another field, no clean amount, or what a rule blocks.
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
        blocked = _blocked(review, payment, amount_minor, held)
        if blocked is not None:
            raise ChangeRefused(_blocked_text(review, blocked))
        reason = changes.get(_REASON, _reason_now(review))
        ask = _ask(review, payment, held, amount_minor=amount_minor, reason=reason)
        return refund_proposal(replace(ask, version=review.version + 1))

    def card_now(self, review: Review) -> CardNow:
        """Return the card with what was refunded, waits, is left and is to be watched now."""
        payment = _payment(review)
        if payment is None:
            return CardNow(review.card, review.warnings)
        held = payment_left_for(payment, review)
        ask = _ask(
            review,
            payment,
            held,
            amount_minor=review.amount_minor or 0,
            reason=_reason_now(review),
        )
        return _renewed(review, refund_proposal(ask), (_("Effect"), _("Watch")))

    def stale(self, review: Review) -> str | None:
        """Say why this refund can no longer be approved, with the figures of this moment."""
        payment = _payment(review)
        if payment is None or payment.state != PaymentState.SUCCEEDED:
            return _("There is nothing to refund any more.")
        # As it will be judged once it is approved: what waits beside it does not count then.
        approved = copy(review)
        approved.state = State.APPROVED
        held = payment_left_for(payment, approved)
        blocked = _blocked(approved, payment, review.amount_minor or 0, held)
        if blocked is None:
            return None
        if blocked.rule == "payment.disputed":
            return _(
                "{payment} has been disputed at the bank since this was asked, so it cannot be "
                "refunded here."
            ).format(payment=payment.reference)
        if blocked.rule == "refund.above_left":
            return _(
                "{payment} changed since this was asked: {left} can still be refunded. Lower the "
                "amount or reject the request."
            ).format(payment=payment.reference, left=_money(held.left_minor, payment))
        return _blocked_text(review, blocked)


class ChargeSubject:
    """A charge: an invoice is charged in full or not at all, so nothing of it can change."""

    def card_now(self, review: Review) -> CardNow:
        """Return the card with the disputes of now; the rest of a charge stands still."""
        invoice = _invoice(review)
        if invoice is None:
            return CardNow(review.card, review.warnings)
        ask = ChargeAsk(
            invoice=invoice,
            method=None,
            why="",
            asked_by="",
            requester_confirms=False,
            origin_flags=origin_flags_kept(review.flags),
        )
        return _renewed(review, charge_proposal(ask), (_("Watch"),))

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


def _ask(
    review: Review, payment: Payment, held: Left, *, amount_minor: int, reason: str
) -> RefundAsk:
    """Return what the review asks, with this amount and reason and what the payment holds now."""
    return RefundAsk(
        payment=payment,
        amount_minor=amount_minor,
        refunded_minor=held.refunded_minor,
        waiting_minor=held.waiting_minor + held.beside_minor,
        left_minor=held.left_minor,
        reason=reason_text(reason),
        why=_card_text(review, _("Why you")),
        asked_by=_card_text(review, _("Asked by")),
        call_id=review.call_id,
        origins=_origins(review),
        origin_flags=origin_flags_kept(review.flags),
        version=review.version,
    )


def _renewed(review: Review, now: ReviewProposal, labels: Sequence[str]) -> CardNow:
    """Put the rows of these labels as they read now into the card as it was asked."""
    texts = {row["label"]: row["text"] for row in now.card if row["label"] in labels}
    rows = [{**row, "text": texts.get(row["label"], row["text"])} for row in review.card]
    return CardNow(rows, list(now.warnings), now.flags)


def _blocked(review: Review, payment: Payment, amount_minor: int, held: Left) -> Verdict | None:
    """Return the rule that blocks this refund of so much, over the requester's rights and day."""
    asker = review.requested_by
    context = RunContext(
        run_id=review.run_id,
        attempt=0,
        conversation_id=review.conversation_id,
        requester_id=asker.pk,
        requester_name=person_name(asker),
        rights=frozenset(asker.get_all_permissions()),
        team_ids=scope_of(asker),
        customer_id=payment.customer_id,
        call_id=review.call_id,
    )
    facts = refund_facts_of(context, payment, amount_minor, own=review, held=held)
    proposal = Proposal(
        tool="refund_request", arguments={}, rights=context.rights, customer_id=context.customer_id
    )
    # What is decided on is a refund of its own: it joins none that is on its way.
    verdict = verdict_of(REFUND_POLICIES, proposal, {**facts, "attaches": False})
    return verdict if verdict.kind == "block" else None


def _blocked_text(review: Review, blocked: Verdict) -> str:
    """Return the rule's sentence; the reviewer reads whom one that says "you" is about."""
    if blocked.rule == "refund.paused":
        return _paused()
    if blocked.rule not in _PERSONAL:
        return blocked.text
    return _("{name}, who asked, would be told: {text}").format(
        name=person_name(review.requested_by), text=blocked.text
    )


def _paused() -> str:
    return _(
        "Refunds are paused by operations for now, so this cannot be approved. It stays open: it "
        "can be approved when they go on, or rejected."
    )


def _payment(review: Review) -> Payment | None:
    if review.subject_id is None:
        return None
    rows = Payment.objects.select_related("customer", "method")
    return rows.filter(pk=review.subject_id).first()


def _invoice(review: Review) -> Invoice | None:
    if review.subject_id is None:
        return None
    return Invoice.objects.select_related("customer").filter(pk=review.subject_id).first()


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
