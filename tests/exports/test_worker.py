"""A real worker process on the real broker, from the request to the file."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import psutil
import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from agent_core.runs.models import Conversation
from exports.models import Export
from exports.moves import export_enqueue
from exports.services_sweep import exports_sweep
from exports.states import EXPORT_WORKING
from payments.models import Customer
from tests.exports.conftest import Ask, Mailbox, events, payments_many
from tests.rig.processes import Process
from tests.rig.product import Parts, worker_spec
from tests.rig.sessions import sessions
from tests.rig.waiting import until

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.slow]

SESSIONS = "exports-worker"
"""How the workers' sessions are told from the pool of the test's own process."""

Start = Callable[[], Process]


@pytest.fixture
def storage(settings: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Share the files with the worker: both keep them in the same home."""
    from django.core.files.storage import default_storage

    home = Path(default_storage.path("x")).parent.parent
    monkeypatch.setenv("COUNTERSIGN_HOME", str(home))
    return home / "files"


@pytest.fixture
def worker(
    database_url: str, redis_url: str, storage: Path, mailbox: Mailbox, tmp_path: Path
) -> Iterator[Start]:
    """Start workers that take exports only; all end with the test."""
    joint = "&" if "?" in database_url else "?"
    named = f"{database_url}{joint}application_name={SESSIONS}"
    spec = worker_spec("exports", redis_url, node="exports@own")
    with Parts(tmp_path, {"DATABASE_URL": named, "REDIS_URL": redis_url}) as parts:
        yield partial(parts.start, spec)
    # A killed worker's sessions end a moment later, and the tables are emptied next.
    until(lambda: sessions(database_url, SESSIONS) == 0, "the end of their sessions", 40)


def becomes_ready(seconds: float = 40) -> None:
    """Wait until the export is ready."""
    until(lambda: Export.objects.get().state == "ready", "the ready export", seconds)


def test_from_the_request_to_the_download_through_a_real_worker(
    worker: Start, ask: Ask, ana: User, customer: Customer, conversation: Conversation
) -> None:
    payments_many(customer, 2999)
    export = ask(conversation_id=conversation.pk)
    worker()
    becomes_ready()
    export.refresh_from_db()
    assert (export.rows_done, export.rows_total, export.attempt) == (3000, 3000, 1)
    told = [(event["state"], event["done"]) for event in events(conversation.pk)]
    assert told[0] == ("queued", 0)
    assert told[-1] == ("ready", 3000)
    assert ("writing", 1500) in told
    client = Client()
    client.force_login(ana)
    response = client.get(reverse("exports:download", args=[export.pk]))
    text = b"".join(response.streaming_content)  # type: ignore[attr-defined]
    assert text.count(b"\r\n") == 3001


def test_a_worker_that_is_killed_while_it_writes_is_followed_by_one_that_ends_it(
    worker: Start, ask: Ask, customer: Customer, conversation: Conversation, storage: Path
) -> None:
    """kill -9 in the middle of the rows; the lease runs out; the sweep requeues; a second worker
    writes the whole file from the beginning, and the bar has never gone back.
    """
    payments_many(customer, 60_000)
    export = ask(conversation_id=conversation.pk)
    first = worker()
    until(lambda: Export.objects.get().rows_done > 0, "the first rows", 40)
    first.kill()
    export.refresh_from_db()
    assert export.state in EXPORT_WORKING
    assert export.lease_until is not None
    done_before = export.rows_done
    assert exports_sweep(now=export.lease_until).requeued == 0
    late = export.lease_until.replace(year=export.lease_until.year + 1)
    assert exports_sweep(now=late).requeued == 1
    worker()
    becomes_ready(60)
    export.refresh_from_db()
    assert (export.attempt, export.rows_done) == (2, 60_001)
    assert done_before < 60_001
    told = [event["done"] for event in events(conversation.pk)]
    assert told == sorted(told)
    assert [path.name for path in (storage / "exports").glob(f"{export.pk.hex}*")] == [
        f"{export.pk.hex}-2.csv"
    ]


def test_a_worker_that_is_told_to_leave_hands_its_export_back_and_another_ends_it(
    worker: Start, ask: Ask, customer: Customer, conversation: Conversation, storage: Path
) -> None:
    """SIGTERM in the middle of the rows: gone in time, no death counted, and no half file left."""
    payments_many(customer, 60_000)
    export = ask(conversation_id=conversation.pk)
    first = worker()
    until(lambda: Export.objects.get().rows_done > 0, "the first rows", 40)
    assert first.leave(20) == 0
    export.refresh_from_db()
    assert (export.state, export.deaths) == ("queued", 0)
    # Its message may have come back here once more before the consumer was closed.
    handed_back = export.attempt
    assert not list(storage.glob(f"exports/{export.pk.hex}*"))
    # Nobody sweeps: it was put back into its queue.
    worker()
    becomes_ready(60)
    export.refresh_from_db()
    assert (export.attempt, export.deaths) == (handed_back + 1, 0)
    assert export.rows_done == 60_001
    told = [event["done"] for event in events(conversation.pk)]
    assert told == sorted(told)
    assert [path.name for path in storage.glob(f"exports/{export.pk.hex}*")] == [
        f"{export.pk.hex}-{export.attempt}.csv"
    ]


def test_the_same_message_twice_makes_one_file_and_one_notice(
    worker: Start, ask: Ask, customer: Customer, conversation: Conversation, storage: Path
) -> None:
    """The broker hands the message to two workers at once, and once more after the end."""
    payments_many(customer, 5000)
    export = ask(conversation_id=conversation.pk)
    export_enqueue(export.pk)
    worker()
    worker()
    becomes_ready()
    export_enqueue(export.pk)
    time.sleep(1)
    export.refresh_from_db()
    assert (export.state, export.attempt, export.failure) == ("ready", 1, "")
    assert [event["state"] for event in events(conversation.pk)].count("ready") == 1
    assert len(list((storage / "exports").glob(f"{export.pk.hex}*"))) == 1


@pytest.mark.full
@pytest.mark.timeout(400)
def test_half_a_million_rows_stay_below_the_memory_of_a_small_worker(
    worker: Start, ask: Ask, customer: Customer, conversation: Conversation
) -> None:
    payments_many(customer, 499_999)
    ask(conversation_id=conversation.pk)
    process, peak = psutil.Process(worker().pid), 0

    def ended() -> bool:
        nonlocal peak
        peak = max(peak, process.memory_info().rss)
        return Export.objects.get().state == "ready"

    until(ended, "the ready export", 300)
    export = Export.objects.get()
    assert (export.rows_done, export.attempt) == (500_000, 1)
    assert peak < 512 * 1024 * 1024
    told = [event["done"] for event in events(conversation.pk)]
    assert told == sorted(told)
    assert told.count(500_000) == 1
    # A bar needs no more steps than this, however many rows there are.
    assert len(told) <= 106
    print(f"peak {peak // 1024 // 1024} MB")
