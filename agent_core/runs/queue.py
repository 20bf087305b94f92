"""Put runs into the queues, after commit. A lost message is enqueued again by the sweeper."""

from __future__ import annotations

import logging
import os
import queue
from functools import partial
from typing import Final
from uuid import UUID

from celery import current_app
from django.db import transaction
from django.db.models.functions import Now
from kombu import Connection, Producer
from kombu.exceptions import OperationalError

from agent_core import faults
from agent_core.runs import live
from agent_core.runs.models import Run

logger = logging.getLogger(__name__)

WORK_TASK = "runs.run_work"
QUARANTINE_TASK = "runs.run_quarantine"

_KNOWN: Final = "countersign:broker"
"""What Redis still knows as long as it has kept our messages."""

_SENDING: Final = {"max_retries": 0, "socket_connect_timeout": 0.5, "socket_timeout": 0.5}
"""How a sender connects: one try. The row is committed, and a sweep enqueues what was not sent."""


def run_enqueue_after_commit(run: Run) -> None:
    """Enqueue a run once the present transaction has been committed."""
    Run.objects.filter(pk=run.pk).update(enqueued_at=Now())
    run_send_after_commit(run)


def run_send_after_commit(run: Run) -> None:
    """Enqueue a run whose row tells already that it lies in its queue."""
    task = QUARANTINE_TASK if run.quarantined else WORK_TASK
    transaction.on_commit(partial(_send, task, run.pk))


def broker_forgot() -> bool:
    """Tell whether Redis has lost what it knew since this was last asked: restarted or flushed."""
    return live.kept_anew(_KNOWN)


def task_send(task: str, argument: str) -> bool:
    """Send a task to its queue; give up within about a second, and say whether it was sent.

    A kept connection may have died with the last Redis; then a new one is tried, once. Connections
    are of senders only: the options must not be set for the whole application, because workers
    would stop looking for their broker, and `retry=False` alone does not cover connecting, which
    Celery tries for six seconds.
    """
    address = str(current_app.conf.broker_write_url)
    kept = _kept(address)
    if kept is not None:
        if _sent(*kept, task, argument, address):
            return True
        # The others have died with it.
        senders_close()
    connection = current_app.connection_for_write(transport_options=_SENDING)
    try:
        producer = Producer(connection, auto_declare=False)
    except _lost(connection):
        connection.release()
        return False
    return _sent(connection, producer, task, argument, address)


_idle: queue.LifoQueue[tuple[str, Connection, Producer]] = queue.LifoQueue(maxsize=8)
"""Senders that nobody uses at the moment; what finds no room here is closed."""


def _kept(address: str) -> tuple[Connection, Producer] | None:
    """Take a sender that was kept for this broker; those of another one are let go."""
    while True:
        try:
            place, connection, producer = _idle.get_nowait()
        except queue.Empty:
            return None
        if place == address:
            return connection, producer
        connection.release()


def _lost(connection: Connection) -> tuple[type[BaseException], ...]:
    """Return what a sender raises whose Redis has gone."""
    return (OperationalError, *connection.connection_errors, *connection.channel_errors)


def _sent(
    connection: Connection, producer: Producer, task: str, argument: str, address: str
) -> bool:
    try:
        current_app.send_task(task, args=[argument], producer=producer, retry=False)
    except _lost(connection):
        connection.release()
        return False
    try:
        _idle.put_nowait((address, connection, producer))
    except queue.Full:
        connection.release()
    return True


def senders_close() -> None:
    """Keep no sender; the next message makes one."""
    while True:
        try:
            _idle.get_nowait()[1].release()
        except queue.Empty:
            return


def _anew() -> None:
    """Forget the senders of the parent of this process, whose sockets are not ours to close."""
    global _idle
    _idle = queue.LifoQueue(maxsize=8)


os.register_at_fork(after_in_child=_anew)


def _send(task: str, run_id: UUID) -> None:
    with faults.around("task.send"):
        sent = task_send(task, str(run_id))
    if not sent:
        logger.warning("run.not_enqueued", extra={"run": str(run_id)})
        # The next sweep tries again, and does not first wait whether a worker takes it.
        Run.objects.filter(pk=run_id).update(enqueued_at=None)
