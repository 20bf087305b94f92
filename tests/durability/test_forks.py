"""A worker whose children are processes: each has its own pools, whatever the parent had open."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_core.runs.models import Run, StopRecord
from agent_core.runs.states import RUN_FINAL
from tests.conftest import FULL
from tests.durability.own import broker, db, model, variables
from tests.durability.product import Product
from tests.durability.test_scaling import each_once, planned
from tests.rig.sessions import sessions
from tests.rig.waiting import until

__all__ = ["broker", "db", "model", "variables"]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

TURNS = 50 if FULL else 20
CHILDREN = 4
POOL = 3
IDLE_SECONDS = 3


@pytest.fixture
def product(
    variables: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Product]:
    """Run a worker of child processes that live for a few turns each; the test does beat's part."""
    folder = tmp_path_factory.mktemp("product")
    own = {
        **variables,
        "CHAT_MODEL": "offline:planner@0",
        "DATABASE_POOL_SIZE": str(POOL),
        "DATABASE_POOL_IDLE_SECONDS": str(IDLE_SECONDS),
        "OPENED": str(folder / "opened"),
    }
    more = ["--max-tasks-per-child", "4", "--include", "tests.durability.opened"]
    with Product(folder, own) as made:
        made.worker(pool="prefork", size=CHILDREN, more=more)
        made.ready()
        yield made


def noted(product: Product) -> list[dict[str, int]]:
    """Return what the processes have written down."""
    lines = Path(product.variables["OPENED"]).read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def ended_within(runs: list[Run], url: str) -> int:
    """Wait until the runs have ended; return how many sessions there were at most meanwhile."""
    most = 0

    def over() -> bool:
        nonlocal most
        most = max(most, sessions(url))
        return Run.objects.filter(
            pk__in=[run.pk for run in runs], state__in=RUN_FINAL
        ).count() == len(runs)

    until(over, "the end of the runs", 180)
    return most


def test_b22_every_child_has_pools_of_its_own_and_gives_them_back_after_a_burst(
    product: Product, db: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice as many turns at once as a few children can do; each lives for four of them.

    Their parent had sessions and clients open when it forked them, and others went through them.
    """
    until(lambda: noted(product), "the parent's own sessions")
    base = sessions(db)
    for _burst in range(2):
        runs = planned(product, monkeypatch, TURNS)
        most = ended_within(runs, db)
        each_once(runs)
        assert StopRecord.objects.filter(run__in=runs, rule="completed").count() == len(runs)
        # Two pools a child, the one that keeps its lease, and children that are being replaced.
        assert most <= base + 2 * CHILDREN * (2 * POOL + 1)

    parent, *children = noted(product)
    assert len({child["pid"] for child in children}) > CHILDREN
    assert {child["parent"] for child in children} == {parent["pid"]}
    for kind in ("django", "saver", "redis"):
        owners: dict[int, set[int]] = {}
        for process in (parent, *children):
            owners.setdefault(process[kind], set()).add(process["pid"])
        assert all(len(pids) == 1 for pids in owners.values()), (kind, owners)
    log = product.log("worker-turns")
    for trouble in ("PoolTimeout", "Traceback", "database_lost", "leases_not_renewed"):
        assert trouble not in log, log[-3000:]
    until(lambda: sessions(db) <= base, "the way back to base", 30)
