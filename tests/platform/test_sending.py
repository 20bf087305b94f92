"""With Redis away nobody waits: a message to a worker is given up soon, and the sweep sends it."""

import socket
import time
from collections.abc import Iterator
from contextlib import ExitStack
from datetime import timedelta
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import redis
from celery import current_app
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from agent_core.runs import queue
from agent_core.runs.models import Run
from agent_core.runs.queue import task_send
from agent_core.runs.services import conversation_start, message_send
from agent_core.runs.states import RunState
from agent_core.runs.tasks import sweep
from config.broker import broker_url
from exports.models import Export
from exports.moves import export_enqueue
from exports.services_sweep import LOST_SECONDS, exports_sweep
from exports.states import ExportState

Queues = Any
SOON = 1.5
LATE = timedelta(seconds=LOST_SECONDS + 1)


@pytest.fixture
def queues(redis_url: str) -> Iterator[Queues]:
    """Return the real broker, with the two queues empty before and after."""
    client = redis.Redis.from_url(redis_url, decode_responses=True)
    client.delete("turns", "exports")
    yield client
    client.delete("turns", "exports")
    client.close()


@pytest.fixture(autouse=True)
def no_sender_kept() -> Iterator[None]:
    """Begin and end without a sender that knows another test's broker."""
    queue.senders_close()
    yield
    queue.senders_close()


@pytest.fixture(params=["refused", "no socket", "silent", "silent socket", "full"])
def away(
    request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch
) -> Iterator[pytest.MonkeyPatch]:
    """Let senders find no Redis, or one that takes the connection and never says a word."""
    kind = str(request.param)
    with ExitStack() as stack:
        # A short folder, for its socket.
        folder = Path(stack.enter_context(TemporaryDirectory(prefix="cs-", dir="/tmp")))
        unix = "socket" in kind
        server = stack.enter_context(socket.socket(socket.AF_UNIX if unix else socket.AF_INET))
        server.bind(str(folder / "s") if unix else ("127.0.0.1", 0))
        address = f"unix://{folder / 's'}"
        if not unix:
            address = f"redis://127.0.0.1:{server.getsockname()[1]}/0"
        if kind == "no socket":
            (folder / "s").unlink()
        elif kind != "refused":
            server.listen(0 if kind == "full" else 100)
        for _ in range(3 if kind == "full" else 0):
            # More than fit: the next connection is not even taken.
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(server.getsockname())
        monkeypatch.setenv("CELERY_BROKER_WRITE_URL", broker_url(address))
        yield monkeypatch


@pytest.mark.django_db(transaction=True)
def test_a_message_is_stored_at_once_and_the_sweep_sends_it(
    away: pytest.MonkeyPatch, queues: Queues
) -> None:
    tom = User.objects.create_superuser("tom", password="x")
    conversation = conversation_start(owner=tom)

    began = time.monotonic()
    run = message_send(conversation=conversation, sender=tom, text="hello")
    took = time.monotonic() - began

    assert took < SOON
    run.refresh_from_db()
    assert (run.state, queues.llen("turns")) == (RunState.QUEUED, 0)

    away.delenv("CELERY_BROKER_WRITE_URL")
    Run.objects.update(enqueued_at=timezone.now() - LATE)
    sweep()
    assert [str(run.pk) in item for item in queues.lrange("turns", 0, -1)] == [True]


@pytest.mark.django_db(transaction=True)
def test_an_export_is_stored_at_once_and_the_sweep_sends_it(
    away: pytest.MonkeyPatch, queues: Queues
) -> None:
    ana = User.objects.create_superuser("ana", password="x")

    began = time.monotonic()
    with transaction.atomic():
        export = Export.objects.create(owner=ana, kind="payments", format="csv")
        export_enqueue(export.pk)
    took = time.monotonic() - began

    assert took < SOON
    assert Export.objects.get(pk=export.pk).state == ExportState.QUEUED
    assert queues.llen("exports") == 0

    away.delenv("CELERY_BROKER_WRITE_URL")
    assert exports_sweep(now=timezone.now() + LATE).resent == 1
    assert [str(export.pk) in item for item in queues.lrange("exports", 0, -1)] == [True]


def test_a_worker_goes_on_looking_for_its_broker_for_ever() -> None:
    """What senders use must not reach consumers: they would end with the first lost connection."""
    for connection in (current_app.connection_for_read(), current_app.connection_for_write()):
        options = connection.transport_options or {}
        assert not {"max_retries", "interval_start", "connect_retries_timeout"} & set(options)
        assert options["socket_connect_timeout"] == 5
    assert current_app.conf.broker_connection_retry
    assert current_app.conf.broker_connection_retry_on_startup
    assert current_app.conf.broker_connection_max_retries is None


def test_a_sender_leaves_no_connection_behind(queues: Queues) -> None:
    task_send("runs.run_work", "first")
    before = len(queues.client_list())
    for number in range(20):
        assert task_send("runs.run_work", f"number {number}")
    assert len(queues.client_list()) < before + 5


def test_a_kept_sender_whose_redis_falls_silent_is_given_up_soon(queues: Queues) -> None:
    """The connection stands and nobody answers on it: neither on the kept one nor on a new one."""
    assert task_send("runs.run_work", "heard")
    queues.client_pause(4000)
    try:
        began = time.monotonic()
        sent = task_send("runs.run_work", "not heard")
        took = time.monotonic() - began
    finally:
        queues.client_unpause()

    assert not sent
    assert took < 2 * SOON


def test_a_kept_sender_whose_connection_was_cut_sends_on_a_new_one(queues: Queues) -> None:
    assert task_send("runs.run_work", "first")
    me = queues.client_id()
    for client in queues.client_list():
        if int(client["id"]) != me:
            queues.client_kill_filter(_id=client["id"])

    assert task_send("runs.run_work", "second")
    assert queues.llen("turns") == 2


def test_a_kept_sender_is_used_again(queues: Queues) -> None:
    task_send("runs.run_work", "first")
    before = queues.info("stats")["total_connections_received"]
    for number in range(5):
        assert task_send("runs.run_work", f"number {number}")
    assert queues.info("stats")["total_connections_received"] == before
