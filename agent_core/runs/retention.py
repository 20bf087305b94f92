"""Delete the checkpoints of runs that ended a while ago. Transcript, calls and records stay."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from django.conf import settings
from django.db import connection
from django.utils import timezone
from langgraph.checkpoint.postgres import PostgresSaver

from agent_core.runs.states import RUN_FINAL
from agent_core.runs.work import saver_pool

BATCH: Final = 500


def checkpoints_prune() -> int:
    """Delete the threads of runs that ended before the keeping time; return how many.

    A run that waits for a person has not ended, however old it is.
    """
    before = timezone.now() - timedelta(hours=settings.CHECKPOINT_KEEP_HOURS)
    saver = PostgresSaver(saver_pool())
    deleted = 0
    while threads := _ended(before):
        saver.prune(threads, strategy="delete")
        deleted += len(threads)
    return deleted


def _ended(before: datetime) -> list[str]:
    """Return the next threads that still have checkpoints although their runs have ended."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT run.id::text FROM runs_run run WHERE run.state = ANY(%s) AND run.ended_at < %s"
            " AND EXISTS (SELECT 1 FROM checkpoints kept WHERE kept.thread_id = run.id::text)"
            " LIMIT %s",
            [sorted(RUN_FINAL), before, BATCH],
        )
        return [row[0] for row in cursor.fetchall()]
