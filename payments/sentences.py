"""The ledger's own sentences: how a charge or refund ended, for the staff member and the customer.

Pure. No code, reason word or processor's text reaches a person; the log has those.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from payments.money import Money, money_format

_SENTENCES: Final[Mapping[str, str]] = {
    "charge.completed": gettext_noop("{amount} was charged for {target}."),
    "charge.being_checked": gettext_noop(
        "The charge of {amount} for {target} is being checked with the payment processor. "
        "You get a message here when it is settled."
    ),
    "charge.declined": gettext_noop(
        "The charge of {amount} for {target} was declined. Nothing was charged. "
        "Another payment method may work."
    ),
    "charge.declined_for_now": gettext_noop(
        "The bank did not allow the charge of {amount} for {target} for now. Nothing was charged. "
        "It may work later."
    ),
    "charge.card_details": gettext_noop(
        "The bank declined the charge of {amount} for {target} because the card's details do not "
        "match. Nothing was charged. Check number, expiry date and security code with the "
        "customer, or use another payment method."
    ),
    "charge.card_expired": gettext_noop(
        "The card for the charge of {amount} for {target} has expired. Nothing was charged. "
        "Ask the customer for a new card or another payment method."
    ),
    "charge.card_limit": gettext_noop(
        "The charge of {amount} for {target} is above what this card allows for now. Nothing was "
        "charged. Ask the customer for another payment method, or to speak to their bank."
    ),
    "charge.card_unsuited": gettext_noop(
        "This card cannot be used for the charge of {amount} for {target}. Nothing was charged. "
        "Ask the customer for another payment method."
    ),
    "charge.funds_short": gettext_noop(
        "The card does not have enough funds for the charge of {amount} for {target}. Nothing was "
        "charged. Ask the customer for another payment method."
    ),
    "charge.customer_needed": gettext_noop(
        "The bank wants the customer to confirm the charge of {amount} for {target} themselves, "
        "which cannot be done from here. Nothing was charged. Ask the customer to pay online, or "
        "for another payment method."
    ),
    "charge.amount_unfit": gettext_noop(
        "The bank does not take {amount} for {target} as an amount. Nothing was charged. "
        "Check the invoice's amount and the customer's limits."
    ),
    "charge.duplicate": gettext_noop(
        "The bank takes the charge of {amount} for {target} for a repeat of an earlier one. "
        "Nothing was charged. Look at the customer's payments before it is tried again."
    ),
    "charge.unavailable": gettext_noop(
        "Payments are not available now, so {amount} was not charged for {target}. "
        "Our operators have been told; please try again later."
    ),
    "charge.refused": gettext_noop(
        "The payment processor refused the charge of {amount} for {target}. Nothing was charged."
    ),
    "refund.completed": gettext_noop("{amount} of {target} was refunded."),
    "refund.accepted": gettext_noop(
        "The payment processor has accepted the refund of {amount} for {target}. It is on its way; "
        "the bank has not confirmed it yet."
    ),
    "refund.being_checked": gettext_noop(
        "The refund of {amount} for {target} is being checked with the payment processor. "
        "You get a message here when it is settled."
    ),
    "refund.disputed": gettext_noop(
        "{target} is disputed at the bank, so {amount} could not be refunded. Nothing was refunded."
    ),
    "refund.already_refunded": gettext_noop(
        "{target} had already been refunded in full at the payment processor. "
        "No further money was sent."
    ),
    "refund.above_left": gettext_noop(
        "The payment processor has less than {amount} left on {target}. Nothing was refunded."
    ),
    "refund.amount_unfit": gettext_noop(
        "The payment processor does not take {amount} of {target} as an amount to refund. "
        "Nothing was refunded. Check the amount."
    ),
    "refund.undelivered": gettext_noop(
        "The refund of {amount} for {target} could not be delivered to the way it was paid with. "
        "The customer does not have the money. Agree on another way with them and open a ticket "
        "for it."
    ),
    "refund.unavailable": gettext_noop(
        "Refunds are not available now, so {amount} of {target} was not refunded. "
        "Our operators have been told; please ask again later."
    ),
    "refund.refused": gettext_noop(
        "The payment processor refused the refund of {amount} for {target}. Nothing was refunded."
    ),
}


def code_of(operation: str, failure: str) -> str:
    """Return the code of a failure; one without a sentence of its own counts as refused."""
    code = f"{operation}.{failure}"
    return code if code in _SENTENCES else f"{operation}.refused"


def sentence(code: str, amount: Money, target: str) -> str:
    """Say how it ended. `target` is the invoice's or the payment's reference."""
    return _(_SENTENCES[code]).format(amount=money_format(amount), target=target)


def failed_later(amount: Money, target: str, reference: str) -> str:
    """Say in a conversation that a refund has failed which had come to a good end."""
    return _(
        "The refund {reference} of {amount} for {target} has failed at the bank after the payment "
        "processor had accepted it. The customer does not have the money, and it can be refunded "
        "again. A ticket is open for it."
    ).format(reference=reference, amount=money_format(amount), target=target)


def case(amount: Money, target: str, reference: str) -> tuple[str, str]:
    """Return subject and text of the ticket for a refund that failed after it was accepted."""
    values = {"amount": money_format(amount), "target": target, "reference": reference}
    subject = _("Refund {reference} of {amount} has failed at the bank")
    body = _(
        "The payment processor had accepted the refund {reference} of {amount} for {target}; the "
        "bank has sent it back. The customer does not have the money. The amount counts as not "
        "refunded again. Agree with the customer on how they get it, then ask for a new refund."
    )
    return subject.format(**values), body.format(**values)


def notice(code: str, amount: Money, target: str, reference: str) -> str:
    """Say how something that was being checked has ended; `reference` is what came of it."""
    text = sentence(code, amount, target)
    return (
        _("{text} Its reference is {reference}.").format(text=text, reference=reference)
        if reference
        else text
    )
