"""The states of a ticket and the moves between them; touches no database."""

from collections.abc import Mapping
from typing import Final

from django.db.models import TextChoices


class State(TextChoices):
    """Where a ticket stands."""

    OPEN = "open", "Open"
    PENDING = "pending", "Pending"
    CLOSED = "closed", "Closed"


class Priority(TextChoices):
    """How soon somebody should look."""

    LOW = "low", "Low"
    NORMAL = "normal", "Normal"
    HIGH = "high", "High"


TRANSITIONS: Final[Mapping[State, frozenset[State]]] = {
    State.OPEN: frozenset({State.PENDING, State.CLOSED}),
    State.PENDING: frozenset({State.OPEN, State.CLOSED}),
    # A closed ticket is opened again rather than made anew, so nothing here is final.
    State.CLOSED: frozenset({State.OPEN}),
}
FINAL: Final = frozenset(state for state, targets in TRANSITIONS.items() if not targets)
