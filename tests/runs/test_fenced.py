"""What a host writes in one statement: all of it or nothing, under the locks, and told in order."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F
from django.utils import timezone

from agent_core.contract import completed
from agent_core.errors import RunCancelled, StaleAttempt
from agent_core.host import CallRecord, ModelUsage
from agent_core.runs import claims, live, services, work
from agent_core.runs.django_host import DjangoHost
from agent_core.runs.journal import run_event
from agent_core.runs.models import Call, Conversation, Event, ModelCall, Run
from agent_core.runs.states import CallState
from tests.rig.threads import Caller

Write = Callable[[DjangoHost, Call], object]

USAGE = ModelUsage(
    number=1, model="m", input_tokens=7, output_tokens=3, milliseconds=5, finish_reason="stop"
)
DONE = completed("look.completed", stop=False, data={"summary": "found it", "odd": [None, "é\n"]})

WRITES: dict[str, Write] = {
    "model_ended": lambda host, _call: host.model_ended(USAGE),
    "gated": lambda host, _call: host.gated(2, [record(0)]),
    "call_began": lambda host, call: host.call_began(call.pk),
    "call_ended": lambda host, call: host.call_ended(call.pk, "Looked", "Found.", DONE),
}


def record(position: int, **changed: Any) -> CallRecord:
    """Return a call as the gate hands it over."""
    usual: dict[str, Any] = {
        "id": str(uuid4()),
        "position": position,
        "tool": "probe_look",
        "label": f"Looking {position}",
        "arguments": {"key": "a", "amount": 1.5, "none": None, "more": ["é", {"x": "\n"}]},
        "verdict": "allow",
        "rule": "reads",
        "identity": "",
        "effect": False,
    }
    return CallRecord(**{**usual, **changed})


@pytest.fixture
def claimed(conversation: Conversation, tom: User) -> Run:
    """Return a run that this process has claimed."""
    run = services.message_send(conversation=conversation, sender=tom, text="hello")
    found = claims.run_claim(run.pk, quarantined=False)
    assert found is not None
    return found


@pytest.fixture
def host(claimed: Run) -> DjangoHost:
    """Return the host of the claimed run."""
    return DjangoHost(claimed, work.toolset())


@pytest.fixture
def call(host: DjangoHost) -> Call:
    """Return a call that the gate has let through."""
    host.gated(1, [record(0)])
    return Call.objects.get()


def stored() -> list[Any]:
    """Return everything that the writes could change."""
    return [list(model.objects.order_by("pk").values()) for model in (Call, Event, ModelCall)]


@pytest.mark.parametrize("name", WRITES)
@pytest.mark.parametrize(
    "moved", [{"attempt": F("attempt") + 1}, {"state": "waiting", "lease_until": None}], ids=str
)
def test_of_a_stale_attempt_no_write_leaves_anything(
    host: DjangoHost, call: Call, name: str, moved: dict[str, Any]
) -> None:
    Run.objects.update(**moved)
    before = stored()
    with pytest.raises(StaleAttempt):
        WRITES[name](host, call)
    assert stored() == before


@pytest.mark.parametrize("name", WRITES)
def test_a_takeover_that_is_not_committed_yet_is_waited_for(
    host: DjangoHost, call: Call, name: str
) -> None:
    before = stored()
    with transaction.atomic():
        Run.objects.update(attempt=F("attempt") + 1)
        late = Caller(lambda: WRITES[name](host, call))
        assert late.waits()
    assert isinstance(late.outcome(), StaleAttempt)
    assert stored() == before


@pytest.mark.parametrize("name", sorted(set(WRITES) - {"model_ended"}))
def test_what_is_told_waits_for_the_conversation_and_comes_behind_whoever_had_it(
    host: DjangoHost, claimed: Run, call: Call, name: str
) -> None:
    with transaction.atomic():
        Conversation.objects.select_for_update().get()
        late = Caller(lambda: WRITES[name](host, call))
        assert late.waits()
        run_event(claimed)
        first = Event.objects.latest("pk")
    assert late.outcome() is None
    last = Event.objects.latest("pk")
    assert last.kind == "call"
    assert last.pk > first.pk
    assert last.created_at > first.created_at


def test_what_a_model_call_used_waits_for_no_conversation(host: DjangoHost, claimed: Run) -> None:
    with transaction.atomic():
        Conversation.objects.select_for_update().get()
        assert Caller(lambda: host.model_ended(USAGE)).outcome() is None
    assert ModelCall.objects.get(run=claimed, attempt=1, number=1).input_tokens == 7


def test_a_model_call_that_is_stored_again_says_what_the_last_one_used(host: DjangoHost) -> None:
    host.model_ended(USAGE)
    first = ModelCall.objects.get()
    host.model_ended(
        replace(
            USAGE,
            model="",
            input_tokens=70,
            output_tokens=30,
            milliseconds=50,
            finish_reason="length",
        )
    )
    again = ModelCall.objects.get()
    assert (again.pk, again.created_at) == (first.pk, first.created_at)
    assert (again.input_tokens, again.output_tokens, again.milliseconds) == (70, 30, 50)
    assert (again.model, again.finish_reason) == (again.run.model, "length")


@pytest.mark.parametrize("name", sorted(set(WRITES) - {"call_began"}))
def test_each_write_hears_of_a_stop_and_is_stored_all_the_same(
    host: DjangoHost, call: Call, name: str
) -> None:
    before = stored()
    Run.objects.update(cancel_requested_at=timezone.now())
    WRITES[name](host, call)
    assert stored() != before
    with pytest.raises(RunCancelled):
        host.safe_point()


def test_a_call_of_a_run_that_shall_stop_is_not_shown_as_begun(
    host: DjangoHost, call: Call
) -> None:
    Run.objects.update(cancel_requested_at=timezone.now())
    before = stored()
    with pytest.raises(RunCancelled):
        host.call_began(call.pk)
    assert stored() == before


def test_a_batch_is_stored_as_the_gate_left_it_and_told_in_its_order(
    host: DjangoHost, claimed: Run
) -> None:
    first = record(0)
    last = record(1, effect=True, identity="x" * 64, content="No.", artifact=DONE, label="Ü")

    host.gated(3, [first, last])

    one, two = Call.objects.filter(run=claimed).order_by("position")
    assert (str(one.pk), one.batch, one.state, one.outcome) == (first.id, 3, CallState.QUEUED, None)
    assert one.arguments == first.arguments
    assert (one.tool, one.verdict, one.rule, one.label) == (
        "probe_look", "allow", "reads", "Looking 0",
    )  # fmt: skip
    assert (one.effect, one.identity, one.content, one.ended_at) == (False, "", "", None)
    assert (two.outcome, two.content, two.identity, two.effect) == (DONE, "No.", "x" * 64, True)
    assert (two.state, two.label) == (CallState.DONE, "Ü")
    assert two.ended_at is not None
    told = Event.objects.filter(kind="call").order_by("pk").values_list("payload", flat=True)
    assert [payload["call"] for payload in told] == [first.id, last.id]
    assert {"state": "done", "summary": "found it", "reason": "completed"}.items() <= told[
        1
    ].items()


def test_a_batch_that_is_gated_again_keeps_when_a_call_of_it_was_begun(
    host: DjangoHost, call: Call
) -> None:
    host.call_began(call.pk)
    began = Call.objects.get().started_at
    host.gated(1, [record(0, id=str(call.pk), verdict="block", content="No.", artifact=DONE)])
    again = Call.objects.get()
    assert began is not None
    assert (again.started_at, again.verdict, again.content) == (began, "block", "No.")


def test_a_call_is_shown_as_begun_and_as_ended_with_what_came_of_it(
    host: DjangoHost, call: Call
) -> None:
    host.call_began(call.pk)
    assert Call.objects.get().state == CallState.RUNNING
    host.call_ended(call.pk, "Looked", "Found.", DONE)
    after = Call.objects.get()
    assert (after.state, after.label, after.content, after.outcome) == (
        CallState.DONE, "Looked", "Found.", DONE,
    )  # fmt: skip
    assert after.started_at is not None
    assert after.ended_at is not None
    states = [event.payload["state"] for event in Event.objects.filter(kind="call").order_by("pk")]
    assert states == ["queued", "running", "done"]


def test_of_a_call_whose_outcome_is_unclear_none_is_stored(host: DjangoHost, call: Call) -> None:
    host.call_ended(call.pk, "Looked", "?", None)
    assert Call.objects.filter(outcome__isnull=True, state=CallState.UNKNOWN).exists()


def test_readers_are_woken_by_the_last_event_once_it_is_there(
    host: DjangoHost, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks: list[int] = []
    monkeypatch.setattr(live, "tick_after_commit", lambda _conversation, event: ticks.append(event))
    host.gated(1, [record(0), record(1)])
    assert ticks == [Event.objects.latest("pk").pk]
