"""The one way in which a run's state moves: a conditional update along the table of moves."""

from __future__ import annotations

from typing import Any

from django.db.models import QuerySet

from agent_core.runs.models import Run
from agent_core.runs.states import RunState, run_moves_to


def run_move(rows: QuerySet[Run], to: RunState, **values: Any) -> bool:
    """Move the selected run if the table lets it; False when another was first."""
    return bool(rows.filter(state__in=run_moves_to(to)).update(state=to, **values))
