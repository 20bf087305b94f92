"""Celery's entrances to the runs: each loads an id and calls one service."""

from __future__ import annotations

import logging
from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import UUID

from celery import shared_task
from celery.signals import worker_init, worker_shutting_down
from django.db import OperationalError, connection

from agent_core.errors import StaleAttempt
from agent_core.runs import drain
from agent_core.runs.claims import leases_return, lost_enqueue
from agent_core.runs.endings import run_parked
from agent_core.runs.logged import logged
from agent_core.runs.queue import QUARANTINE_TASK, WORK_TASK
from agent_core.runs.retention import checkpoints_prune
from agent_core.runs.sweeping import decided_wake, sleepers_end
from agent_core.runs.work import run_work

logger = logging.getLogger(__name__)


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
    for step in (sleepers_end, _dead_return, decided_wake, lost_enqueue):
        # One odd row must not leave everybody else's runs lying.
        _guarded(step)


def _dead_return() -> None:
    for run in leases_return():
        with logged(run.pk):
            _guarded(partial(run_parked, run))


def _guarded(step: Callable[[], object]) -> None:
    try:
        step()
    except StaleAttempt:
        # Another sweep, or the worker after all, was first.
        return
    except OperationalError:
        # The database is away, or chose us to end a deadlock: the next sweep goes on.
        logger.warning("sweep.database_lost", exc_info=True)
        connection.close()
    except Exception:  # The boundary of the sweep: the other steps are other people's runs.
        logger.exception("sweep.failed")


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
