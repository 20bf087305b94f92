"""A worker is asked to leave while its Redis is away: it leaves in time, and in order."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_core.runs.models import Message, StopRecord
from tests.durability.model import HeldModel
from tests.durability.own import broker, db, model, variables
from tests.durability.product import Person, Product, ended
from tests.rig.servers import Server
from tests.rig.waiting import until

__all__ = ["broker", "db", "model", "variables"]

pytestmark = [pytest.mark.slow, pytest.mark.full, pytest.mark.timeout(300)]

LEAVES_IN = 20
"""Seconds in which a worker is gone after SIGTERM: what an operator's tool is told to wait."""


@pytest.fixture
def product(variables: dict[str, str], tmp_path: Path) -> Iterator[Product]:
    """Run web server and a worker of the threads or of processes, as a test says."""
    with Product(tmp_path, variables) as made:
        made.web()
        yield made


@pytest.mark.parametrize("pool", ["threads", "prefork"])
@pytest.mark.parametrize("noticed", [True, False])
def test_b21_a_worker_that_is_to_leave_while_redis_is_away_leaves_in_order(
    product: Product, broker: Server, model: HeldModel, pool: str, *, noticed: bool
) -> None:
    """A turn of its is in a model call, and Redis dies before SIGTERM or together with it."""
    worker = product.worker(pool=pool, size=2)
    product.ready()
    model.hold()
    asked = model.asked
    run = Person(product).asks("say it goes on elsewhere")
    until(lambda: model.asked > asked, "the model call")
    broker.kill()
    try:
        if noticed:
            until(lambda: "ConnectionError" in worker.said(), "the notice", 30)
        assert worker.leave(LEAVES_IN) == 0, worker.said()[-3000:]
    finally:
        broker.start()
        model.release()
    product.worker("others", size=2)
    product.beat()
    assert ended(run) == ["answered"]
    assert StopRecord.objects.filter(run=run).count() == 1
    assert Message.objects.get(run=run, role="assistant").text == "it goes on elsewhere"
