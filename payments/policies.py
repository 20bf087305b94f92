"""Say whether a refund or a charge may run, waits for a person, or is refused. Pure: facts in,
verdict out; `tools.py` looks the facts up, the gate asks here, the ledger checks again under lock.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from django.utils.translation import gettext as _

from agent_core.policy import Policy, Proposal, Verdict
from payments.money import Money, money_format

Facts = Mapping[str, Any]

REQUEST_REFUND: Final = "payments.request_refund"
REQUEST_CHARGE: Final = "payments.request_charge"


def _amount(facts: Facts, key: str) -> str:
    return money_format(Money(int(facts[key]), str(facts["currency"])))


def _right_missing(right: str, text: str) -> Policy:
    def right_missing(proposal: Proposal, facts: Facts) -> Verdict | None:
        """Block whoever may not ask for this at all."""
        if right in proposal.rights:
            return None
        return Verdict(kind="block", rule="right.missing", text=_(text), data={"right": right})

    return right_missing


def refund_begun(proposal: Proposal, facts: Facts) -> Verdict | None:
    """Pass the replay of a call that has its intent; it still has its approval to show.

    It stands before the right: whoever lost it meanwhile is still told what became of the money.
    """
    return refund_always(proposal, facts) if facts["begun"] else None


def refund_going(proposal: Proposal, facts: Facts) -> Verdict | None:
    """Pass the same wish said again: it attaches to the open refund and sends nothing."""
    if facts["attaches"]:
        return Verdict(kind="allow", rule="refund.attaches")
    return None


def refunds_paused(proposal: Proposal, facts: Facts) -> Verdict | None:
    """Block every new refund while operations have paused them all."""
    if not facts["paused"]:
        return None
    text = _(
        "Refunds are paused by operations for now. Nothing was refunded and nobody was asked; "
        "please ask again when they go on."
    )
    return Verdict(kind="block", rule="refund.paused", text=text)


def payment_disputed(proposal: Proposal, facts: Facts) -> Verdict | None:
    """Block a refund while the bank decides: the customer could be paid twice."""
    if not facts["disputed"]:
        return None
    text = _(
        "{payment} is disputed at the bank, so it cannot be refunded here. "
        "The dispute itself decides who gets the money. Nothing was refunded."
    ).format(payment=facts["payment"])
    return Verdict(kind="block", rule="payment.disputed", text=text)


def refund_expired(proposal: Proposal, facts: Facts) -> Verdict | None:
    """Block what is so old that no bank would deliver it."""
    if not facts["too_old"]:
        return None
    text = _(
        "{payment} is too old to be refunded to what it was paid with. Nothing was refunded. "
        "Agree with the customer on another way."
    ).format(payment=facts["payment"])
    return Verdict(kind="block", rule="refund.expired", text=text)


def refunded_already(proposal: Proposal, facts: Facts) -> Verdict | None:
    """Block the refund of what was given back in full, and show as what."""
    if not facts["refunded_as"]:
        return None
    text = _(
        "Nothing is left to refund on {payment}: it was refunded in full already, as {refunds}. "
        "Nothing was refunded again."
    ).format(payment=facts["payment"], refunds=facts["refunded_as"])
    return Verdict(kind="block", rule="refund.already_refunded", text=text)


def refund_above_left(proposal: Proposal, facts: Facts) -> Verdict | None:
    """Block more than the payment still holds; what waits for a decision counts as gone."""
    wanted, left = int(facts["wanted_minor"]), int(facts["left_minor"])
    if 0 < wanted <= left:
        return None
    values = {
        "payment": facts["payment"],
        "wanted": _amount(facts, "wanted_minor"),
        "left": _amount(facts, "left_minor"),
        "waiting": _amount(facts, "waiting_minor"),
        "beside": _amount(facts, "beside_minor"),
    }
    if facts["beside_minor"]:
        text = _(
            "{beside} of {payment} is asked for in the same message; beside it {left} can still be "
            "refunded, and {wanted} is more. Nothing was refunded."
        )
    elif facts["waiting_minor"]:
        text = _(
            "{waiting} of {payment} already waits for a decision; beside it {left} can still be "
            "refunded. Nothing was refunded now."
        )
    elif left <= 0:
        text = _("Nothing is left to refund on {payment}. Nothing was refunded.")
    else:
        text = _(
            "{wanted} is more than is left on {payment}: {left} can still be refunded. "
            "Nothing was refunded."
        )
    data = {"left_minor": left, "wanted_minor": wanted}
    return Verdict(kind="block", rule="refund.above_left", text=text.format(**values), data=data)


def refund_daily_limit(proposal: Proposal, facts: Facts) -> Verdict | None:
    """Block what would take the requester above the day's limit, counting what still waits."""
    limit = facts["daily_limit_minor"]
    if limit is None or int(facts["today_minor"]) + int(facts["wanted_minor"]) <= int(limit):
        return None
    room = max(0, int(limit) - int(facts["today_minor"]))
    text = _(
        "With {wanted} more, your refunds today would be above your daily limit of {limit}. "
        "{room} is still free today. Nothing was refunded."
    ).format(
        wanted=_amount(facts, "wanted_minor"),
        limit=_amount(facts, "daily_limit_minor"),
        room=money_format(Money(room, str(facts["currency"]))),
    )
    data = {"limit_minor": int(limit), "today_minor": int(facts["today_minor"]), "room_minor": room}
    return Verdict(kind="block", rule="refund.daily_limit", text=text, data=data)


def refund_always(proposal: Proposal, facts: Facts) -> Verdict | None:
    """Send every other refund to a second person."""
    return Verdict(
        kind="review",
        rule="refund.always",
        text=_("Every refund needs a second person, whatever its amount."),
    )


def charge_begun(proposal: Proposal, facts: Facts) -> Verdict | None:
    """Pass the replay of a call that has its intent, whoever lost the right meanwhile."""
    return Verdict(kind="allow", rule="charge.attaches") if facts["begun"] else None


def charge_going(proposal: Proposal, facts: Facts) -> Verdict | None:
    """Pass what moves nothing new: a charge on its way, an invoice that is paid or void."""
    if facts["attaches"]:
        return Verdict(kind="allow", rule="charge.attaches")
    if not facts["open"]:
        return Verdict(kind="allow", rule="charge.not_open")
    return None


def charge_above(proposal: Proposal, facts: Facts) -> Verdict | None:
    """Send a big charge, or one in a currency nobody set a limit for, to a second person."""
    limit = facts["review_above_minor"]
    if limit is None:
        text = _("No limit is set for charges in this currency, so a second person decides.")
        return Verdict(kind="review", rule="charge.above", text=text)
    if int(facts["amount_minor"]) <= int(limit):
        return None
    text = _("Charges above {limit} need a second person.").format(
        limit=_amount(facts, "review_above_minor")
    )
    data = {"limit_minor": int(limit)}
    return Verdict(kind="review", rule="charge.above", text=text, data=data)


def charge_named(proposal: Proposal, facts: Facts) -> Verdict | None:
    """Allow what the staff member named in their own words: the invoice or its amount."""
    if not facts["named"]:
        return None
    return Verdict(kind="allow", rule="charge.named")


def charge_unnamed(proposal: Proposal, facts: Facts) -> Verdict | None:
    """Have the staff member confirm what only the assistant named."""
    return Verdict(
        kind="review",
        rule="charge.unnamed",
        text=_("Neither the invoice nor its amount stands in the staff member's own words."),
    )


REFUND_POLICIES: Final[tuple[Policy, ...]] = (
    refund_begun,
    _right_missing(REQUEST_REFUND, "Your role may not ask for refunds. Nothing was refunded."),
    refund_going,
    refunds_paused,
    payment_disputed,
    refunded_already,
    refund_expired,
    refund_above_left,
    refund_daily_limit,
    refund_always,
)

CHARGE_POLICIES: Final[tuple[Policy, ...]] = (
    charge_begun,
    _right_missing(REQUEST_CHARGE, "Your role may not charge customers. Nothing was charged."),
    charge_going,
    charge_above,
    charge_named,
    charge_unnamed,
)

POLICIES: Final[Mapping[str, tuple[Policy, ...]]] = {
    "refund_request": REFUND_POLICIES,
    "charge_invoice": CHARGE_POLICIES,
}
