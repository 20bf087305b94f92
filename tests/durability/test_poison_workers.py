"""A poison run among innocent ones, in real workers with the product's own commands."""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import redis
from django.contrib.auth.models import User
from django.db.models import Sum

from agent_core.runs import services
from agent_core.runs.models import Message, Run, StopRecord
from agent_core.runs.states import RUN_FINAL, Role, RunState
from agent_core.runs.tasks import sweep
from config.launcher import parts
from tests.durability.poison.model import MEET, NAME, POISON
from tests.durability.poison.ward import SETTINGS
from tests.durability.worker import LEASES
from tests.rig.processes import Process
from tests.rig.product import Parts
from tests.rig.waiting import until
from tickets.models import Ticket

pytestmark = [pytest.mark.timeout(400), pytest.mark.slow]

PATIENCE = 150
INNOCENT = 8

Start = Callable[..., Process]


def lines(worker: Process) -> list[dict[str, Any]]:
    """Return what a worker has logged so far, if as JSON; Celery's banner is left out."""
    return [json.loads(line) for line in worker.said().splitlines() if line.startswith("{")]


@pytest.fixture
def start(
    tmp_path: Path, database_url: str, transactional_db: None, queues: None, settings: Any
) -> Iterator[Start]:
    """Start workers; whatever is left of them ends with the test."""
    settings.CHAT_MODEL = NAME
    variables = {**LEASES, "DJANGO_SETTINGS_MODULE": SETTINGS, "DATABASE_URL": database_url}
    with Parts(tmp_path, variables) as made:

        def begin(kind: str, **more: str) -> Process:
            spec = parts.worker(kind, os.environ["REDIS_URL"])
            return made.start(replace(spec, env=more))

        yield begin


def asked(*texts: str) -> list[Run]:
    """Send each text in a conversation of its own."""
    ana = User.objects.create_superuser("ana")
    return [
        services.message_send(
            conversation=services.conversation_start(owner=ana), sender=ana, text=text
        )
        for text in texts
    ]


def swept(holds: Callable[[], bool], what: str) -> None:
    """Do beat's part until something holds."""

    def told() -> str:
        kept = Run.objects.values_list("state", "quarantined", "strikes", "attempt")
        return f"{what}: {list(kept)}"

    until(holds, told, PATIENCE, meanwhile=sweep, every=0.2)


def all_ended() -> bool:
    """Tell whether no run is left that goes on."""
    return not Run.objects.exclude(state__in=RUN_FINAL).exists()


@pytest.mark.parametrize("deadly", [1, pytest.param(2, marks=pytest.mark.full)])
def test_b20_a_poison_run_takes_its_worker_down_and_is_set_aside_while_the_others_end(
    start: Start, caplog: pytest.LogCaptureFixture, deadly: int
) -> None:
    """All are with the model of one worker when the poison kills it: the turns meet there.

    Then a quarantine worker starts, and the test does beat's part.
    """
    poison = asked_poison(deadly)
    turns = start("turns", **{MEET: str(INNOCENT + deadly)})
    swept(turns.dead, "the death of the turns worker")
    keys = [run.pk for run in poison]
    innocent = Run.objects.exclude(pk__in=keys)
    assert innocent.count() == INNOCENT
    assert set(Run.objects.values_list("attempt", flat=True)) == {1}

    quarantine = start("quarantine", LOG_FORMAT="json")
    swept(all_ended, "the end of all runs")

    for run in Run.objects.filter(pk__in=keys):
        assert (run.state, run.strikes) == (RunState.PARKED, 3)
        # Once in the turns worker and three times alone; each taking back counts as well.
        assert run.attempt == 2 * 3 + 1
        said = Message.objects.get(run=run, role=Role.ASSISTANT).text
        assert said.startswith("This request was set aside")
    assert set(innocent.values_list("state", "strikes")) == {("done", 0)}
    assert Ticket.objects.count() == INNOCENT
    assert Message.objects.filter(role=Role.ASSISTANT).count() == INNOCENT + deadly
    assert StopRecord.objects.count() == INNOCENT + deadly
    # Nobody waited for the poison: all were through before it was set aside.
    last = innocent.order_by("ended_at").values_list("ended_at", flat=True).last()
    first_parked = Run.objects.filter(pk__in=keys).order_by("ended_at").first()
    assert last is not None
    assert first_parked is not None
    assert first_parked.ended_at is not None
    assert last < first_parked.ended_at
    alarms = [entry for entry in caplog.records if entry.getMessage() == "run.parked"]
    assert [alarm.levelno for alarm in alarms] == [logging.ERROR] * deadly

    # Each death of a child names its run.
    lost = [line for line in lines(quarantine) if line["event"] == "worker.lost"]
    assert {line["level"] for line in lost} == {"ERROR"}
    assert {line["run_id"] for line in lost} == {str(key) for key in keys}
    exits = [line for line in lines(quarantine) if line["event"].startswith("Process ")]
    assert len(exits) >= len(lost) == 3 * deadly

    # No loop goes on: nothing is in line, nothing is claimed again, the worker still lives.
    assert not quarantine.dead()
    worked = Run.objects.aggregate(tries=Sum("attempt"))
    for _tick in range(5):
        sweep()
    with redis.Redis.from_url(os.environ["REDIS_URL"]) as client:
        assert client.llen("turns") == client.llen("quarantine") == 0
    assert Run.objects.aggregate(tries=Sum("attempt")) == worked
    # What comes later is worked off by the same quarantine worker.
    later = asked_later()
    swept(lambda: Run.objects.get(pk=later.pk).state == RunState.DONE, "the later run")
    assert not quarantine.dead()


def asked_poison(deadly: int) -> list[Run]:
    """Send the innocent messages with the deadly ones among them; return the deadly runs."""
    boxes = [f"open a ticket about the broken box number {number}" for number in range(INNOCENT)]
    runs = asked(*boxes[:3], *[POISON] * deadly, *boxes[3:])
    return runs[3 : 3 + deadly]


def asked_later() -> Run:
    """Send one more message, and let it lie in quarantine as if its worker had died."""
    ana = User.objects.get()
    run = services.message_send(
        conversation=services.conversation_start(owner=ana),
        sender=ana,
        text="open a ticket about the last box",
    )
    Run.objects.filter(pk=run.pk).update(quarantined=True, enqueued_at=None)
    return run
