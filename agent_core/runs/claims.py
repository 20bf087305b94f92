"""Who works on a run: claim, lease, hand back, sweep. All by conditional updates."""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Mapping
from datetime import timedelta
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, connection, transaction
from django.db.backends.base.base import BaseDatabaseWrapper
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from agent_core import faults
from agent_core.errors import StaleAttempt
from agent_core.runs.journal import conversation_free, conversation_hold, run_event
from agent_core.runs.models import Run
from agent_core.runs.moves import run_move, run_take
from agent_core.runs.queue import broker_forgot, run_enqueue_after_commit
from agent_core.runs.states import RUN_CLAIMABLE, RUN_WORKING, RunState

logger = logging.getLogger(__name__)

MAX_STRIKES = 3
"""Deaths of a worker alone with a run in quarantine after which the run is set aside."""

LOST_AFTER = timedelta(seconds=10)
"""How long a claimable run may lie in its queue before its message counts as lost."""

BATCH = 100
"""The most messages that one sweep sends again."""


def lease() -> timedelta:
    """Return how long a claim holds without being renewed."""
    return timedelta(seconds=settings.RUN_LEASE_SECONDS)


def here() -> str:
    """Return the name of this process, for the operator's eyes."""
    return f"{socket.gethostname()}:{os.getpid()}"[-100:]


def run_claim(run_id: UUID, *, quarantined: bool) -> Run | None:
    """Take a run to work on it, or return None when there is nothing to take.

    The attempt that this begins fences every write of the one before it.
    """
    try:
        with faults.commit("run.claim", transaction.atomic()):
            if not _claimable_hold(run_id, quarantined):
                return None
            run = run_take(
                run_id,
                quarantined=quarantined,
                lease=lease(),
                claimed_at=timezone.now(),
                worker=here(),
            )
            if run is not None:
                run_event(run)
            return run
    except IntegrityError:
        # Another run of this conversation works; this one is enqueued again when that one ends.
        return None


def _claimable_hold(run_id: UUID, quarantined: bool) -> bool:
    """Lock the conversation of a run that can be claimed; False when it cannot."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT 1 FROM runs_conversation conversation"
            " JOIN runs_run run ON run.conversation_id = conversation.id"
            " WHERE run.id = %s AND run.quarantined = %s AND run.state = ANY(%s)"
            " FOR UPDATE OF conversation",
            [run_id, quarantined, [str(state) for state in RUN_CLAIMABLE]],
        )
        return cursor.fetchone() is not None


def leases_renew(
    attempts: Mapping[UUID, int], session: BaseDatabaseWrapper | None = None
) -> set[UUID]:
    """Prolong the claims on these runs; return those that belong to somebody else or have ended.

    A row that a step of ours has locked at this moment is left for the next time: one slow
    transaction must not cost the other runs of the process their leases. `session` is a connection
    of the caller's own; without it the thread's is used.
    """
    with (session or connection).cursor() as cursor:
        cursor.execute(
            "WITH held AS (SELECT run.id FROM runs_run run"
            " JOIN unnest(%s::uuid[], %s::int[]) AS ours (id, attempt)"
            " ON run.id = ours.id AND run.attempt = ours.attempt"
            " WHERE run.state = %s FOR NO KEY UPDATE OF run SKIP LOCKED)"
            " UPDATE runs_run SET lease_until = statement_timestamp() + make_interval(secs => %s)"
            " FROM held WHERE runs_run.id = held.id",
            [
                list(attempts),
                list(attempts.values()),
                RunState.RUNNING,
                settings.RUN_LEASE_SECONDS,
            ],
        )
        cursor.execute(
            "SELECT id, attempt FROM runs_run WHERE id = ANY(%s) AND state = %s",
            [list(attempts), RunState.RUNNING],
        )
        return set(attempts) - {pk for pk, now in cursor.fetchall() if attempts[pk] == now}


def fence_check(run_id: UUID, attempt: int) -> bool:
    """Lock the run against a takeover for the rest of the present transaction.

    Return whether a person has asked it to stop.

    Raises:
        StaleAttempt: the run is no longer worked on by this attempt.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT cancel_requested_at IS NOT NULL FROM runs_run"
            " WHERE id = %s AND attempt = %s AND state = %s FOR SHARE",
            [run_id, attempt, RunState.RUNNING],
        )
        found = cursor.fetchone()
    if found is None:
        raise StaleAttempt
    return bool(found[0])


def run_hold(run_id: UUID, attempt: int) -> bool:
    """Lock the conversation, then the run, for a write of this attempt; in one statement.

    Return whether a person has asked the run to stop.

    Raises:
        StaleAttempt: the run is no longer worked on by this attempt.
    """
    with connection.cursor() as cursor:
        # The rows are locked in the order of the clauses.
        cursor.execute(
            "SELECT run.cancel_requested_at IS NOT NULL FROM runs_conversation conversation"
            " JOIN runs_run run ON run.conversation_id = conversation.id"
            " WHERE run.id = %s AND run.attempt = %s AND run.state = %s"
            " FOR UPDATE OF conversation FOR SHARE OF run",
            [run_id, attempt, RunState.RUNNING],
        )
        found = cursor.fetchone()
    if found is None:
        raise StaleAttempt
    return bool(found[0])


def run_hand_back(run: Run) -> None:
    """Give a claimed run back to the queue, between two steps of a worker that leaves."""
    with faults.commit("run.hand_back", transaction.atomic()):
        conversation_hold(run.conversation_id)
        moved = run_move(
            Run.objects.filter(pk=run.pk, attempt=run.attempt, state=RunState.RUNNING),
            RunState.QUEUED,
            lease_until=None,
            worked_seconds=F("worked_seconds") + worked(run),
        )
        if not moved:
            raise StaleAttempt
        run.refresh_from_db()
        run_event(run)
        run_enqueue_after_commit(run)


def worked(run: Run) -> int:
    """Return the whole seconds since the present claim."""
    if run.claimed_at is None:
        return 0
    return int((timezone.now() - run.claimed_at).total_seconds())


def run_next(conversation_id: UUID) -> None:
    """Bring on what waits in line: a decided run first, else the oldest message.

    The caller holds the conversation's lock.
    """
    line = list(
        Run.objects.filter(
            conversation_id=conversation_id,
            state__in=(*RUN_WORKING, RunState.DECIDED, RunState.PENDING),
        )
        .only("conversation", "state", "attempt", "quarantined")
        .order_by("created_at")
    )
    if any(run.state in RUN_WORKING for run in line):
        return
    decided = next((run for run in line if run.state == RunState.DECIDED), None)
    if decided is not None:
        run_enqueue_after_commit(decided)
        return
    # The lock is held: nobody else moves what waits in line.
    for waiting in line[:1]:
        if run_move(Run.objects.filter(pk=waiting.pk), RunState.QUEUED):
            waiting.state = RunState.QUEUED
            run_event(waiting)
            run_enqueue_after_commit(waiting)


def leases_return() -> list[Run]:
    """Take the runs of dead workers back, into quarantine; return those that must be set aside."""
    parked: list[Run] = []
    for run in list(Run.objects.filter(state=RunState.RUNNING, lease_until__lt=Now())):
        if run.quarantined and run.strikes + 1 >= MAX_STRIKES:
            parked.append(run)
            continue
        with faults.commit("run.take_back", transaction.atomic()):
            held = expired(run).select_for_update(of=("self",), skip_locked=True)
            if not conversation_free(run.conversation_id) or not held.exists():
                continue
            # The attempt moves on at once, so that a worker that was only stalled is fenced off
            # before the next one has begun.
            moved = run_move(
                expired(run),
                RunState.QUEUED,
                lease_until=None,
                attempt=F("attempt") + 1,
                strikes=F("strikes") + (1 if run.quarantined else 0),
                quarantined=True,
                worked_seconds=F("worked_seconds") + worked(run),
            )
            if moved:
                logger.warning("run.lease_expired", extra={"run": str(run.pk)})
                run.refresh_from_db()
                run_event(run)
                run_enqueue_after_commit(run)
    return parked


def expired(run: Run) -> QuerySet[Run]:
    """Select the run if this attempt of it still holds a lease that is over."""
    return Run.objects.filter(
        pk=run.pk, attempt=run.attempt, state=RunState.RUNNING, lease_until__lt=Now()
    )


def lost_enqueue() -> None:
    """Enqueue again what Redis may have lost: claimable runs that nobody has taken for a while."""
    lost = Q(enqueued_at__isnull=True) | Q(enqueued_at__lt=Now() - LOST_AFTER)
    if broker_forgot():
        lost = Q()
    for run in Run.objects.filter(lost, state__in=RUN_CLAIMABLE).order_by("created_at")[:BATCH]:
        with faults.commit("run.enqueue_again", transaction.atomic()):
            # One that is being claimed at this moment needs no message, and is not waited for.
            rows = Run.objects.select_for_update(of=("self",), skip_locked=True)
            if rows.filter(pk=run.pk, state__in=RUN_CLAIMABLE).exists():
                run_enqueue_after_commit(run)
    in_line = (
        Run.objects.filter(state=RunState.PENDING)
        .values_list("conversation_id", flat=True)
        .distinct()
    )
    for conversation_id in in_line:
        with faults.commit("run.next", transaction.atomic()):
            if conversation_free(conversation_id):
                run_next(conversation_id)
