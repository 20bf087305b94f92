"""Wake runs that wait although everything they wait for is decided."""

from __future__ import annotations

from django.db import transaction

from agent_core import faults
from agent_core.runs.journal import conversation_lock
from agent_core.runs.models import Run
from agent_core.runs.services import run_wake
from agent_core.runs.states import RunState
from reviews.models import Review
from reviews.states import FINAL


def decided_wake() -> int:
    """Move on every waiting run whose reviews are all final; return how many."""
    undecided = Review.objects.exclude(state__in=FINAL).values("run_id")
    woken = 0
    for run in Run.objects.filter(state=RunState.WAITING).exclude(pk__in=undecided):
        with faults.commit("run.wake", transaction.atomic()):
            conversation_lock(run.conversation_id)
            woken += run_wake(run.pk)
    return woken
