"""Redis dies, is cut off or is full: nothing is lost, nothing is done twice, no worker restarts."""

from __future__ import annotations

import itertools
import time
from contextlib import suppress

import pytest
import redis

from agent_core.runs.models import Run, StopRecord
from agent_core.runs.states import RunState
from tests.conftest import FULL
from tests.durability.model import HeldModel
from tests.durability.own import broker, db, model, product, variables
from tests.durability.product import Person, Product, ended
from tests.rig.servers import Server
from tests.rig.waiting import until
from tickets.models import Ticket

__all__ = ["broker", "db", "model", "product", "variables"]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(1200)]

ROUNDS = 20 if FULL else 2
BACK_SECONDS = 60
"""Within this time work goes on after Redis is back, with no restart of the worker."""

_NUMBERS = itertools.count(1)

PROMPT_SECONDS = 10
"""A person who posts a message meanwhile is answered; a broker's own patience is much longer."""


def once(run: Run, subject: str) -> None:
    """Check that a turn ended by its one ticket."""
    assert StopRecord.objects.get(run=run).rule == "completed"
    assert Ticket.objects.filter(subject=subject).count() == 1


def works(product: Product) -> None:
    """Check that a message sent now is worked off."""
    subject = f"after trouble number {next(_NUMBERS)}"
    run = Person(product).asks(subject)
    assert ended(run, seconds=BACK_SECONDS) == ["completed"]
    once(run, subject)


def test_b21_a_message_sent_while_redis_is_down_is_kept_and_runs_once_when_it_is_back(
    product: Product, broker: Server, model: HeldModel
) -> None:
    """A turn is in its model call when Redis dies; a second person writes while it is away."""
    works(product)
    product.kinds_alive()
    assert product.readiness() == (200, product.readiness()[1])
    before = product.pids()
    model.hold()
    held, waiting = Person(product), Person(product)
    first = held.asks("held while redis died")
    until(lambda: Run.objects.get(pk=first.pk).state == RunState.RUNNING, "the claim")

    broker.kill()
    began = time.monotonic()
    second = waiting.asks("sent while redis was down")
    assert time.monotonic() - began < PROMPT_SECONDS
    status, parts = product.readiness()
    assert (status, parts["ready"], parts["redis"], parts["database"]) == (503, False, False, True)
    assert f'id="run-{second.pk}"' in waiting.page()
    assert 'data-run-state="queued"' in waiting.page()
    model.release()
    # What is under way needs no Redis to end.
    assert ended(first) == ["completed"]

    broker.start()
    assert ended(second, seconds=BACK_SECONDS) == ["completed"]
    works(product)
    once(first, "held while redis died")
    once(second, "sent while redis was down")
    product.kinds_alive()
    assert product.readiness()[0] == 200
    assert product.pids() == before


@pytest.mark.parametrize("round_number", range(ROUNDS))
def test_b21_a_worker_takes_work_again_after_redis_was_killed(
    product: Product, broker: Server, round_number: int
) -> None:
    """Back at once, after a moment, and after longer than the first tries to connect again."""
    before = product.pids()
    broker.restart(away=(0.0, 0.5, 4.0)[round_number % 3])
    works(product)
    assert product.pids() == before


@pytest.mark.parametrize("round_number", range(ROUNDS if FULL else 1))
def test_b21_a_worker_takes_work_again_after_every_connection_was_cut(
    product: Product, broker: Server, round_number: int
) -> None:
    before = product.pids()
    with redis.Redis.from_url(broker.url) as client:
        mine = client.client_id()
        for other in client.client_list():
            if int(other["id"]) != mine:
                # Some have gone by themselves meanwhile.
                with suppress(redis.ResponseError):
                    client.client_kill_filter(_id=other["id"])
    works(product)
    assert product.pids() == before


def test_b21_a_message_sent_while_redis_is_full_is_kept_and_runs_once(
    product: Product, broker: Server
) -> None:
    before = product.pids()
    person = Person(product)
    product.kinds_alive()
    assert product.readiness()[0] == 200
    with redis.Redis.from_url(broker.url) as client:
        client.config_set("maxmemory-policy", "noeviction")
        client.config_set("maxmemory", 1)
        began = time.monotonic()
        run = person.asks("sent while redis was full")
        assert time.monotonic() - began < PROMPT_SECONDS
        status, parts = product.readiness()
        assert (status, parts["redis"], parts["database"]) == (503, False, True)
        client.config_set("maxmemory", 0)
    assert ended(run, seconds=BACK_SECONDS) == ["completed"]
    works(product)
    once(run, "sent while redis was full")
    assert product.pids() == before
