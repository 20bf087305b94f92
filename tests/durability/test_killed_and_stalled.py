"""A worker that dies or stalls in mid-refund: the turn ends once, the money moves once."""

import signal
import time
from collections.abc import Callable

import pytest
from django.contrib.auth.models import User

from agent_core.runs import services
from agent_core.runs.models import Message, Run, StopRecord
from agent_core.runs.states import Role, RunState
from agent_core.runs.tasks import sweep
from payments.models import Intent, Refund
from payments.sandbox.tokens import SLOW_COMMITTED
from payments.tasks import intents_settle
from reviews.models import Review
from reviews.services import review_approve
from tests.durability.worker import LEASE_SECONDS
from tests.payments.cast import Desk
from tests.payments.processor import Processor
from tests.rig.processes import Process
from tests.rig.waiting import until

Start = Callable[[], Process]

pytestmark = pytest.mark.timeout(180)


class Turn:
    """Ana asks for a refund of 5.00 on a payment whose processor answers late; Lea approves."""

    def __init__(self, processor: Processor) -> None:
        self.processor = processor
        self.desk = Desk(fault=SLOW_COMMITTED)
        for person in (self.desk.ana, self.desk.lea):
            User.objects.filter(pk=person.pk).update(is_superuser=True)
            person.refresh_from_db()
            self.desk.team.members.add(person)
        conversation = services.conversation_start(owner=self.desk.ana)
        self.run = services.message_send(
            conversation=conversation,
            sender=self.desk.ana,
            text=f"refund 5.00 EUR of {self.desk.payment.reference} because the box was crushed",
        )

    def until(self, holds: Callable[[], bool], what: str, *, sweeping: bool = False) -> None:
        """Wait until something holds; `sweeping` does beat's part meanwhile."""
        until(
            holds,
            lambda: f"{what}; run is {self.state()}",
            meanwhile=sweep if sweeping else lambda: None,
            every=0.1,
        )

    def state(self) -> str:
        """Return the run's state."""
        return str(Run.objects.values_list("state", flat=True).get(pk=self.run.pk))

    def approve(self) -> None:
        """Approve as Lea."""
        self.until(lambda: self.state() == RunState.WAITING, "the review")
        review_approve(
            review_id=Review.objects.get(run_id=self.run.pk).pk,
            actor=self.desk.lea,
            channel="desk",
        )

    def in_flight(self) -> None:
        """Wait until the processor has committed and has not yet answered."""
        self.until(lambda: self.sent() == [500], "the refund at the processor")

    def sent(self) -> list[int]:
        """Return what really went back, in the processor's own books."""
        return self.processor.refunded(self.desk.payment.processor_ref)

    def ended_once(self) -> None:
        """Check the books, the ledger, the transcript and the stop record."""
        assert self.sent() == [500]
        assert Refund.objects.get().state == "succeeded"
        assert Intent.objects.get().state == "succeeded"
        assert StopRecord.objects.get(run=self.run).rule == "completed"
        answer = Message.objects.get(run=self.run, role=Role.ASSISTANT)
        assert "5.00 EUR" in answer.text
        assert Review.objects.get().consumed_at is not None


@pytest.fixture
def turn(transactional_db: None, processor: Processor, queues: None) -> Turn:
    """Return the turn, asked and not yet begun."""
    return Turn(processor)


def test_a_worker_killed_while_the_refund_is_in_flight_is_replaced_without_a_second_refund(
    turn: Turn, worker: Start
) -> None:
    """kill -9 after the processor has committed and before the ledger has the answer."""
    first = worker()
    turn.approve()
    turn.in_flight()
    first.kill()
    assert turn.state() == RunState.RUNNING

    worker()
    turn.until(lambda: turn.state() == RunState.DONE, "the end", sweeping=True)

    turn.ended_once()
    assert Run.objects.get(pk=turn.run.pk).attempt > 2


def test_a_worker_stalled_beyond_its_lease_changes_nothing_when_it_wakes(
    turn: Turn, worker: Start
) -> None:
    """SIGSTOP in flight; another worker ends the turn; SIGCONT: the first may write nothing."""
    first = worker()
    turn.approve()
    turn.in_flight()
    first.send(signal.SIGSTOP)
    time.sleep(LEASE_SECONDS + 1)
    second = worker()
    turn.until(lambda: turn.state() == RunState.DONE, "the end", sweeping=True)
    before = (
        list(Message.objects.values_list("pk", "text")),
        list(Refund.objects.values()),
        list(Intent.objects.values()),
        list(StopRecord.objects.values()),
        list(Run.objects.values()),
    )

    first.send(signal.SIGCONT)
    turn.until(lambda: "run.taken_over" in first.said(), "the refusal")

    after = (
        list(Message.objects.values_list("pk", "text")),
        list(Refund.objects.values()),
        list(Intent.objects.values()),
        list(StopRecord.objects.values()),
        list(Run.objects.values()),
    )
    assert before == after
    turn.ended_once()
    second.kill()


def test_a_worker_that_is_asked_to_leave_loses_nothing(turn: Turn, worker: Start) -> None:
    """SIGTERM in flight: the try ends unanswered, the run goes on, the task settles the refund."""
    first = worker()
    turn.approve()
    turn.in_flight()
    assert first.leave() == 0

    if turn.state() != RunState.DONE:
        worker()
        turn.until(lambda: turn.state() == RunState.DONE, "the end", sweeping=True)
    assert StopRecord.objects.get(run=turn.run).rule == "answered"
    assert "being checked" in Message.objects.get(run=turn.run, role=Role.ASSISTANT).text

    def settled() -> bool:
        intents_settle()
        return Refund.objects.get().state == "succeeded"

    turn.until(settled, "the settlement")
    assert turn.sent() == [500]
    assert "5.00 EUR" in Message.objects.get(role=Role.NOTICE).text
