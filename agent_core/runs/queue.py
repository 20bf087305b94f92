"""Put runs into the queues, after commit. A lost message is enqueued again by the sweeper."""

from __future__ import annotations

import logging
from functools import partial
from typing import Final
from uuid import UUID

from celery import current_app
from django.db import transaction
from django.db.models.functions import Now
from kombu.exceptions import OperationalError

from agent_core import faults
from agent_core.runs.models import Run

logger = logging.getLogger(__name__)

WORK_TASK = "runs.run_work"
QUARANTINE_TASK = "runs.run_quarantine"

_SENDING: Final = {"max_retries": 0, "socket_connect_timeout": 0.5, "socket_timeout": 0.5}
"""How a sender connects: one try. The row is committed, and a sweep enqueues what was not sent."""


def run_enqueue_after_commit(run: Run) -> None:
    """Enqueue a run once the present transaction has been committed."""
    task = QUARANTINE_TASK if run.quarantined else WORK_TASK
    Run.objects.filter(pk=run.pk).update(enqueued_at=Now())
    transaction.on_commit(partial(_send, task, run.pk))


def task_send(task: str, argument: str) -> bool:
    """Send a task to its queue; give up within about a second, and say whether it was sent.

    The connection is the sender's own and new. A pooled one may have died with the last Redis, and
    `retry=False` alone does not cover connecting, which Celery tries for six seconds. The options
    must not be set for the whole application: workers would stop looking for their broker.
    """
    try:
        with current_app.connection_for_write(transport_options=_SENDING) as connection:
            current_app.send_task(task, args=[argument], connection=connection, retry=False)
    except OperationalError:
        return False
    return True


def _send(task: str, run_id: UUID) -> None:
    with faults.around("task.send"):
        sent = task_send(task, str(run_id))
    if not sent:
        logger.warning("run.not_enqueued", extra={"run": str(run_id)})
