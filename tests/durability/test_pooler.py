"""The product behind a transaction pooler: nothing of ours depends on a session of Postgres."""

from __future__ import annotations

import csv
import io
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest
from django.contrib.auth.models import User
from django.core.files.storage import FileSystemStorage

from agent_core.runs.models import Run, StopRecord
from agent_core.runs.states import RunState
from config.home import BASE_DIR
from exports.models import Export
from exports.states import ExportState
from payments.models import Refund
from reviews.models import Review
from tests.durability.own import broker, db, model, product
from tests.durability.pooler import Pooler, transaction_pooler
from tests.durability.product import LEASE_SECONDS, Person, Product, ended
from tests.payments.cast import Desk
from tests.payments.processor import Processor, processor_process
from tests.rig.servers import Server
from tests.rig.waiting import until

__all__ = ["broker", "db", "model", "processor_process", "product"]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

SESSIONS = 3
"""Fewer than the product has threads that speak to the database."""


@pytest.fixture(scope="module")
def pooler(db: str) -> Iterator[Pooler]:
    """Run the pooler before the module's database."""
    with transaction_pooler(db, size=SESSIONS) as pooler:
        yield pooler


@pytest.fixture(scope="module")
def variables(
    pooler: Pooler,
    broker: Server,
    processor_process: Processor,
    tmp_path_factory: pytest.TempPathFactory,
) -> dict[str, str]:
    """Let every process of the product reach Postgres through the pooler only."""
    return {
        "DATABASE_URL": pooler.url,
        "REDIS_URL": broker.url,
        "RUN_LEASE_SECONDS": str(LEASE_SECONDS),
        "CHAT_MODEL": "offline:planner@0",
        "SANDBOX_URL": processor_process.url,
        "PAYMENT_TIMEOUT_SECONDS": "20",
        "COUNTERSIGN_HOME": str(tmp_path_factory.mktemp("home")),
    }


class RefundTurn:
    """Ana asks for a refund, Lea approves it on the page."""

    def __init__(self, product: Product, processor: Processor) -> None:
        self.processor = processor
        self.desk = Desk()
        for person in (self.desk.ana, self.desk.lea):
            User.objects.filter(pk=person.pk).update(is_superuser=True, is_staff=True)
            person.refresh_from_db()
            self.desk.team.members.add(person)
        self.ana, self.lea = Person(product, self.desk.ana), Person(product, self.desk.lea)
        reference = self.desk.payment.reference
        self.run = self.ana.asks(f"refund 5.00 EUR of {reference} because the box was crushed")

    def waits(self) -> bool:
        """Tell whether the turn waits for its review."""
        return Run.objects.get(pk=self.run.pk).state == RunState.WAITING

    def approve(self) -> None:
        """Approve as Lea, on the page."""
        review = Review.objects.get(run_id=self.run.pk)
        with self.lea.client() as browser:
            answer = browser.post(
                f"/api/reviews/{review.pk}/decision",
                data={"decision": "approve", "version": str(review.version)},
                headers={"Accept": "application/json"},
            )
        assert answer.status_code == 200, answer.text

    def paid_once(self) -> None:
        """Check the ledger and the processor's own books."""
        assert StopRecord.objects.get(run=self.run).rule == "completed"
        assert Refund.objects.get(payment=self.desk.payment).state == "succeeded"
        assert self.processor.refunded(self.desk.payment.processor_ref) == [500]


def refunds(product: Product, processor: Processor, count: int) -> None:
    """Play so many refund turns at once, from the message to the receipt."""
    turns = [RefundTurn(product, processor) for _number in range(count)]
    until(lambda: all(turn.waits() for turn in turns), "the reviews")
    for turn in turns:
        turn.approve()
    ended(*(turn.run for turn in turns))
    for turn in turns:
        turn.paid_once()


def exported(product: Product) -> None:
    """Play an export turn whose rows come in several portions; read the file."""
    desk = Desk()
    User.objects.filter(pk=desk.ana.pk).update(is_superuser=True)
    desk.ana.refresh_from_db()
    desk.team.members.add(desk.ana)
    for _number in range(9):
        desk.paid()
    ana = Person(product, desk.ana)
    run = ana.asks("export the payments of this month")
    assert ended(run) == ["completed"]
    export = Export.objects.get(run_id=run.pk)

    def ready() -> bool:
        export.refresh_from_db()
        return export.state == ExportState.READY

    until(ready, "the file")
    files = FileSystemStorage(Path(product.variables["COUNTERSIGN_HOME"]) / "files")
    with files.open(export.file) as stored:
        rows = list(csv.reader(io.TextIOWrapper(stored, "utf-8-sig")))
    assert export.rows_total == 10
    assert len(rows) == 11


def administered(product: Product) -> None:
    """Open a form of the administration: its choices are read while the page is written."""
    person = Person(product)
    User.objects.filter(pk=person.user.pk).update(is_staff=True)
    with person.client() as browser:
        answer = browser.get("/admin/auth/group/add/")
    assert answer.status_code == 200
    assert answer.text.count("<option") > 50


def test_whole_turns_run_through_a_transaction_pooler(
    product: Product, pooler: Pooler, processor_process: Processor
) -> None:
    """Refunds with their reviews and an export; web and worker hold no session of their own."""
    before = product.pids()
    refunds(product, processor_process, 6)
    exported(product)
    administered(product)
    assert product.pids() == before
    assert pooler.moves["other"] > pooler.moves["same"]
    assert pooler.most_clients > SESSIONS
    assert "Traceback" not in product.log("web")
    assert "run.database_lost" not in product.log("worker-turns")


def test_nothing_is_left_in_the_sessions_that_others_will_meet(
    product: Product, pooler: Pooler
) -> None:
    """No prepared statement, no cursor, no channel, no temporary table, no lock of a session."""
    traces = {
        "prepared statements": "SELECT count(*) FROM pg_prepared_statements",
        "cursors": "SELECT count(*) FROM pg_cursors WHERE is_holdable",
        "channels": "SELECT count(*) FROM pg_listening_channels()",
        "temporary tables": "SELECT count(*) FROM pg_class WHERE relpersistence = 't'",
        "advisory locks": "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory'",
        "isolation": "SELECT (current_setting('default_transaction_isolation')"
        " <> 'read committed')::int",
    }
    with psycopg.connect(pooler.url, autocommit=True, prepare_threshold=None) as client:
        for _round in range(SESSIONS * 2):
            left = {}
            for name, query in traces.items():
                row = client.execute(query).fetchone()
                assert row is not None
                left[name] = row[0]
            assert left == dict.fromkeys(traces, 0)


def test_the_pooler_of_these_tests_shows_who_relies_on_a_session(db: str) -> None:
    """A prepared statement, a setting and a held cursor are lost from one transaction to the next.

    The probe of the tests above: what would break in production must break here.
    """
    with (
        transaction_pooler(db, size=2) as pooler,
        psycopg.connect(pooler.url, autocommit=True, prepare_threshold=0) as client,
    ):
        with pytest.raises(psycopg.errors.InvalidSqlStatementName):
            client.execute("SELECT %s::int", [1])
        client.prepare_threshold = None
        client.execute("SET lock_timeout = '7s'")
        seen = set()
        for _number in range(4):
            row = client.execute("SHOW lock_timeout").fetchone()
            assert row is not None
            seen.add(row[0])
        assert seen == {"7s", "0"}
        client.execute("DECLARE held CURSOR WITH HOLD FOR SELECT generate_series(1, 9)")
        with pytest.raises(psycopg.errors.InvalidCursorName):
            client.execute("FETCH 1 FROM held")


@pytest.mark.full
def test_the_deployment_steps_run_through_a_transaction_pooler(pooler: Pooler) -> None:
    for command in (["migrate", "--no-input"], ["checkpoints_setup"], ["roles_setup"]):
        done = subprocess.run(
            [str(BASE_DIR / ".venv/bin/python"), "manage.py", *command],
            cwd=BASE_DIR,
            env={**os.environ, "DATABASE_URL": pooler.url},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr[-2000:]
