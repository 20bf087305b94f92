"""The Celery application; every worker, beat and sender goes through it."""

import logging
import os
from typing import Any

from billiard.exceptions import WorkerLostError
from celery import Celery
from celery.concurrency import ALIASES  # type: ignore[attr-defined]
from celery.signals import heartbeat_sent, setup_logging, task_failure, worker_shutdown

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.demo")

# Whoever asks for threads or children gets ours, which do not wait for a silent model on leaving.
ALIASES["threads"] = "config.pool:TaskPool"
ALIASES["prefork"] = "config.pool:ChildPool"

log = logging.getLogger(__name__)

app = Celery("countersign")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@setup_logging.connect
def keep_django_logging(**_: Any) -> None:
    """Leave logging as Django configured it: a receiver here stops Celery from adding its own."""


@heartbeat_sent.connect
def note_alive(sender: Any, **_: Any) -> None:
    """Write down that this worker lives, for the readiness page."""
    from config import heartbeat

    heartbeat.beat(str(sender.eventer.hostname))


@task_failure.connect
def note_lost(sender: Any, exception: BaseException, args: Any, **_: Any) -> None:
    """Name the run whose child process died: Celery's own line knows only its number of the job."""
    if isinstance(exception, WorkerLostError) and args:
        log.error("worker.lost", extra={"task": sender.name, "run": str(args[0])})


@worker_shutdown.connect
def note_gone(sender: Any, **_: Any) -> None:
    """Forget a worker that ends in order, so that readiness says so at once; then let it end."""
    from config import heartbeat, pool

    heartbeat.forget(str(sender.hostname))
    pool.leave_at_once()
