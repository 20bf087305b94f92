"""Runs that take their worker down: set aside after three deaths alone, with nobody else harmed.

Processes are forked and die for real; leases end and beat sweeps when the test says so.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from agent_core.errors import StaleAttempt
from agent_core.runs import claims, endings, services, tasks
from agent_core.runs.errors import NotFound, RunRefused
from agent_core.runs.models import Message, Run, StopRecord
from agent_core.runs.states import Role, RunState
from exports.models import Export
from exports.services import export_request
from exports.services_sweep import exports_sweep
from payments.models import Intent, Refund
from payments.services import intents_settle
from reviews.models import Review
from tests.concurrency.turns import Turn
from tests.durability.poison.model import GREEDY, NAME, POISON
from tests.durability.poison.ward import KILLED, Nursery, Ward, answers, lease_over, standing
from tests.payments.processor import Processor
from tickets.models import Ticket

pytestmark = pytest.mark.timeout(300)

SET_ASIDE = (
    "This request was set aside because it could not be worked off. "
    "An operator has been told; the assistant does not go on with it."
)
BOX = "open a ticket about the broken box"


@pytest.fixture(scope="module")
def nursery(
    tmp_path_factory: pytest.TempPathFactory, database_url: str, processor_process: Processor
) -> Iterator[Nursery]:
    """Run the process that forks this module's workers."""
    folder: Path = tmp_path_factory.mktemp("nursery")
    made = Nursery(
        folder,
        DATABASE_URL=database_url,
        SANDBOX_URL=processor_process.url,
        PAYMENT_TIMEOUT_SECONDS="10",
    )
    yield made
    made.close()


@pytest.fixture
def ward(transactional_db: None, nursery: Nursery, queues: None, settings: Any) -> Ward:
    """Return Ana's runs, read by the deadly model."""
    settings.CHAT_MODEL = NAME
    return Ward(nursery, User.objects.create_superuser("ana", first_name="Ana"))


@pytest.fixture
def turn(ward: Ward, processor: Processor, settings: Any) -> Turn:
    """Return a refund of 5.00 that waits, worked off so far in the test's own process."""
    settings.CHAT_MODEL = "offline:planner@0"
    return Turn(processor)


@pytest.fixture
def olga(transactional_db: None) -> User:
    """Return an operator."""
    return User.objects.create_superuser("olga", first_name="Olga")


def test_b20_a_run_that_kills_every_worker_is_set_aside_after_three_deaths_alone(
    ward: Ward, caplog: pytest.LogCaptureFixture
) -> None:
    run = ward.asks(POISON)
    steps = []
    for _death in range(4):
        ward.dies(run)
        steps.append(standing(run))

    assert steps == [
        ("queued", True, 0),
        ("queued", True, 1),
        ("queued", True, 2),
        ("parked", True, 3),
    ]
    run.refresh_from_db()
    reference = run.failure_reference
    assert answers(run) == [f"{SET_ASIDE} Reference: {reference}."]
    record = StopRecord.objects.get(run=run)
    assert record.rule == "parked"
    assert record.evidence == {"reference": reference, "strikes": 3}
    [alarm] = [entry for entry in caplog.records if entry.getMessage() == "run.parked"]
    assert alarm.levelno == logging.ERROR
    assert str(run.pk) in {str(value) for value in vars(alarm).values()}

    # Nobody takes it any more, whatever is delivered or swept.
    attempt = run.attempt
    assert ward.take(run) == 0
    lease_over()
    assert standing(run) == ("parked", True, 3)
    assert run.attempt == attempt
    with pytest.raises(RunRefused, match="Only a request that failed or was stopped"):
        services.run_retry(run=run, actor=ward.owner)


@pytest.mark.parametrize("deadly", [2, pytest.param(1, marks=pytest.mark.full)])
def test_innocent_runs_of_a_worker_that_died_end_rightly_and_are_blamed_for_nothing(
    ward: Ward, deadly: int
) -> None:
    """One worker has claimed all of them and dies; then processes take them one at a time."""
    poison = [ward.asks(POISON) for _each in range(deadly)]
    innocent = [ward.asks(f"{BOX} number {number}") for number in range(4)]
    for run in (*poison, *innocent):
        assert claims.run_claim(run.pk, quarantined=False) is not None
    lease_over()

    deaths = ward.rounds(*poison, *innocent)

    assert deaths == 3 * deadly
    assert {standing(run) for run in poison} == {("parked", True, 3)}
    assert {standing(run) for run in innocent} == {("done", True, 0)}
    assert Ticket.objects.count() == len(innocent)
    assert {len(answers(run)) for run in (*poison, *innocent)} == {1}
    assert StopRecord.objects.count() == len(poison) + len(innocent)


def test_a_conversation_goes_on_after_its_run_was_set_aside(ward: Ward) -> None:
    poison = ward.asks(POISON)
    behind = services.message_send(
        conversation=poison.conversation, sender=ward.owner, text=f"{BOX} behind it"
    )
    assert behind.state == RunState.PENDING
    assert ward.rounds(poison) == 4
    behind.refresh_from_db()
    assert behind.state == RunState.QUEUED
    assert ward.take(behind) == 0
    assert standing(behind) == ("done", False, 0)
    assert Ticket.objects.count() == 1


def test_a_run_whose_workers_are_killed_from_outside_twice_ends_and_is_not_set_aside(
    ward: Ward,
) -> None:
    run = ward.asks(BOX)
    for _death in range(3):
        ward.dies(run, die_at="model.call:before")
    assert standing(run) == ("queued", True, 2)
    assert ward.take(run) == 0
    assert run.state == RunState.DONE
    assert Ticket.objects.count() == 1
    assert len(answers(run)) == 1


def test_memory_that_the_process_may_not_have_fails_the_run_and_not_the_worker(ward: Ward) -> None:
    run = ward.asks(GREEDY)
    assert ward.take(run) == 0
    assert standing(run) == ("failed", False, 0)
    assert StopRecord.objects.get(run=run).rule == "failed"
    assert not Ticket.objects.exists()


def test_strikes_are_forgotten_when_the_run_has_waited_for_a_person(ward: Ward, turn: Turn) -> None:
    """Two deaths alone, then it waits; after the approval it is worked among the others again."""
    ward.owner = turn.ana
    run = ward.asks(f"refund 3.00 EUR of {turn.desk.payment.reference} because a cup was broken")
    for _death in range(3):
        ward.dies(run, die_at="model.call:before")
    assert standing(run) == ("queued", True, 2)
    assert ward.take(run) == 0
    assert standing(run) == ("waiting", False, 0)

    turn.approve(review_id=Review.objects.get(run_id=run.pk).pk)
    for _death in range(3):
        ward.dies(run, die_at="processor.send:after")
    assert standing(run) == ("queued", True, 2)
    assert ward.take(run) == 0
    assert run.state == RunState.DONE
    assert turn.sent() == [300]
    assert Refund.objects.get().state == "succeeded"


def test_a_refund_that_kills_its_worker_in_flight_is_paid_once_and_told_when_it_has_settled(
    ward: Ward, turn: Turn, olga: User
) -> None:
    """Each process dies after the processor has committed; the run is set aside; the task settles.

    The operator's requeue then goes on from the ledger, and pays nothing again.
    """
    turn.approve()
    for _death in range(4):
        ward.dies(turn.run, die_at="processor.send:after")
    assert standing(turn.run) == ("parked", True, 3)
    assert turn.sent() == [500]
    [said] = answers(turn.run)
    assert said.startswith(SET_ASIDE)
    assert "being checked" in said
    with pytest.raises(RunRefused, match="still being checked"):
        services.run_requeue(run=turn.run, actor=olga)

    Intent.objects.update(next_try_at=timezone.now() - timedelta(seconds=1))
    intents_settle()
    assert Refund.objects.get().state == "succeeded"
    assert "5.00 EUR" in Message.objects.get(role=Role.NOTICE).text

    again = services.run_requeue(run=turn.run, actor=olga)
    assert ward.take(again) == 0
    assert again.state in {RunState.DONE, RunState.WAITING}
    assert turn.sent() == [500]
    assert Refund.objects.count() == 1


def test_an_operator_lets_a_set_aside_run_go_on_as_its_requesters_and_once(
    ward: Ward, olga: User
) -> None:
    run = ward.asks(BOX)
    for _death in range(4):
        ward.dies(run, die_at="model.call:before")
    assert run.state == RunState.PARKED

    again = services.run_requeue(run=run, actor=olga)
    assert services.run_requeue(run=run, actor=olga).pk == again.pk
    assert (again.requester, again.continues_id) == (ward.owner, run.pk)
    assert standing(again) == ("queued", True, 0)
    assert ward.take(again) == 0
    assert again.state == RunState.DONE
    assert Ticket.objects.get().requester == ward.owner
    assert Run.objects.get(pk=run.pk).state == RunState.PARKED


def test_who_is_no_operator_cannot_requeue_not_even_who_asked(ward: Ward, olga: User) -> None:
    ward.owner = User.objects.create_user("tom")
    run = ward.asks(POISON)
    assert ward.rounds(run) == 4
    lead = User.objects.create_user("lea")
    for person in (ward.owner, lead):
        with pytest.raises(NotFound):
            services.run_requeue(run=run, actor=person)
    olga.is_active = False
    with pytest.raises(NotFound):
        services.run_requeue(run=run, actor=olga)
    assert Run.objects.count() == 1


@pytest.mark.parametrize("text", [BOX, GREEDY])
def test_only_what_was_set_aside_is_requeued(ward: Ward, olga: User, text: str) -> None:
    run = ward.asks(text)
    with pytest.raises(RunRefused, match="Only a request that was set aside"):
        services.run_requeue(run=run, actor=olga)
    ward.take(run)
    assert run.state in {RunState.DONE, RunState.FAILED}
    with pytest.raises(RunRefused, match="Only a request that was set aside"):
        services.run_requeue(run=run, actor=olga)
    assert Run.objects.count() == 1


@pytest.mark.full
def test_a_requeued_run_that_kills_again_is_set_aside_again(ward: Ward, olga: User) -> None:
    run = ward.asks(POISON)
    assert ward.rounds(run) == 4
    again = services.run_requeue(run=run, actor=olga)
    assert ward.rounds(again) == 4
    assert standing(again) == ("parked", True, 3)
    assert Message.objects.filter(role=Role.STAFF).count() == 1


def test_a_run_that_cannot_even_be_set_aside_holds_nobody_up(
    ward: Ward, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    odd, poison, innocent = ward.asks(POISON), ward.asks(POISON), ward.asks(BOX)
    parked = endings.run_parked

    def breaks(run: Run) -> None:
        if run.pk == odd.pk:
            raise ValueError("an odd row")
        parked(run)

    monkeypatch.setattr(tasks, "run_parked", breaks)
    for _death in range(4):
        ward.dies(odd)
        ward.dies(poison)
    # Its message was lost; the sweep that stumbles over the odd one sends it again.
    Run.objects.filter(pk=innocent.pk).update(enqueued_at=None)
    lease_over()

    assert standing(poison) == ("parked", True, 3)
    innocent.refresh_from_db()
    assert innocent.enqueued_at is not None
    assert "sweep.failed" in caplog.messages
    monkeypatch.undo()
    with pytest.raises(StaleAttempt):
        parked(poison)
    lease_over()
    assert standing(odd) == ("parked", True, 3)


@pytest.mark.parametrize("point", ["model.call:before", "checkpoint:before", "ticket.open:after"])
def test_b20_a_worker_killed_in_the_middle_of_a_turn_loses_and_doubles_nothing(
    ward: Ward, point: str
) -> None:
    run = ward.asks(BOX)
    ward.dies(run, die_at=point)
    assert standing(run) == ("queued", True, 0)
    assert ward.take(run) == 0
    assert run.state == RunState.DONE
    assert Ticket.objects.count() == 1
    assert len(answers(run)) == 1


@pytest.mark.parametrize("point", ["processor.send:before", "processor.send:after"])
def test_b20_a_worker_killed_during_the_call_of_the_processor_refunds_once(
    ward: Ward, turn: Turn, point: str
) -> None:
    turn.approve()
    ward.dies(turn.run, die_at=point)
    assert ward.take(turn.run) == 0
    turn.run.refresh_from_db()
    turn.paid_once()


@pytest.mark.parametrize("point", ["storage.save:before", "storage.save:after"])
def test_b20_a_worker_killed_while_it_writes_an_export_is_replaced_and_not_for_ever(
    ward: Ward, turn: Turn, point: str
) -> None:
    User.objects.filter(pk=turn.ana.pk).update(is_superuser=True)
    ana = User.objects.get(pk=turn.ana.pk)
    first, _attached = export_request(owner=ana, kind="payments", period="this year")
    second, _attached = export_request(owner=ana, kind="payments", period="this month")

    write = "exports.export_write"
    assert ward.nursery.work(write, first.pk, point) == KILLED
    exports_later()
    assert ward.nursery.work(write, first.pk) == 0
    assert Export.objects.get(pk=first.pk).state == "ready"

    for _death in range(3):
        assert ward.nursery.work(write, second.pk, point) == KILLED
        exports_later()
    second.refresh_from_db()
    assert (second.state, second.attempt) == ("failed", 3)
    assert second.failure == "The export was interrupted 3 times. Please tell support."
    assert ward.nursery.work(write, second.pk, point) == 0


def exports_later() -> None:
    """Let every export's lease be over, and do beat's part."""
    over = timezone.now() - timedelta(seconds=1)
    Export.objects.exclude(lease_until=None).update(lease_until=over)
    exports_sweep()
