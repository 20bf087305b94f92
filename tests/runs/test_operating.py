"""What stands still is seen with its cause, and a push sets it right, however often it comes."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from agent_core.runs import operating, queue, services
from agent_core.runs.errors import NotFound
from agent_core.runs.models import Conversation, Event, Run, StopRecord
from agent_core.runs.operating import run_push, runs_stuck, runs_working
from agent_core.runs.states import RunState
from reviews.models import Review
from reviews.states import State
from tests.runs.scripting import ScriptedModel


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the runs whose task was sent."""
    found: list[str] = []

    def task_send(_task: str, argument: str) -> bool:
        found.append(argument)
        return True

    monkeypatch.setattr(queue, "task_send", task_send)
    return found


def stood(run: Run, seconds: float = 60, **values: Any) -> Run:
    """Let the run have come into this state so long ago."""
    then = timezone.now() - timedelta(seconds=seconds)
    Run.objects.filter(pk=run.pk).update(created_at=then, **values)
    Event.objects.filter(run=run).update(created_at=then)
    run.refresh_from_db()
    return run


def asked(owner: User, text: str = "look", talk: Conversation | None = None) -> Run:
    """Send a message, in a conversation of its own unless one is given."""
    conversation = talk or services.conversation_start(owner=owner)
    return services.message_send(conversation=conversation, sender=owner, text=text)


def causes() -> dict[Any, str]:
    return {one.run.pk: one.why for one in runs_stuck()}


def lease(seconds: float) -> dict[str, Any]:
    """Return what a claim writes whose lease ends so many seconds from now."""
    now = timezone.now()
    return {
        "state": RunState.RUNNING,
        "attempt": 1,
        "claimed_at": now,
        "lease_until": now + timedelta(seconds=seconds),
        "worker": "turns@one",
    }


def test_only_what_should_have_gone_on_stands_still(tom: User, sent: list[str]) -> None:
    fresh, old = asked(tom), stood(asked(tom))
    held = stood(asked(tom), **lease(60))
    silent = stood(asked(tom), **lease(-1))
    waiting = stood(asked(tom), state=RunState.WAITING)
    behind = stood(asked(tom, talk=held.conversation))
    nobody = stood(asked(tom), state=RunState.PENDING)
    done = stood(asked(tom), state=RunState.DONE)

    found = causes()

    assert found == {
        old.pk: operating.NOT_TAKEN,
        silent.pk: operating.LEASE_OVER,
        waiting.pk: operating.NOT_WOKEN,
        nobody.pk: operating.BEHIND_NOTHING,
    }
    assert behind.state == RunState.PENDING
    assert not {fresh.pk, held.pk, behind.pk, done.pk} & set(found)
    assert [run.pk for run in runs_working()] == [held.pk]
    assert operating.oldest_waits() > timedelta(seconds=55)


def test_the_longest_wait_is_counted_from_when_a_run_joined_the_line(
    tom: User, sent: list[str]
) -> None:
    """Asked a day ago and decided just now; asked a minute ago and not taken since."""
    assert operating.oldest_waits() == timedelta()
    decided = stood(asked(tom), 86_400, state=RunState.DECIDED)
    decided.events.update(created_at=timezone.now())
    assert operating.oldest_waits() < timedelta(seconds=30)
    stood(asked(tom), 60)
    assert timedelta(seconds=55) < operating.oldest_waits() < timedelta(minutes=5)


def test_a_long_line_makes_the_longest_wait_no_dearer(
    tom: User, sent: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Machines ask every few seconds, most of all when ten thousand runs wait."""
    monkeypatch.setattr(operating, "LOOKED", 3, raising=False)
    for age in range(12):
        stood(asked(tom), 60 + age)
    with CaptureQueriesContext(connection) as asks:
        assert timedelta(seconds=70) < operating.oldest_waits() < timedelta(minutes=5)
    [statement] = asks.captured_queries
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN (ANALYZE, VERBOSE) " + statement["sql"])
        plan = [line for (line,) in cursor.fetchall() if "runs_event" in line]
    assert plan
    assert {int(loops) for loops in re.findall(r"loops=(\d+)", " ".join(plan))} <= {0, 1, 2, 3}


def test_sending_again_what_lies_in_line_does_not_make_it_look_fresh(
    tom: User, sent: list[str]
) -> None:
    """The sweep sends every ten seconds; the wait is counted from when it began."""
    run = stood(asked(tom))
    run_push(run_id=run.pk, actor=tom)
    assert causes() == {run.pk: operating.NOT_TAKEN}


def test_a_run_waits_rightly_while_one_of_its_reviews_is_open(
    tom: User, sent: list[str], script: Callable[..., ScriptedModel], say: Callable[[str], Run]
) -> None:
    script([("probe_refund", {"amount": "5"})], "done")
    run = stood(say("refund"))
    assert run.state == RunState.WAITING
    assert causes() == {}
    assert run_push(run_id=run.pk, actor=tom) is False
    Review.objects.update(state=State.EXPIRED, decided_at=timezone.now())
    assert causes() == {run.pk: operating.NOT_WOKEN}
    run_push(run_id=run.pk, actor=tom)
    run.refresh_from_db()
    assert run.state == RunState.DECIDED


def test_a_decided_run_behind_a_working_one_does_not_stand_still(
    tom: User, sent: list[str]
) -> None:
    decided = stood(asked(tom), state=RunState.DECIDED)
    assert causes() == {decided.pk: operating.NOT_TAKEN}
    working = asked(tom, talk=decided.conversation)
    Run.objects.filter(pk=working.pk).update(**lease(60))
    assert causes() == {}


@pytest.mark.parametrize("state", [RunState.QUEUED, RunState.PENDING])
def test_a_push_sends_what_nobody_has_taken_and_twice_does_it_once(
    tom: User, sent: list[str], state: str, script: Callable[..., ScriptedModel]
) -> None:
    from agent_core.runs.work import run_work

    script("Hello.")
    run = stood(asked(tom), state=state)
    sent.clear()
    for _press in range(2):
        run_push(run_id=run.pk, actor=tom)
    assert sent == [str(run.pk)] * 2
    for _message in sent:
        run_work(run.pk)
    run.refresh_from_db()
    assert (run.state, run.attempt) == (RunState.DONE, 1)
    assert StopRecord.objects.filter(run=run).count() == 1
    assert run_push(run_id=run.pk, actor=tom) is False
    assert len(sent) == 2


def test_a_push_takes_a_run_from_a_silent_worker_into_quarantine_once(
    tom: User, sent: list[str]
) -> None:
    run = stood(asked(tom), **lease(-1))
    for _press in range(2):
        run_push(run_id=run.pk, actor=tom)
    run.refresh_from_db()
    assert (run.state, run.quarantined, run.attempt, run.strikes) == (RunState.QUEUED, True, 2, 0)
    assert [one.pk for one in operating.runs_quarantined()] == [run.pk]


def test_a_push_says_whether_anything_stood_still(tom: User, sent: list[str]) -> None:
    """First the one behind a silent worker's run; then nothing that could be pushed is left."""
    dead = asked(tom)
    Run.objects.filter(pk=dead.pk).update(**lease(-1))
    behind = stood(asked(tom, talk=dead.conversation), state=RunState.PENDING)
    assert run_push(run_id=behind.pk, actor=tom) is True
    assert run_push(run_id=behind.pk, actor=tom) is False
    Run.objects.filter(pk=dead.pk).update(**lease(60))
    assert run_push(run_id=dead.pk, actor=tom) is False


def test_nobody_else_pushes(tom: User, sent: list[str]) -> None:
    run = stood(asked(tom))
    sent.clear()
    stranger = User.objects.create_user("stranger")
    for actor, which in ((stranger, run.pk), (tom, uuid4())):
        with pytest.raises(NotFound):
            run_push(run_id=which, actor=actor)
    assert sent == []


def test_what_was_set_aside_is_listed_until_somebody_lets_it_go_on(
    tom: User, sent: list[str]
) -> None:
    run = stood(asked(tom), state=RunState.PARKED, ended_at=timezone.now(), strikes=3)
    assert [one.pk for one in operating.runs_parked()] == [run.pk]
    services.run_requeue(run=run, actor=tom)
    assert operating.runs_parked() == []
