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
        "The bank could not answer the charge of {amount} for {target}. Nothing was charged. "
        "It may work later."
    ),
    "charge.refused": gettext_noop(
        "The payment processor refused the charge of {amount} for {target}. Nothing was charged."
    ),
    "refund.completed": gettext_noop("{amount} of {target} was refunded."),
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


def notice(code: str, amount: Money, target: str, reference: str) -> str:
    """Say how something that was being checked has ended; `reference` is what came of it."""
    text = sentence(code, amount, target)
    return (
        _("{text} Its reference is {reference}.").format(text=text, reference=reference)
        if reference
        else text
    )
