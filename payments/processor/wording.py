"""Say what a comparison found, to whoever looks into it, in their language and with their marks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from payments.money import Money, money_format
from payments.processor.states import Difference

KINDS: Final[Mapping[str, Any]] = {
    "payment": gettext_lazy("Payment"),
    "refund": gettext_lazy("Refund"),
    "dispute": gettext_lazy("Dispute"),
}
STATES: Final[Mapping[str, Any]] = {
    "waiting": gettext_lazy("being checked"),
    "accepted": gettext_lazy("on its way"),
    "succeeded": gettext_lazy("succeeded"),
    "failed": gettext_lazy("failed"),
    "open": gettext_lazy("open"),
    "won": gettext_lazy("won"),
    "lost": gettext_lazy("lost"),
    "disputed": gettext_lazy("disputed"),
}
WHAT_TO_DO: Final[Mapping[str, Any]] = {
    Difference.PAYMENT_UNKNOWN: gettext_lazy(
        "Find out there whose money this is, and enter it or give it back."
    ),
    Difference.REFUND_OUTSIDE: gettext_lazy("Enter it, so that no more is refunded than is left."),
    Difference.REFUND_OF_UNKNOWN: gettext_lazy("Find out there what was refunded, and why."),
    Difference.DISPUTE_MISSING: gettext_lazy("Enter it, so that nothing is refunded meanwhile."),
    Difference.DISPUTE_OF_UNKNOWN: gettext_lazy("Answer it there; the payment is not ours to see."),
    Difference.MISSING_THERE: gettext_lazy("Find out whether the money moved, and by which way."),
    Difference.UNSETTLED: gettext_lazy(
        "It is still asked about; look there whether it was done, and do not repeat it."
    ),
    Difference.FLAG_WITHOUT_DISPUTE: gettext_lazy("Look there; if it is so, take the mark away."),
    Difference.AMOUNT: gettext_lazy("Find out which amount moved; nothing is changed by itself."),
    Difference.CURRENCY: gettext_lazy("Find out which money moved; nothing is changed by itself."),
    Difference.STATE: gettext_lazy("Take over the later state."),
}


def finding_sentence(finding: Mapping[str, Any]) -> str:
    """Say one finding: what it is, what each side says, and what is to be done or was done."""
    names = " ".join(x for x in (finding["reference"], _in_marks(finding["processor_ref"])) if x)
    todo = _("Put right.") if finding["repaired"] else str(WHAT_TO_DO[finding["difference"]])
    return _("{kind} {names}: we say {ours}, the processor says {theirs}. {todo}").format(
        kind=KINDS[finding["kind"]],
        names=names,
        ours=_side(finding["ours"]),
        theirs=_side(finding["theirs"]),
        todo=todo,
    )


def total_sentence(total: Mapping[str, Any]) -> str:
    """Say what each side has moved of a currency."""
    kinds = {"payment": _("Payments"), "refund": _("Refunds")}
    ours, theirs, apart = (
        money_format(Money(total[side], total["currency"]))
        for side in ("ours", "theirs", "difference")
    )
    return _("{kind} in {currency}: ours {ours}, the processor's {theirs}, apart {apart}").format(
        kind=kinds[total["kind"]],
        currency=total["currency"],
        ours=ours,
        theirs=theirs,
        apart=apart,
    )


def _in_marks(name: str) -> str:
    return f"({name})" if name else ""


def _side(side: Mapping[str, Any] | None) -> str:
    if side is None:
        return _("nothing")
    amount = money_format(Money(side["amount_minor"], side["currency"]))
    return f"{amount}, {STATES[side['state']]}"
