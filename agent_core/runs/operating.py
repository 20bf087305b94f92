"""How all work stands, for the people who operate it, and one push for a run that stands still.

Everybody's runs are seen here, whoever asked; the caller checks the right (`OPERATE`).
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Final, TypedDict
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Exists, Min, OuterRef, QuerySet, Subquery
from django.db.models.functions import Coalesce, Now
from django.utils import timezone

from agent_core import faults
from agent_core.errors import StaleAttempt
from agent_core.runs.claims import leases_return, run_next
from agent_core.runs.endings import run_parked
from agent_core.runs.errors import NotFound
from agent_core.runs.journal import conversation_lock
from agent_core.runs.models import Event, Run
from agent_core.runs.queue import run_enqueue_after_commit
from agent_core.runs.recording import pushed_recorded
from agent_core.runs.services import run_wake
from agent_core.runs.services_start import OPERATE
from agent_core.runs.states import RUN_CLAIMABLE, RUN_FINAL, RUN_WORKING, RunState
from reviews.audit.words import Action
from reviews.models import Review
from reviews.states import FINAL as REVIEW_FINAL

logger = logging.getLogger(__name__)

STUCK_AFTER: Final = timedelta(seconds=30)
"""How long a run may stand where something should take it on."""

SHOWN: Final = 50
"""The most rows of one kind; the sweeps work on all of them."""

LOOKED: Final = 50
"""The most runs whose wait is read to tell the longest one."""

NOT_TAKEN: Final = "not_taken"
LEASE_OVER: Final = "lease_over"
NOT_WOKEN: Final = "not_woken"
BEHIND_NOTHING: Final = "behind_nothing"


class _Moved(TypedDict):
    since: datetime


if TYPE_CHECKING:
    from django_stubs_ext import WithAnnotations

    # A run with the moment at which it came into its present state.
    MovedRun = WithAnnotations[Run, _Moved]


@dataclass(frozen=True, slots=True)
class Stuck:
    """A run that should have gone on, why it stands, and since when."""

    run: Run
    why: str
    since: datetime


def runs_working() -> list[Run]:
    """List the runs that a worker holds, the longest at work first."""
    rows = _rows().filter(state=RunState.RUNNING, lease_until__gte=Now())
    return list(rows.order_by("claimed_at")[:SHOWN])


def runs_stuck() -> list[Stuck]:
    """List the runs that stand still, by cause."""
    return [
        Stuck(run, why, run.since)
        for why, rows in _standing()
        for run in rows.order_by("since")[:SHOWN]
    ]


def runs_quarantined() -> list[Run]:
    """List the runs that are worked off alone since a worker died with them."""
    rows = _rows().filter(quarantined=True).exclude(state__in=RUN_FINAL)
    return list(rows.order_by("created_at")[:SHOWN])


def runs_parked() -> list[Run]:
    """List the runs that were set aside and that nobody has let go on, the latest first."""
    rows = _rows().filter(state=RunState.PARKED, continued_by=None)
    return list(rows.order_by("-ended_at")[:SHOWN])


def oldest_waits() -> timedelta:
    """Return how long the run that has waited longest for a worker has done so; 0 when none does.

    One statement, for a page that machines ask for every few seconds, most of all while the line
    is long: the state's index finds the line, and no more than `LOOKED` of it, the oldest requests,
    are asked when they joined it.
    """
    line = Run.objects.filter(state__in=RUN_CLAIMABLE).order_by("created_at")
    oldest = _since(Run.objects.filter(pk__in=line.values("pk")[:LOOKED]))
    since: datetime | None = oldest.aggregate(first=Min("since"))["first"]
    return timezone.now() - since if since is not None else timedelta()


def run_push(*, run_id: UUID, actor: User) -> bool:
    """Do for one run what the sweep does for all; pressing twice does nothing twice.

    Return False when the run does not stand still and nothing was changed.

    Raises:
        NotFound: there is no such run, or the actor is no operator.
    """
    run = Run.objects.filter(pk=run_id).first()
    if run is None or not (actor.is_active and actor.has_perm(OPERATE)):
        raise NotFound
    # Those of dead workers first: they may be what this one waits behind.
    before = _open_of(run)
    for parked in leases_return():
        try:
            run_parked(parked)
        except StaleAttempt:
            logger.info("run.held_after_all", extra={"run": str(parked.pk)})
    with faults.commit("run.push", transaction.atomic()):
        conversation_lock(run.conversation_id)
        run.refresh_from_db()
        # What it waited behind may have been taken back above, and it has nothing to be sent.
        moved = _sent(run) or before != _open_of(run)
        if moved:
            pushed_recorded(Action.RUN_PUSHED, run, actor)
    if moved:
        logger.warning("run.pushed", extra={"run": str(run_id), "actor": actor.pk})
    return moved


def _sent(run: Run) -> bool:
    """Send, wake or bring on what stands still; False when nothing of it does."""
    if run.state in RUN_CLAIMABLE:
        run_enqueue_after_commit(run)
        return True
    if run.state == RunState.WAITING and not _undecided().filter(run_id=run.pk).exists():
        return run_wake(run.pk)
    others = Run.objects.filter(conversation_id=run.conversation_id, state__in=RUN_WORKING)
    if run.state != RunState.PENDING or others.exists():
        return False
    run_next(run.conversation_id)
    return True


def _open_of(run: Run) -> set[tuple[UUID, str, int]]:
    """Return how the runs of its conversation stand that have not ended."""
    runs = Run.objects.filter(conversation_id=run.conversation_id).exclude(state__in=RUN_FINAL)
    return set(runs.values_list("pk", "state", "attempt"))


def _rows() -> QuerySet[MovedRun]:
    return _since(Run.objects.select_related("requester"))


def _since(rows: QuerySet[Run]) -> QuerySet[MovedRun]:
    """Add when each came into its present state: its last event says so."""
    moved = Event.objects.filter(run=OuterRef("pk"), kind="run").order_by("-pk")
    return rows.annotate(since=Coalesce(Subquery(moved.values("created_at")[:1]), "created_at"))


def _standing() -> Iterator[tuple[str, QuerySet[MovedRun]]]:
    others = Run.objects.filter(conversation=OuterRef("conversation"), state__in=RUN_WORKING)
    behind = Exists(others.exclude(pk=OuterRef("pk")))
    long = _rows().filter(since__lt=Now() - STUCK_AFTER)
    yield NOT_TAKEN, long.filter(~behind, state__in=RUN_CLAIMABLE)
    yield LEASE_OVER, _rows().filter(state=RunState.RUNNING, lease_until__lt=Now())
    undecided = _undecided().values("run_id")
    yield NOT_WOKEN, long.filter(state=RunState.WAITING).exclude(pk__in=undecided)
    yield BEHIND_NOTHING, long.filter(~behind, state=RunState.PENDING)


def _undecided() -> QuerySet[Review]:
    return Review.objects.exclude(state__in=REVIEW_FINAL)
