"""Resuming a decided run: by two workers at once, by a task that comes twice, with a decision
missing. One effect at most, and the thread stays one that the right decision can end.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest
from django.utils import timezone

from agent_core.runs import services, work
from agent_core.runs.models import Call, Run, StopRecord
from agent_core.runs.states import RunState
from agent_core.runs.sweeping import decided_wake
from agent_core.runs.tasks import sweep
from payments.models import Refund
from reviews.models import Review
from tests.concurrency.conftest import Meet
from tests.concurrency.scripts import Script
from tests.concurrency.turns import Turn
from tests.payments.gates import GATES, Gates
from tests.rig.threads import PATIENCE, Caller, at_once, elsewhere

pytestmark = pytest.mark.timeout(180)


@pytest.fixture
def gates(turn: Turn, settings: Any) -> Iterator[Gates]:
    """Hold the first try at the processor's line until the test lets it go on."""
    settings.PAYMENT_GATEWAYS = {"sandbox": "tests.payments.gates.GatedGateway"}
    GATES.append(Gates())
    GATES[-1].write.set()
    yield GATES[-1]
    GATES.pop().open()


def test_two_workers_that_resume_the_same_decided_run_at_once_have_one_effect(
    turn: Turn, meet: Meet
) -> None:
    """Both hold the task; both meet right before the claim; then both claim."""
    turn.approve()
    meet(work, "run_claim")
    results = at_once(turn.work, turn.work)
    assert not [result for result in results if isinstance(result, Exception)]
    turn.run.refresh_from_db()
    assert (turn.run.state, turn.run.attempt) == (RunState.DONE, 2)
    turn.paid_once()


def test_a_task_that_is_delivered_again_while_the_first_is_in_the_middle_does_nothing(
    turn: Turn, gates: Gates
) -> None:
    """First: refund written, held at the processor's line. Second, third: whole. First: goes on."""
    turn.approve()
    first = Caller(turn.work)
    assert gates.sending.wait(PATIENCE)
    attempt = Run.objects.get(pk=turn.run.pk).attempt

    for quarantined in (False, True):
        elsewhere(partial(work.run_work, turn.run.pk, quarantined=quarantined))
    assert Run.objects.get(pk=turn.run.pk).attempt == attempt
    assert not StopRecord.objects.exists()

    gates.open()
    first.outcome()
    turn.paid_once()
    elsewhere(lambda: work.run_work(turn.run.pk))
    turn.paid_once()


def test_a_worker_that_was_taken_over_in_the_middle_of_the_resume_changes_nothing(
    turn: Turn, gates: Gates
) -> None:
    """First: held at the line, its lease over. Second: ends the turn. First: its answer arrives."""
    turn.approve()
    first = Caller(turn.work)
    assert gates.sending.wait(PATIENCE)
    Run.objects.filter(pk=turn.run.pk).update(lease_until=timezone.now())
    sweep()
    elsewhere(lambda: work.run_work(turn.run.pk, quarantined=True))
    turn.paid_once()
    before = turn.untouched()

    gates.open()
    first.outcome()
    turn.paid_once()
    assert turn.untouched() == before


def test_the_decision_wakes_the_run_once_however_often_it_is_swept(turn: Turn, meet: Meet) -> None:
    """Two sweeps and the decision itself try to wake the run; workers take what was enqueued."""
    turn.approve()
    at_once(decided_wake, decided_wake, sweep, sweep)
    at_once(turn.work, turn.work, turn.work)
    turn.paid_once()
    assert Run.objects.get(pk=turn.run.pk).attempt == 2


@pytest.fixture
def pair(turn: Turn) -> list[Review]:
    """Let Ana ask for two refunds in one message; return both reviews of the one batch."""
    other = turn.desk.paid()
    turn.run = services.message_send(
        conversation=turn.conversation,
        sender=turn.ana,
        text=(
            f"refund 2.00 EUR of {turn.desk.payment.reference} and refund 3.00 EUR of "
            f"{other.reference} because the box was crushed"
        ),
    )
    turn.work()
    reviews = list(Review.objects.filter(run_id=turn.run.pk).order_by("amount_minor"))
    assert [review.amount_minor for review in reviews] == [200, 300]
    return reviews


def test_a_batch_with_one_decision_missing_is_never_given_to_the_graph(
    turn: Turn, pair: list[Review]
) -> None:
    """One of two is decided, and the run is put into line by hand as if both were."""
    first, second = pair
    turn.approve(review_id=first.pk)
    script = Script(turn.run)
    before = script.thread()
    Run.objects.filter(pk=turn.run.pk).update(state=RunState.DECIDED)

    turn.work()

    assert turn.run.state == RunState.WAITING
    assert script.thread() == before
    assert turn.sent() == []
    turn.approve(review_id=second.pk, actor=turn.leo)
    turn.work()
    assert turn.run.state == RunState.DONE
    assert sorted(Refund.objects.values_list("amount_minor", flat=True)) == [200, 300]
    assert turn.sent() == [200]


def test_the_last_two_decisions_of_a_batch_at_once_resume_it_once(
    turn: Turn, pair: list[Review], meet: Meet
) -> None:
    """Each decides one of the two; both transactions meet where they tell the run."""
    first, second = pair
    meet(services, "review_decided")
    at_once(
        lambda: turn.approve(review_id=first.pk),
        lambda: turn.approve(review_id=second.pk, actor=turn.leo),
    )
    # Neither saw the other's decision when it wrote its own; the later one sees both.
    assert Run.objects.get(pk=turn.run.pk).state == RunState.DECIDED
    at_once(turn.work, turn.work)
    assert sorted(Refund.objects.values_list("amount_minor", flat=True)) == [200, 300]
    assert Run.objects.get(pk=turn.run.pk).state == RunState.DONE


def test_a_decision_of_another_run_decides_nothing_here(turn: Turn) -> None:
    """Two runs wait; the other's approval is written over this one's call by hand."""
    first = turn.run
    other_payment = turn.desk.paid()
    other = turn.ask("3.00 EUR", other_payment)
    other_review = Review.objects.get(run_id=other.pk)
    turn.approve(review_id=other_review.pk)
    Run.objects.filter(pk=first.pk).update(state=RunState.DECIDED)

    elsewhere(lambda: work.run_work(first.pk))

    assert Run.objects.get(pk=first.pk).state == RunState.WAITING
    assert work.decisions(first.pk, [str(other_review.call_id)]) == {}
    work.run_work(other.pk)
    assert turn.processor.refunded(other_payment.processor_ref) == [300]
    assert turn.sent() == []
    assert Call.objects.get(pk=turn.review.call_id).state == "waiting"
    turn.approve()
    turn.work()
    assert turn.sent() == [500]
