"""What the sweep sets right besides leases: sleepers that block, and waits that are over."""

from __future__ import annotations

import logging

from django.conf import settings
from django.db import connection, transaction

from agent_core import faults
from agent_core.runs.journal import conversation_free
from agent_core.runs.models import Run
from agent_core.runs.services import run_wake
from agent_core.runs.states import RunState
from reviews.models import Review
from reviews.states import FINAL

logger = logging.getLogger(__name__)


def sleepers_end() -> int:
    """End the sessions of processes that stalled in mid-transaction; return how many.

    A stopped process keeps its row locks, and whoever shall take its work over would wait for
    them. A session of ours that holds rows and has said nothing for the length of a lease is such a
    one; nothing of its transaction is kept. So is one that has sent the half of what it sends at
    once: its session is active, and waits for the rest. People at a terminal go by another
    application name.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity asleep"
            " WHERE datname = current_database() AND usename = current_user"
            " AND application_name = current_setting('application_name')"
            " AND (state LIKE 'idle in transaction%%' OR state = 'active'"
            " AND wait_event_type = 'Client' AND wait_event = 'ClientRead')"
            " AND state_change < clock_timestamp() - make_interval(secs => %s)"
            " AND EXISTS (SELECT 1 FROM pg_locks held WHERE held.pid = asleep.pid"
            " AND held.mode IN ('RowShareLock', 'RowExclusiveLock'))",
            [settings.RUN_LEASE_SECONDS],
        )
        ended = len(cursor.fetchall())
    if ended:
        logger.warning("run.sleepers_ended", extra={"sessions": ended})
    return ended


def decided_wake() -> int:
    """Move on every waiting run whose reviews are all final; return how many."""
    undecided = Review.objects.exclude(state__in=FINAL).values("run_id")
    woken = 0
    for run in Run.objects.filter(state=RunState.WAITING).exclude(pk__in=undecided):
        with faults.commit("run.wake", transaction.atomic()):
            woken += conversation_free(run.conversation_id) and run_wake(run.pk)
    return woken
