"""Put runs into the queues, after commit. A lost message is enqueued again by the sweeper."""

from __future__ import annotations

import logging
from functools import partial
from uuid import UUID

from celery import current_app
from django.db import transaction
from django.db.models.functions import Now
from kombu.exceptions import OperationalError

from agent_core.runs.models import Run

logger = logging.getLogger(__name__)

WORK_TASK = "runs.run_work"
QUARANTINE_TASK = "runs.run_quarantine"


def run_enqueue_after_commit(run: Run) -> None:
    """Enqueue a run once the present transaction has been committed."""
    task = QUARANTINE_TASK if run.quarantined else WORK_TASK
    Run.objects.filter(pk=run.pk).update(enqueued_at=Now())
    transaction.on_commit(partial(_send, task, run.pk))


def _send(task: str, run_id: UUID) -> None:
    try:
        current_app.send_task(task, args=[str(run_id)], retry=False)
    except OperationalError:
        logger.warning("run.not_enqueued", extra={"run": str(run_id)})
