"""The health pages answer machines, whatever host name or scheme they use."""

import logging
import socket
import threading
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client, override_settings
from django.utils import timezone

from agent_core.runs import services
from agent_core.runs.models import Event
from config import health, heartbeat
from payments.services import refunds_stop

WORKERS = ("turns", "quarantine", "exports", "maintenance")

PATIENCE = 10
"""A busy machine takes its time; what hangs would take longer than this."""


@pytest.fixture(autouse=True)
def no_worker_is_known(redis_url: str) -> None:
    with heartbeat._client() as client:
        client.delete(heartbeat.KEY)


@override_settings(ALLOWED_HOSTS=["desk.example"], SECURE_SSL_REDIRECT=True)
def test_a_bare_address_over_plain_http_is_answered() -> None:
    answer = Client(headers={"host": "10.0.0.7:8000"}).get("/healthz")
    assert (answer.status_code, answer.content) == (200, b"ok")
    assert answer["Cache-Control"] == "no-store"


def test_nothing_can_be_sent_to_a_health_page() -> None:
    assert Client().post("/healthz").status_code == 405


@pytest.mark.django_db(transaction=True)
def test_readiness_names_the_workers_that_are_missing() -> None:
    heartbeat.beat("turns@one")
    answer = Client().get("/readyz")
    assert answer.status_code == 503
    assert answer.json() == {
        "ready": False,
        "database": True,
        "redis": True,
        "worker_turns": True,
        "worker_quarantine": False,
        "worker_exports": False,
        "worker_maintenance": False,
        "refunds_paused": False,
        "longest_wait_seconds": 0,
    }


@pytest.mark.django_db(transaction=True)
def test_readiness_is_given_when_every_kind_of_worker_lives() -> None:
    for name in WORKERS:
        heartbeat.beat(f"{name}@one")
    assert Client().get("/readyz").status_code == 200


def test_an_old_sign_of_life_does_not_count() -> None:
    with heartbeat._client() as client:
        client.hset(heartbeat.KEY, "turns@one", "1000")
    assert heartbeat.alive() == set()


def test_a_worker_that_ended_is_forgotten() -> None:
    heartbeat.beat("turns@one")
    heartbeat.forget("turns@one")
    assert heartbeat.alive() == set()


@pytest.mark.django_db(transaction=True)
@override_settings(REDIS_URL="unix:///tmp/no-such-socket")
def test_a_lost_redis_is_named_and_no_error_page() -> None:
    answer = Client().get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["redis"] is False
    assert answer.json()["database"] is True


@pytest.fixture
def silent() -> Iterator[int]:
    """Return the port of somebody who takes every connection and never says a word."""
    with socket.create_server(("127.0.0.1", 0), backlog=16) as server:
        yield server.getsockname()[1]


@pytest.mark.django_db(transaction=True)
def test_a_redis_that_hangs_is_named_in_time(silent: int) -> None:
    began = time.monotonic()
    with override_settings(REDIS_URL=f"redis://127.0.0.1:{silent}/0"):
        answer = Client().get("/readyz")
    assert time.monotonic() - began < PATIENCE
    assert answer.status_code == 503
    assert (answer.json()["redis"], answer.json()["database"]) == (False, True)


@pytest.mark.django_db(transaction=True)
def test_a_database_that_hangs_is_named_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """It answers after the page has: by then nobody waits for it."""
    for name in WORKERS:
        heartbeat.beat(f"{name}@one")
    assert health.ANSWER_SECONDS < 3
    whole, asked = health._standing, threading.Event()

    def hangs() -> Any:
        asked.wait(30)
        return whole()

    monkeypatch.setattr(health, "_standing", hangs)
    began = time.monotonic()
    answer = Client().get("/readyz")
    taken = time.monotonic() - began
    asked.set()
    assert taken < PATIENCE
    assert answer.status_code == 503
    assert (answer.json()["redis"], answer.json()["database"]) == (True, False)
    assert "refunds_paused" not in answer.json()


@pytest.mark.django_db(transaction=True)
def test_a_pause_and_a_queue_that_stands_are_said_and_the_product_still_takes_work() -> None:
    for name in WORKERS:
        heartbeat.beat(f"{name}@one")
    olga = User.objects.create_superuser("olga")
    refunds_stop(actor=olga, reason="the processor books twice")
    talk = services.conversation_start(owner=olga)
    services.message_send(conversation=talk, sender=olga, text="hello")
    Event.objects.update(created_at=timezone.now() - timedelta(minutes=5))
    answer = Client().get("/readyz")
    assert answer.status_code == 200
    assert answer.json()["refunds_paused"] is True
    assert 300 <= answer.json()["longest_wait_seconds"] < 400


@pytest.mark.django_db(transaction=True)
def test_what_is_not_ready_is_logged_when_it_changes_and_not_at_each_probe(
    caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(health, "_missing", [])
    caplog.set_level(logging.INFO)
    for name in WORKERS:
        for _probe in range(2):
            Client().get("/readyz")
        heartbeat.beat(f"{name}@one")
    for _probe in range(2):
        assert Client().get("/readyz").status_code == 200
    changes = [
        (entry.levelname, entry.getMessage(), vars(entry).get("missing", ""))
        for entry in caplog.records
        if entry.name == "config.health" or "/readyz" in entry.getMessage()
    ]
    lacking = [",".join(f"worker_{name}" for name in WORKERS[at:]) for at in range(4)]
    assert changes == [
        *(("WARNING", "ready.lost", missing) for missing in lacking),
        ("INFO", "ready.given", ""),
    ]
