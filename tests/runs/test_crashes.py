"""A worker that dies at any point of a turn: the next one ends it once, and says what is true."""

from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from itertools import count

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from agent_core.checkpoints import FencedSaver
from agent_core.runs import django_host, services, work
from agent_core.runs.models import Call, Conversation, Event, Message, Run, StopRecord
from agent_core.runs.states import CallState, Role, RunState
from agent_core.runs.tasks import sweep
from reviews.models import Review
from reviews.services import review_approve
from reviews.states import State
from tests.runs.scripting import ScriptedModel

Play = Callable[..., ScriptedModel]
Say = Callable[[str], Run]
Die = Callable[..., None]


class Died(BaseException):
    """Stands for SIGKILL: nothing catches it, and nothing is stored after it."""


@pytest.fixture
def die(monkeypatch: pytest.MonkeyPatch) -> Die:
    """Let the worker die before or after a function, the first time it is called, or the n-th."""

    def arrange(owner: object, name: str, after: bool, *, call: int = 1) -> None:
        whole = getattr(owner, name)
        called = count(1)

        def fatal(*args: object, **options: object) -> object:
            if next(called) != call:
                return whole(*args, **options)
            if after:
                whole(*args, **options)
            raise Died

        monkeypatch.setattr(owner, name, fatal)

    return arrange


def taken_over(run: Run) -> Run:
    """Let the lease be over, do beat's part, and work the run off as the quarantine worker does."""
    Run.objects.filter(pk=run.pk, state=RunState.RUNNING).update(
        lease_until=timezone.now() - timedelta(seconds=1)
    )
    sweep()
    work.run_work(run.pk, quarantined=True)
    run.refresh_from_db()
    return run


def begun(conversation: Conversation, text: str) -> Run:
    """Send a message and work on it until the worker dies."""
    run = services.message_send(conversation=conversation, sender=conversation.owner, text=text)
    with pytest.raises(Died):
        work.run_work(run.pk)
    return run


POINTS = [
    ("model_began", False),
    ("model_ended", False),
    ("model_ended", True),
    ("gated", False),
    ("gated", True),
    ("call_began", False),
    ("call_began", True),
    ("call_ended", False),
    ("call_ended", True),
    ("ended", False),
]


@pytest.mark.parametrize("point", POINTS)
def test_a_death_around_each_write_leaves_one_ended_turn(
    point: tuple[str, bool],
    script: Play,
    conversation: Conversation,
    effects: list[str],
    die: Die,
) -> None:
    pay = [("probe_pay", {"amount": "5"})]
    script(pay, pay)
    die(django_host.DjangoHost, *point)

    run = taken_over(begun(conversation, "pay 5"))

    assert (run.state, run.stop.rule) == (RunState.DONE, "completed")
    assert Message.objects.filter(run=run, role=Role.ASSISTANT).count() == 1
    assert StopRecord.objects.count() == 1
    assert Call.objects.get(run=run).state == CallState.DONE
    # The probe keeps no ledger: what ran before its result was stored runs again, under one id.
    assert set(effects) == {"pay 5"}


@pytest.mark.parametrize("call", range(1, 15))
def test_a_death_while_checkpoints_are_held_back_leaves_one_ended_turn(
    script: Play, conversation: Conversation, effects: list[str], die: Die, call: int
) -> None:
    """Two rounds: the saver is given 14 checkpoints, and keeps 7 of them until the next."""
    look, pay = [("probe_look", {"key": "Ana"})], [("probe_pay", {"amount": "5"})]
    # Only what the model said last may be lost; it is asked for that again.
    script(look, *([look] if call == 4 else []), pay, *([pay] if call == 9 else []))
    die(FencedSaver, "put", False, call=call)

    run = taken_over(begun(conversation, "pay Ana"))

    assert (run.state, run.stop.rule) == (RunState.DONE, "completed")
    assert Counter(row.tool for row in run.calls.all()) == {"probe_look": 1, "probe_pay": 1}
    assert StopRecord.objects.count() == 1
    # The probe keeps no ledger: killed right after the call, it runs again, under one id.
    assert effects == ["pay 5"] or (call == 11 and set(effects) == {"pay 5"})


def test_a_death_after_the_end_changes_nothing_more(
    script: Play, conversation: Conversation, effects: list[str], die: Die
) -> None:
    script([("probe_pay", {"amount": "5"})])
    die(django_host.DjangoHost, "ended", True)

    run = begun(conversation, "pay 5")
    events = Event.objects.count()
    run = taken_over(run)

    assert (run.state, effects) == (RunState.DONE, ["pay 5"])
    assert Event.objects.count() == events


def test_a_death_between_the_pause_and_the_wait_refuses_nothing(
    script: Play, conversation: Conversation, effects: list[str], die: Die, maria: User
) -> None:
    """The checkpoint pauses, the row does not say so yet: the review is still open to the lead."""
    script([("probe_refund", {"amount": "5"})])
    die(work, "run_wait", False)

    run = taken_over(begun(conversation, "refund 5"))

    assert (run.state, effects) == (RunState.WAITING, [])
    review = Review.objects.get()
    assert review.state == State.PENDING
    review_approve(review_id=review.pk, actor=maria, channel="desk")
    work.run_work(run.pk)
    run.refresh_from_db()
    assert (run.state, effects) == (RunState.DONE, ["refund 5 approved"])


def parked_in_the_air(script: Play, conversation: Conversation, die: Die) -> Run:
    """Return a run whose worker died for the third time in quarantine, while its effect was out."""
    script([("probe_pay", {"amount": "5"})])
    die(django_host.DjangoHost, "call_began", True)
    run = begun(conversation, "pay 5")
    Run.objects.filter(pk=run.pk).update(
        quarantined=True, strikes=2, lease_until=timezone.now() - timedelta(seconds=1)
    )

    sweep()

    run.refresh_from_db()
    return run


def test_a_parked_run_says_of_an_effect_in_the_air_that_it_is_being_checked(
    script: Play, conversation: Conversation, die: Die
) -> None:
    """Three deaths in quarantine while the effect is out: nobody knows whether it happened."""
    run = parked_in_the_air(script, conversation, die)

    assert (run.state, run.stop.rule) == (RunState.PARKED, "parked")
    assert Call.objects.get().state == CallState.UNKNOWN
    said = Message.objects.get(run=run, role=Role.ASSISTANT).text
    assert "not known yet whether this happened" in said
    assert "nothing" not in said.lower()
    assert run.stop.not_done == ["Doing pay (outcome unknown)"]


def test_a_parked_run_has_one_reference_in_its_row_its_answer_and_the_log(
    script: Play, conversation: Conversation, die: Die, caplog: pytest.LogCaptureFixture
) -> None:
    run = parked_in_the_air(script, conversation, die)

    reference = run.failure_reference
    assert reference.startswith("E-")
    assert (run.strikes, run.stop.evidence) == (3, {"reference": reference, "strikes": 3})
    said = Message.objects.get(run=run, role=Role.ASSISTANT).text
    assert f"Reference: {reference}." in said
    [alarm] = [vars(entry) for entry in caplog.records if entry.getMessage() == "run.parked"]
    assert alarm["levelname"] == "ERROR"
    assert str(run.pk) in {str(value) for value in alarm.values()}
    assert (alarm["reference"], alarm["strikes"]) == (reference, 3)


def test_a_lease_renewed_at_the_last_moment_is_not_parked(
    script: Play, conversation: Conversation, die: Die
) -> None:
    """The sweep has read the row; the worker renews before the sweep writes."""
    from agent_core.errors import StaleAttempt
    from agent_core.runs.claims import leases_return
    from agent_core.runs.endings import run_parked

    script([("probe_pay", {"amount": "5"})])
    die(django_host.DjangoHost, "call_began", True)
    run = begun(conversation, "pay 5")
    Run.objects.filter(pk=run.pk).update(
        quarantined=True, strikes=2, lease_until=timezone.now() - timedelta(seconds=1)
    )
    parked = leases_return()
    assert [one.pk for one in parked] == [run.pk]
    Run.objects.filter(pk=run.pk).update(lease_until=timezone.now() + timedelta(seconds=9))

    with pytest.raises(StaleAttempt):
        run_parked(parked[0])

    run.refresh_from_db()
    assert run.state == RunState.RUNNING
    assert StopRecord.objects.count() == 0


def test_what_a_cancelled_run_asked_for_is_withdrawn_with_it(
    script: Play, conversation: Conversation, tom: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Stop is pressed while a look-up of the batch runs; the lead is not left to decide."""
    script([("probe_look", {"key": "Ana"}), ("probe_refund", {"amount": "5"})])
    began = django_host.DjangoHost.call_ended
    run = services.message_send(conversation=conversation, sender=tom, text="find and refund")

    def stop_pressed(self: django_host.DjangoHost, *args: object) -> None:
        began(self, *args)  # type: ignore[arg-type]
        services.run_cancel(run=Run.objects.get(pk=run.pk), actor=tom)

    monkeypatch.setattr(django_host.DjangoHost, "call_ended", stop_pressed)
    work.run_work(run.pk)

    run.refresh_from_db()
    assert (run.state, run.stop.rule) == (RunState.CANCELLED, "cancelled")
    assert Review.objects.get().state == State.WITHDRAWN
    assert Event.objects.filter(kind="review", payload__state="withdrawn").count() == 1


def test_a_failed_run_leaves_no_review_behind(
    script: Play, conversation: Conversation, tom: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    script([("probe_look", {"key": "Ana"}), ("probe_refund", {"amount": "5"})])

    def broken(self: django_host.DjangoHost, *args: object) -> None:
        raise RuntimeError("broken")

    monkeypatch.setattr(django_host.DjangoHost, "call_ended", broken)
    run = services.message_send(conversation=conversation, sender=tom, text="find and refund")
    work.run_work(run.pk)

    run.refresh_from_db()
    assert run.state == RunState.FAILED
    assert Review.objects.get().state == State.EXPIRED


def test_a_stop_between_the_gate_and_the_wait_is_not_lost(
    script: Play,
    conversation: Conversation,
    tom: User,
    effects: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The last safe point has passed when the person presses Stop; the run may not wait then."""
    script([("probe_refund", {"amount": "5"})])
    wait = services.run_wait

    def pressed_first(run: Run, seconds: int) -> None:
        services.run_cancel(run=Run.objects.get(pk=run.pk), actor=tom)
        wait(run, seconds)

    monkeypatch.setattr(work, "run_wait", pressed_first)
    run = services.message_send(conversation=conversation, sender=tom, text="refund 5")
    work.run_work(run.pk)

    run.refresh_from_db()
    assert (run.state, effects) == (RunState.CANCELLED, [])
    assert Review.objects.get().state == State.WITHDRAWN


def test_a_cancelled_run_never_says_that_nothing_was_done_beside_an_unknown_outcome(
    script: Play, conversation: Conversation, tom: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    script([("probe_slow", {"amount": "5"})], "never said")
    ended = django_host.DjangoHost.call_ended
    run = services.message_send(conversation=conversation, sender=tom, text="slow")

    def stop_pressed(self: django_host.DjangoHost, *args: object) -> None:
        ended(self, *args)  # type: ignore[arg-type]
        services.run_cancel(run=Run.objects.get(pk=run.pk), actor=tom)

    monkeypatch.setattr(django_host.DjangoHost, "call_ended", stop_pressed)
    work.run_work(run.pk)

    said = Message.objects.get(run=run, role=Role.ASSISTANT).text
    assert said == "Stopped as you asked.\n\nIt is being checked."


def test_a_database_that_comes_back_brings_the_run_back_without_suspicion(
    script: Play, conversation: Conversation, effects: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection is lost in one step; the worker is alive, so this is no strike."""
    from django.db import OperationalError

    script([("probe_pay", {"amount": "5"})])
    run = services.message_send(conversation=conversation, sender=conversation.owner, text="pay 5")
    whole = django_host.DjangoHost.gated
    lost: list[bool] = []

    def gated(self: django_host.DjangoHost, *args: object) -> None:
        if not lost:
            lost.append(True)
            raise OperationalError("the connection is lost")
        whole(self, *args)  # type: ignore[arg-type]

    monkeypatch.setattr(django_host.DjangoHost, "gated", gated)
    work.run_work(run.pk)
    run.refresh_from_db()
    assert (run.state, run.quarantined, run.strikes) == (RunState.QUEUED, False, 0)
    work.run_work(run.pk)

    run.refresh_from_db()
    assert (run.state, effects) == (RunState.DONE, ["pay 5"])
