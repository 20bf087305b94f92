"""A worker that is replaced: it finishes what has an effect, hands the rest back, and goes in time.

Everything runs in real processes on the product's own commands; only the model is held by the test.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User

from agent_core.runs import services
from agent_core.runs.models import Message, Run, StopRecord
from agent_core.runs.states import RUN_FINAL, Role, RunState
from agent_core.runs.tasks import sweep
from payments.models import Intent, Refund
from payments.sandbox.tokens import SLOW_COMMITTED
from reviews.models import Review
from reviews.services import review_approve
from tests.durability.model import NAME, HeldModel, held_model
from tests.durability.worker import LEASES, worker_start
from tests.payments.cast import Desk
from tests.payments.processor import Processor
from tests.rig.processes import Process
from tests.rig.product import Parts
from tests.rig.waiting import until
from tickets.models import Ticket

pytestmark = [pytest.mark.slow, pytest.mark.timeout(240), pytest.mark.django_db(transaction=True)]

LEAVES_IN = 20
"""Seconds in which a worker is gone after SIGTERM: what an operator's tool is told to wait."""

PATIENCE = 90

Start = Callable[..., Process]


@pytest.fixture
def model(settings: Any) -> Iterator[HeldModel]:
    """Run a model that answers when it may; new runs are for it."""
    with held_model() as made:
        settings.CHAT_MODEL = NAME
        yield made


@pytest.fixture
def start(
    tmp_path: Path, database_url: str, processor: Processor, model: HeldModel, queues: None
) -> Iterator[Start]:
    """Start workers; whatever is left of them ends with the test."""
    variables = {
        **LEASES,
        "DATABASE_URL": database_url,
        "SANDBOX_URL": processor.url,
        "PAYMENT_TIMEOUT_SECONDS": "20",
        "MODEL_TIMEOUT_SECONDS": "60",
        **model.variables,
    }
    with Parts(tmp_path, variables) as parts:
        yield partial(worker_start, parts)


def swept(holds: Callable[[], bool], what: str) -> None:
    """Wait until something holds, doing beat's part meanwhile."""
    until(holds, lambda: f"{what}: {states()}", PATIENCE, meanwhile=sweep, every=0.1)


def states() -> list[tuple[str, int]]:
    return list(Run.objects.order_by("created_at").values_list("state", "attempt"))


def asked(owner: User, text: str) -> Run:
    """Send a message in a conversation of its own."""
    return services.message_send(
        conversation=services.conversation_start(owner=owner), sender=owner, text=text
    )


def leaves(worker: Process) -> float:
    """Ask the worker to leave and return how many seconds it took; it ends in order.

    One that is still starting knows no signal yet.
    """
    worker.ready(PATIENCE)
    began = time.monotonic()
    assert worker.leave() == 0
    return time.monotonic() - began


@pytest.fixture
def desk(processor: Processor, transactional_db: None) -> Desk:
    """Return Ana and Lea, and a payment whose processor answers late."""
    made = Desk(fault=SLOW_COMMITTED)
    for person in (made.ana, made.lea):
        User.objects.filter(pk=person.pk).update(is_superuser=True)
        person.refresh_from_db()
        made.team.members.add(person)
    return made


@pytest.mark.parametrize("pool", ["threads", "prefork"])
def test_a_worker_leaves_in_time_whatever_it_is_in_the_middle_of_and_nothing_is_lost(
    desk: Desk, processor: Processor, model: HeldModel, start: Start, settings: Any, *, pool: str
) -> None:
    """SIGTERM while one run waits for a silent model and another for the processor.

    The first is handed back and its thread, or its process, left behind; the second's refund ends
    as it ended. A second worker goes on with both, and leaves when it is idle.
    """
    settings.CHAT_MODEL = "offline:planner"
    refund = asked(desk.ana, f"refund 5.00 EUR of {desk.payment.reference} because it broke")
    first = start(pool)
    swept(Review.objects.exists, "the review")
    model.hold()
    settings.CHAT_MODEL = NAME
    silent = asked(desk.ana, "Parcel is late")
    swept(lambda: model.asked == 1, "the call of the model")
    swept(lambda: Run.objects.get(pk=refund.pk).state == RunState.WAITING, "the pause")
    review_approve(review_id=Review.objects.get().pk, actor=desk.lea, channel="desk")
    sent = desk.payment.processor_ref
    swept(lambda: processor.refunded(sent) == [500], "the refund at the processor")

    assert leaves(first) < LEAVES_IN

    silent.refresh_from_db()
    # The attempts are not counted: its message may come back here before the consumer is closed.
    assert (silent.state, silent.quarantined) == (RunState.QUEUED, False)
    # The try was waited for: its end, whichever it is, stands in the ledger.
    assert Intent.objects.filter(tries=1).count() == 1
    refund.refresh_from_db()
    assert not refund.quarantined

    model.release()
    second = start(pool)
    swept(lambda: all(state in RUN_FINAL for state, _attempt in states()), "the ends")
    assert leaves(second) < LEAVES_IN
    assert StopRecord.objects.count() == 2
    assert Ticket.objects.filter(subject="Parcel is late").count() == 1
    assert (processor.refunded(sent), Refund.objects.count()) == ([500], 1)
    assert not Run.objects.filter(quarantined=True).exists()
    # It is told as lost nowhere: whoever takes it over would be told of a silent worker.
    assert "lease_expired" not in first.said() + second.said()


def _rolled(start: Start, owner: User, rounds: int) -> list[Run]:
    """Replace two workers one after the other, so often, while a turn comes every moment."""
    workers = [start(), start()]
    runs = [asked(owner, f"Parcel {number}") for number in range(4)]
    swept(lambda: any(state in RUN_FINAL for state, _ in states()), "the first end")
    for _round in range(rounds):
        for place in range(2):
            runs += [asked(owner, f"Parcel {len(runs) + number}") for number in range(4)]
            assert leaves(workers[place]) < LEAVES_IN
            runs += [asked(owner, f"Parcel {len(runs) + number}") for number in range(4)]
            workers[place] = start()
    swept(lambda: all(state in RUN_FINAL for state, _ in states()), "the ends")
    return runs


@pytest.mark.parametrize("rounds", [1, pytest.param(3, marks=pytest.mark.full)])
def test_a_rolling_restart_under_load_loses_nothing_and_doubles_nothing(
    rounds: int, desk: Desk, start: Start
) -> None:
    runs = _rolled(start, desk.ana, rounds)
    ids = [run.pk for run in runs]
    assert set(Run.objects.values_list("state", flat=True)) == {RunState.DONE}
    assert StopRecord.objects.filter(run__in=ids).count() == len(runs)
    assert Message.objects.filter(run__in=ids, role=Role.ASSISTANT).count() == len(runs)
    subjects = sorted(Ticket.objects.values_list("subject", flat=True))
    assert subjects == sorted(f"Parcel {number}" for number in range(len(runs)))
    assert not Run.objects.filter(quarantined=True).exists()
