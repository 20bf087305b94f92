"""The states of an export and the moves between them. Nobody restates them; no database here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _


class ExportState(TextChoices):
    """Where an export stands."""

    QUEUED = "queued", _("in line")
    COUNTING = "counting", _("counting rows")
    WRITING = "writing", _("writing")
    CHECKING = "checking", _("checking the file")
    READY = "ready", _("ready")
    FAILED = "failed", _("failed")
    CANCELLED = "cancelled", _("cancelled")
    EXPIRED = "expired", _("expired")


_ENDS: Final = frozenset({ExportState.FAILED, ExportState.CANCELLED})
# A worker that died hands its export back to the line.
_LEAVES: Final = _ENDS | {ExportState.QUEUED}

EXPORT_MOVES: Final[Mapping[ExportState, frozenset[ExportState]]] = {
    ExportState.QUEUED: _ENDS | {ExportState.COUNTING},
    ExportState.COUNTING: _LEAVES | {ExportState.WRITING},
    ExportState.WRITING: _LEAVES | {ExportState.CHECKING},
    ExportState.CHECKING: _LEAVES | {ExportState.READY},
    ExportState.READY: frozenset({ExportState.EXPIRED}),
    ExportState.FAILED: frozenset(),
    ExportState.CANCELLED: frozenset(),
    ExportState.EXPIRED: frozenset(),
}

EXPORT_TERMINAL: Final = frozenset(state for state, to in EXPORT_MOVES.items() if not to)
EXPORT_WORKING: Final = frozenset(
    state for state, to in EXPORT_MOVES.items() if ExportState.QUEUED in to
)
"""A worker holds these under a lease."""

EXPORT_ACTIVE: Final = EXPORT_WORKING | {ExportState.QUEUED}
"""The same request attaches to an export in one of these; a constraint allows only one."""


def states_before(target: ExportState) -> list[ExportState]:
    """List the states from which `target` may be reached: the filter of a conditional update."""
    return [state for state, to in EXPORT_MOVES.items() if target in to]
