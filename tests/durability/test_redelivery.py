"""The broker delivers again what takes long: it is done once, and the second delivery leaves."""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import redis
from celery import current_app
from django.db import connection
from psycopg import sql

from agent_core.runs.models import Event, Message, Run
from agent_core.runs.queue import WORK_TASK
from agent_core.runs.states import Role, RunState
from config.broker import broker_url
from exports.models import Export
from exports.moves import WRITE_TASK
from exports.states import EXPORT_WORKING, ExportState
from payments.models import Intent, Payment
from tests.durability.own import broker, db, model
from tests.durability.product import QUEUES, Person, Product, ended
from tests.durability.test_pooler import RefundTurn
from tests.payments.processor import Processor, processor_process
from tests.rig.servers import Server
from tests.rig.waiting import until
from tickets.models import Ticket

__all__ = ["broker", "db", "model", "processor_process"]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

VISIBILITY_SECONDS = 1
WORKERS = ("one", "two")
HANDS = 4
"""What both workers do at once; they take as many messages in advance."""

ROWS = 30_000
ROUTE = "POST /v1/refunds"


@pytest.fixture(scope="module")
def product(
    db: str,
    broker: Server,
    processor_process: Processor,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Product]:
    """Run web server and two workers; what is not begun within a second is offered again."""
    variables = {
        "DATABASE_URL": db,
        "REDIS_URL": broker.url,
        "BROKER_VISIBILITY_TIMEOUT_SECONDS": str(VISIBILITY_SECONDS),
        "CHAT_MODEL": "offline:planner@0",
        "SANDBOX_URL": processor_process.url,
        "PAYMENT_TIMEOUT_SECONDS": "60",
        "COUNTERSIGN_HOME": str(tmp_path_factory.mktemp("home")),
    }
    with Product(tmp_path_factory.mktemp("product"), variables) as made:
        made.web()
        for name in WORKERS:
            made.worker(name, size=2)
        made.ready()
        yield made


@contextmanager
def silent(processor: Processor) -> Iterator[None]:
    """Let the processor take calls and answer none for the length of the body."""
    assert processor._process is not None
    os.kill(processor._process.pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(processor._process.pid, signal.SIGCONT)


def many_payments(like: Payment) -> None:
    """Copy a payment so often that writing them down takes a while."""
    anew = {"id": "gen_random_uuid()", "reference": "'MANY-' || n", "processor_ref": "'many-' || n"}
    columns = [str(field.column) for field in Payment._meta.concrete_fields]
    copied: list[sql.Composable] = [
        sql.SQL(anew[each]) if each in anew else sql.Identifier(each) for each in columns
    ]
    query = sql.SQL("INSERT INTO {} ({}) SELECT {} FROM {}, generate_series(1, {}) AS n").format(
        sql.Identifier(Payment._meta.db_table),
        sql.SQL(", ").join([sql.Identifier(each) for each in columns]),
        sql.SQL(", ").join(copied),
        sql.Identifier(Payment._meta.db_table),
        ROWS,
    )
    with connection.cursor() as cursor:
        cursor.execute(query + sql.SQL(" WHERE id = %s"), [like.pk])


def delivered_again(product: Product, task: str, argument: str) -> None:
    """Deliver a task once more, as a broker does that was not told in time that it was taken."""
    with current_app.connection_for_write(url=broker_url(product.redis_url)) as line:
        current_app.send_task(task, args=[argument], connection=line)


def logs(product: Product) -> str:
    """Return what both workers have said."""
    return "".join(product.log(f"worker-{name}") for name in WORKERS)


def claims(product: Product, *runs: Run) -> list[int]:
    """Count how often each run was claimed."""
    said = logs(product)
    return [len(re.findall(f"run\\.claimed.*{run.pk}", said)) for run in runs]


def lying(product: Product, queue: str) -> int:
    """Count the messages that lie in a queue."""
    with redis.Redis.from_url(product.redis_url) as client:
        return int(client.llen(queue))


def all_begun(product: Product) -> bool:
    """Tell whether every delivery has come to a hand: none lies anywhere, or is held in advance."""
    with redis.Redis.from_url(product.redis_url) as client:
        return not any(client.llen(queue) for queue in QUEUES.split(",")) and not client.hlen(
            "unacked"
        )


def nothing_failed(product: Product, before: dict[str, int]) -> None:
    """Check that no delivery ended in an error, or ended its worker."""
    assert product.pids() == before
    for sign in ("Traceback", "raised unexpected", "ERROR"):
        assert sign not in logs(product)


def test_b19_a_delivery_of_what_is_under_way_leaves_quietly(
    product: Product, processor_process: Processor
) -> None:
    """A refund whose processor is silent and a long export: both are delivered twice more."""
    before = product.pids()
    refund = RefundTurn(product, processor_process)
    many_payments(refund.desk.payment)
    until(refund.waits, "the review")
    asked = processor_process.asked(ROUTE)
    with silent(processor_process):
        refund.approve()
        until(lambda: Intent.objects.filter(run_id=refund.run.pk).exists(), "the gateway call")
        for _delivery in range(2):
            delivered_again(product, WORK_TASK, str(refund.run.pk))
        until(lambda: all_begun(product), "the deliveries", 30)
        assert Run.objects.get(pk=refund.run.pk).state == RunState.RUNNING

        # In another conversation: in this one it would wait in line.
        run = Person(product, refund.desk.ana).asks("export the payments of this month")
        until(lambda: Export.objects.filter(run_id=run.pk).exists(), "the export")
        export = Export.objects.get(run_id=run.pk)

        def state() -> str:
            export.refresh_from_db()
            return str(export.state)

        until(lambda: state() != ExportState.QUEUED, "the claim")
        for _delivery in range(2):
            delivered_again(product, WRITE_TASK, str(export.pk))
        assert state() in EXPORT_WORKING
        until(lambda: logs(product).count("export.left") == 2, "the deliveries", 30)
        until(lambda: state() == ExportState.READY, "the file")
    assert ended(refund.run, run) == ["completed"] * 2
    refund.paid_once()
    assert processor_process.asked(ROUTE) == asked + 1
    assert claims(product, refund.run, run) == [2, 1]
    assert (export.attempt, export.rows_total, export.failure) == (1, ROWS + 1, "")
    files = Path(product.variables["COUNTERSIGN_HOME"]) / "files"
    assert len([each for each in files.rglob("*") if each.is_file()]) == 1
    for each in (refund.run, run):
        assert Message.objects.filter(run=each, role=Role.ASSISTANT).count() == 1
    told = Event.objects.filter(kind="export", payload__state="ready")
    assert told.filter(conversation=export.conversation_id).count() == 1
    nothing_failed(product, before)


def test_b19_what_redis_offers_again_after_the_visibility_timeout_is_done_once(
    product: Product, processor_process: Processor
) -> None:
    """All hands of both workers are in long calls; what they hold in advance is offered again."""
    before = product.pids()
    refunds = [RefundTurn(product, processor_process) for _hand in range(HANDS)]
    until(lambda: all(refund.waits() for refund in refunds), "the reviews")
    keys = [refund.run.pk for refund in refunds]
    with silent(processor_process):
        for refund in refunds:
            refund.approve()
        until(lambda: Intent.objects.filter(run_id__in=keys).count() == HANDS, "the calls")
        person = Person(product)
        people = [person, *(Person(product, person.user) for _number in range(HANDS - 1))]
        runs = [each.asks(f"open a ticket about box {at}") for at, each in enumerate(people)]
        until(lambda: lying(product, "turns") == 0, "their being taken in advance")
        until(lambda: lying(product, "turns") == len(runs), "their being offered again")
        assert set(Run.objects.filter(pk__in=[run.pk for run in runs]).values_list("state")) == {
            (RunState.QUEUED,)
        }
    assert ended(*(refund.run for refund in refunds), *runs) == ["completed"] * 2 * HANDS
    for refund in refunds:
        refund.paid_once()
    for run in runs:
        assert Ticket.objects.filter(conversation_id=run.conversation_id).count() == 1
    until(lambda: all_begun(product), "the second deliveries", 30)
    # Once to the review and once from there on, and once.
    assert claims(product, *(refund.run for refund in refunds)) == [2] * HANDS
    assert claims(product, *runs) == [1] * HANDS
    nothing_failed(product, before)
