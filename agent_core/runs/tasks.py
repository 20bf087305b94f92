"""Celery's entrances to the runs: each loads an id and calls one service."""

from __future__ import annotations

from contextlib import suppress
from typing import Any
from uuid import UUID

from celery import shared_task
from celery.signals import worker_init, worker_shutting_down

from agent_core.errors import StaleAttempt
from agent_core.runs import drain
from agent_core.runs.claims import leases_return, lost_enqueue
from agent_core.runs.endings import run_parked
from agent_core.runs.queue import QUARANTINE_TASK, WORK_TASK
from agent_core.runs.retention import checkpoints_prune
from agent_core.runs.sweeping import decided_wake, sleepers_end
from agent_core.runs.work import run_work


@shared_task(name=WORK_TASK)
def work(run_id: str) -> None:
    """Work a run off."""
    run_work(UUID(run_id))


@shared_task(name=QUARANTINE_TASK)
def quarantine(run_id: str) -> None:
    """Work off, alone, a run whose worker has died."""
    run_work(UUID(run_id), quarantined=True)


@shared_task(name="runs.run_sweep")
def sweep() -> None:
    """Return the runs of dead workers, and enqueue what Redis has lost."""
    sleepers_end()
    for run in leases_return():
        # Another sweep, or the worker after all, was first.
        with suppress(StaleAttempt):
            run_parked(run)
    decided_wake()
    lost_enqueue()


@shared_task(name="runs.checkpoints_prune")
def prune() -> None:
    """Delete the checkpoints of runs that ended a while ago."""
    checkpoints_prune()


@worker_init.connect
def _stay(**_extra: Any) -> None:
    drain.stay()


@worker_shutting_down.connect
def _leave(**_extra: Any) -> None:
    drain.leave()
