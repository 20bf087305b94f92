"""Workers scale out with no change of code, share no socket, and keep within their sessions."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from django.contrib.auth.models import User

from agent_core.runs.models import Run, StopRecord
from agent_core.runs.services import conversation_start, message_send
from config.broker import broker_url
from config.home import BASE_DIR
from tests.conftest import FULL
from tests.durability.own import broker, db, model, variables
from tests.durability.product import Product, ended
from tickets.models import Ticket

__all__ = ["broker", "db", "model", "variables"]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

TURNS = 60 if FULL else 16
# Root needs no user namespace, and in one it could not reach the embedded Postgres any more: that
# runs under an account of its own.
APART = ("unshare", *(() if os.geteuid() == 0 else ("--user", "--map-root-user")), "--net")
"""A network namespace of its own: no address of this machine, not even its loopback."""


@pytest.fixture
def product(
    variables: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Product]:
    """Make a product of which nothing runs yet."""
    with Product(tmp_path_factory.mktemp("product"), variables) as made:
        yield made


def namespaces_allowed() -> bool:
    """Tell whether this machine lets us run a program in a network namespace of its own."""
    if shutil.which("unshare") is None:
        return False
    return subprocess.run([*APART, "true"], check=False, capture_output=True).returncode == 0


def tickets_asked(count: int, name: str) -> list[Run]:
    """Ask for so many tickets, each in a conversation of its own; nothing is enqueued twice."""
    owner = User.objects.create_superuser(f"{name}-{time.monotonic_ns()}")
    runs = []
    for number in range(count):
        conversation = conversation_start(owner=owner)
        runs.append(message_send(conversation=conversation, sender=owner, text=f"{name} {number}"))
    return runs


def each_once(runs: list[Run]) -> None:
    """Check that every turn ended by its one ticket."""
    assert StopRecord.objects.filter(run__in=runs, rule="completed").count() == len(runs)
    for run in runs:
        assert Ticket.objects.filter(conversation_id=run.conversation_id).count() == 1


def test_two_workers_in_network_namespaces_of_their_own_share_the_load(
    product: Product, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both carry the same node name, as two machines with the launcher's would; neither is told.

    They share Postgres and Redis (Unix sockets reach across) and nothing else. Where the machine
    allows no namespaces they run plainly, and the rest must hold all the same.
    """
    before = APART if namespaces_allowed() else ()
    if not before:
        print("No network namespaces here: both workers run in this machine's.")
    product.variables["CHAT_MODEL"] = "offline:planner@0"
    workers = [product.worker("turns", size=2, before=before) for _number in range(2)]
    product.ready()
    if before:
        apart = {_namespace(worker.pid) for worker in workers}
        assert len(apart | {_namespace("self")}) == 3
    runs = planned(product, monkeypatch)
    assert set(ended(*runs, seconds=180)) == {"completed"}
    each_once(runs)
    claimed = re.compile(r"run\.claimed.*?([0-9a-f]{8}-[0-9a-f-]{27})")
    taken = [set(claimed.findall(worker.said())) for worker in workers]
    assert taken[0] | taken[1] == {str(run.pk) for run in runs}
    assert not taken[0] & taken[1]
    assert all(len(one) >= len(runs) // 8 for one in taken), [len(one) for one in taken]


def _namespace(pid: int | str) -> str:
    # The worker may run below what was started.
    if isinstance(pid, int) and (below := psutil.Process(pid).children()):
        pid = below[0].pid
    return str(Path(f"/proc/{pid}/ns/net").readlink())


def planned(product: Product, monkeypatch: pytest.MonkeyPatch, count: int = TURNS) -> list[Run]:
    """Ask for the tickets in words that the planner understands, sent to the product's Redis."""
    monkeypatch.setenv("CELERY_BROKER_WRITE_URL", broker_url(product.redis_url))
    return tickets_asked(count, "open a ticket about box")


def test_node_names_differ_between_containers() -> None:
    """Compose may scale a worker: `%h` is the container's own name."""
    compose = (BASE_DIR / "docker-compose.yml").read_text()
    names = re.findall(r"celery -A config worker -n (\S+)", compose)
    assert len(names) >= 4
    assert all(name.endswith("@%h") for name in names)
