"""A Postgres of the test's own is killed in the middle of a turn: the turn ends, once."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from agent_core.runs.models import Run
from agent_core.runs.states import RunState
from tests.durability.model import HeldModel
from tests.durability.own import broker, db, model
from tests.durability.product import LEASE_SECONDS, Person, Product, ended
from tests.durability.servers import orm_at, postgres_own
from tests.durability.test_database import held, once
from tests.journeys.databases import let_go
from tests.rig.servers import Server, short_folder
from tests.rig.sessions import sessions

__all__ = ["broker", "db", "model"]

pytestmark = [pytest.mark.slow, pytest.mark.full, pytest.mark.timeout(600)]


@pytest.fixture
def postgres() -> Iterator[Server]:
    """Run a Postgres to be killed, with all tables; the ORM speaks to it."""
    with short_folder() as folder:
        server = postgres_own(folder)
        try:
            with orm_at(server.url):
                yield server
        finally:
            server.stop()


@pytest.mark.parametrize("away", [0.0, 8.0])
@pytest.mark.usefixtures("db")
def test_a_postgres_killed_in_a_model_call_comes_back_and_the_turn_ends_once(
    postgres: Server,
    broker: Server,
    model: HeldModel,
    tmp_path_factory: pytest.TempPathFactory,
    away: float,
) -> None:
    """A server of its own, ended by SIGKILL: back at once after recovery, and beyond the lease."""
    variables = {
        "DATABASE_URL": postgres.url,
        "REDIS_URL": broker.url,
        "RUN_LEASE_SECONDS": str(LEASE_SECONDS),
        **model.variables,
    }
    with Product(tmp_path_factory.mktemp("killed"), variables) as product:
        product.web()
        product.beat()
        product.worker()
        product.ready()
        before = product.pids()
        run = held(model, Person(product), "killed in the call")
        assert Run.objects.get(pk=run.pk).state == RunState.RUNNING
        postgres.restart(away=away)
        let_go()
        model.release()
        assert ended(run, seconds=90) == ["completed"]
        once(run, "killed in the call")
        assert product.pids() == before
        base = sessions(postgres.url)
        assert base < 30
