"""The states of a run and of a call, and the moves between them. Nobody restates them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _


class RunState(TextChoices):
    """Where a run stands."""

    PENDING = "pending", _("in line")
    QUEUED = "queued", _("queued")
    RUNNING = "running", _("working")
    WAITING = "waiting", _("waiting for approval")
    DECIDED = "decided", _("decided, going on soon")
    DONE = "done", _("done")
    CANCELLED = "cancelled", _("cancelled")
    FAILED = "failed", _("failed")
    PARKED = "parked", _("set aside")


RUN_MOVES: Final[Mapping[str, frozenset[str]]] = {
    RunState.PENDING: frozenset({RunState.QUEUED, RunState.CANCELLED}),
    RunState.QUEUED: frozenset({RunState.RUNNING, RunState.CANCELLED}),
    RunState.RUNNING: frozenset(
        {
            # Handed back by its worker, or taken from a dead one.
            RunState.QUEUED,
            RunState.WAITING,
            RunState.DONE,
            RunState.CANCELLED,
            RunState.FAILED,
            RunState.PARKED,
        }
    ),
    RunState.WAITING: frozenset({RunState.DECIDED}),
    RunState.DECIDED: frozenset({RunState.RUNNING}),
    RunState.DONE: frozenset(),
    RunState.CANCELLED: frozenset(),
    RunState.FAILED: frozenset(),
    RunState.PARKED: frozenset(),
}

RUN_FINAL: Final = frozenset(state for state, moves in RUN_MOVES.items() if not moves)

RUN_WORKING: Final = frozenset({RunState.QUEUED, RunState.RUNNING})
"""A conversation has at most one run in these states; a database constraint holds it."""

RUN_CLAIMABLE: Final = frozenset({RunState.QUEUED, RunState.DECIDED})


def run_untouched(state: str, attempt: int) -> bool:
    """Tell whether no worker has ever taken up a run that still may be."""
    return state == RunState.PENDING or (state == RunState.QUEUED and attempt == 0)


class StopMode(TextChoices):
    """What a stop does to the answer of a run."""

    HARD = "hard", _("in the words of the finished steps")
    POLISH = "polish", _("reworded by the assistant")
    NEVER = "never", _("measured without stopping")


class CallState(TextChoices):
    """Where one tool call stands."""

    QUEUED = "queued", _("queued")
    RUNNING = "running", _("running")
    WAITING = "waiting", _("waiting for approval")
    DONE = "done", _("done")
    REFUSED = "refused", _("refused by rule")
    FAILED = "failed", _("failed")
    UNKNOWN = "unknown", _("outcome unknown, checking")
    CANCELLED = "cancelled", _("cancelled")


class Role(TextChoices):
    """Who speaks in the transcript."""

    STAFF = "staff", _("staff")
    ASSISTANT = "assistant", _("assistant")
    NOTICE = "notice", _("notice")


def run_moves_to(state: str) -> frozenset[str]:
    """Return the states from which a run may move to `state`."""
    return frozenset(source for source, targets in RUN_MOVES.items() if state in targets)
