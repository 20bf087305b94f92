"""Delete the checkpoints of runs that ended a while ago. Transcript, calls and records stay."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Final
from uuid import UUID

from django.conf import settings
from django.db import connection, transaction
from django.utils import timezone
from django.utils.module_loading import import_string
from langgraph.checkpoint.postgres import PostgresSaver

from agent_core.runs.models import Run
from agent_core.runs.states import RUN_FINAL
from agent_core.runs.work import saver_pool

BATCH: Final = 500
"""How many threads are looked at, and at most deleted, at once."""

_LOCK: Final = 0x70727565
"""The advisory lock of whoever prunes."""

# Steps from thread to thread along the index: what was pruned long ago costs nothing any more.
_THREADS: Final = """
    WITH RECURSIVE kept (thread_id) AS (
        (SELECT thread_id FROM checkpoints WHERE thread_id > %s ORDER BY thread_id LIMIT 1)
        UNION ALL
        SELECT (SELECT next.thread_id FROM checkpoints next
                WHERE next.thread_id > kept.thread_id ORDER BY next.thread_id LIMIT 1)
        FROM kept WHERE kept.thread_id IS NOT NULL
    )
    SELECT thread_id FROM kept WHERE thread_id IS NOT NULL LIMIT %s
"""


def checkpoints_prune() -> int:
    """Delete the threads of runs that ended before the keeping time; return how many.

    A run that waits for a person has not ended, however old it is. The thread of one whose work
    goes on elsewhere, such as an export being written, stays until that is over.
    """
    saver = PostgresSaver(saver_pool())
    deleted = 0
    for threads in _batches():
        with transaction.atomic():
            if not _alone():
                return deleted
            ended = _ended(threads)
            saver.prune(ended, strategy="delete")
        deleted += len(ended)
    return deleted


def _alone() -> bool:
    """Tell whether nobody else prunes; two at once would lock the same rows crosswise."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [_LOCK])
        return bool(cursor.fetchone()[0])


def _batches() -> Iterator[list[str]]:
    """Walk once along all threads that have checkpoints."""
    last = ""
    while True:
        with connection.cursor() as cursor:
            cursor.execute(_THREADS, [last, BATCH])
            threads = [str(row[0]) for row in cursor.fetchall()]
        if not threads:
            return
        yield threads
        last = threads[-1]


def _ended(threads: Sequence[str]) -> list[str]:
    """Return those threads whose runs are long over; one that is no run of ours stays."""
    before = timezone.now() - timedelta(hours=settings.CHECKPOINT_KEEP_HOURS)
    runs = Run.objects.filter(
        pk__in=[made for thread in threads if (made := _uuid(thread))],
        state__in=RUN_FINAL,
        ended_at__lt=before,
    )
    needed: frozenset[UUID] = import_string(settings.CHECKPOINTS_NEEDED)()
    return [str(pk) for pk in runs.values_list("pk", flat=True) if pk not in needed]


def _uuid(thread: str) -> UUID | None:
    try:
        return UUID(thread)
    except ValueError:
        return None
