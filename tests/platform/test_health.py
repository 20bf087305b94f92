"""The health pages answer machines, whatever host name or scheme they use."""

import pytest
from django.test import Client, override_settings

from config import heartbeat

WORKERS = ("turns", "quarantine", "exports", "maintenance")


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


@pytest.mark.django_db
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
    }


@pytest.mark.django_db
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


@pytest.mark.django_db
@override_settings(REDIS_URL="unix:///tmp/no-such-socket")
def test_a_lost_redis_is_named_and_no_error_page() -> None:
    answer = Client().get("/readyz")
    assert answer.status_code == 503
    assert answer.json()["redis"] is False
    assert answer.json()["database"] is True
