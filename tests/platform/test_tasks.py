"""Queues, routes and the beat table. Task names are data: a renamed task loses what is queued."""

from typing import Any

import pytest
from django.conf import settings

from config.broker import broker_url
from config.celery import app

ROUTES = {
    "runs.run_work": "turns",
    "runs.run_quarantine": "quarantine",
    "exports.export_write": "exports",
    "runs.run_sweep": "maintenance",
    "payments.intents_settle": "maintenance",
    "reviews.reviews_expire": "maintenance",
    "exports.exports_sweep": "maintenance",
    "runs.checkpoints_prune": "maintenance",
}
BEAT = {
    "runs.run_sweep": 2.0,
    "payments.intents_settle": 5.0,
    "reviews.reviews_expire": 60.0,
    "exports.exports_sweep": 10.0,
    "runs.checkpoints_prune": 3600.0,
    "audit.chain_extend": 10.0,
    "processor.events_sweep": 10.0,
    "processor.reconcile_daily": 3600.0,
}


@pytest.mark.parametrize(("task", "queue"), ROUTES.items())
def test_each_task_goes_to_its_queue(task: str, queue: str) -> None:
    route: dict[str, Any] = app.amqp.router.route({}, task)
    assert route["queue"].name == queue


def test_the_beat_table_is_pinned() -> None:
    table = settings.CELERY_BEAT_SCHEDULE.values()
    assert {entry["task"]: entry["schedule"] for entry in table} == BEAT


def test_every_task_of_the_table_exists() -> None:
    app.loader.import_default_modules()
    assert set(ROUTES) <= set(app.tasks)


@pytest.mark.parametrize(
    ("address", "broker"),
    [
        ("redis://:word@host:6379/2", "redis://:word@host:6379/2"),
        ("unix:///tmp/r.sock?db=3", "redis+socket:///tmp/r.sock?virtual_host=3"),
        ("unix:///tmp/r.sock", "redis+socket:///tmp/r.sock?virtual_host=0"),
    ],
)
def test_a_redis_address_becomes_a_broker_address(address: str, broker: str) -> None:
    assert broker_url(address) == broker
