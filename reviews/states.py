"""The states of a review, the moves between them, and the ways to decide; touches no database."""

from collections.abc import Mapping
from typing import Final

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _


class State(TextChoices):
    """Where a review stands."""

    PENDING = "pending", "Pending"
    APPROVED = "approved", "Approved"
    REJECTED = "rejected", "Rejected"
    WITHDRAWN = "withdrawn", "Withdrawn"
    EXPIRED = "expired", "Expired"


TRANSITIONS: Final[Mapping[State, frozenset[State]]] = {
    State.PENDING: frozenset({State.APPROVED, State.REJECTED, State.WITHDRAWN, State.EXPIRED}),
    State.APPROVED: frozenset(),
    State.REJECTED: frozenset(),
    State.WITHDRAWN: frozenset(),
    State.EXPIRED: frozenset(),
}
FINAL: Final = frozenset(state for state, targets in TRANSITIONS.items() if not targets)


class Decision(TextChoices):
    """What a person tried to do with a review. `change` approves with changes."""

    APPROVE = "approve", "Approve"
    CHANGE = "change", "Approve with changes"
    RAISE = "raise", "Raise the amount"
    REJECT = "reject", "Reject"
    WITHDRAW = "withdraw", "Withdraw"


class Risk(TextChoices):
    """What a reviewer is warned of; a flag says it in a sentence, with the figures of its day."""

    CUSTOMER_NEW = "customer_new", _("new customer")
    AMOUNT_UNUSUAL = "amount_unusual", _("unusual amount")
    REFUNDS_MANY = "refunds_many", _("several refunds lately")
    VALUE_UNNAMED = "value_unnamed", _("not in the staff member's words")
    VALUE_READ = "value_read", _("value read in a record")
    PAYMENT_DISPUTED = "payment_disputed", _("disputed")
    REFUNDED_MOSTLY = "refunded_mostly", _("nearly all refunded")


class Channel(TextChoices):
    """Where a person decided."""

    CHAT = "chat", "Chat"
    DESK = "desk", "Desk"
    ADMIN = "admin", "Administration"
    CLI = "cli", "Command line"


# The decision decides the state; a raise leaves the review pending, for somebody else.
STATE_AFTER: Final[Mapping[Decision, State]] = {
    Decision.APPROVE: State.APPROVED,
    Decision.CHANGE: State.APPROVED,
    Decision.RAISE: State.PENDING,
    Decision.REJECT: State.REJECTED,
    Decision.WITHDRAW: State.WITHDRAWN,
}
