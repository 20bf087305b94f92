"""A model that repeats changes nothing more, and it is the no-repeat rule that sees to it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage

from agent_core.gate import Gate
from tests.savings.conftest import Setting
from tests.savings.measure import Trio
from tests.savings.repeats import (
    Again,
    RepeatingModel,
    again_measure,
    again_missed,
    again_table,
    repeating,
)
from tests.savings.report import PAGE

# The first test plays the short form twice, which a busy machine takes its time for.
pytestmark = pytest.mark.timeout(400)

# Nothing was done, or nothing that a repeat could be of: a refusal ends the turn in every mode.
_NOTHING_DONE = {"search", "policy_block", "answered"}


@pytest.fixture(scope="module")
def short_again(short: list[Trio], setting: Setting) -> list[Again]:
    """Play the short form with the model that repeats."""
    with setting() as stage:
        return again_measure(short, stage)


@pytest.fixture(scope="module")
def whole_again(whole: list[Trio], setting: Setting) -> list[Again]:
    """Play the whole collection with the model that repeats."""
    with setting() as stage:
        return again_measure(whole, stage)


@pytest.fixture(
    params=["short", pytest.param("whole", marks=[pytest.mark.full, pytest.mark.timeout(1800)])]
)
def again(request: pytest.FixtureRequest, db: None) -> Sequence[Again]:
    """Return the short form, or the whole where the long tests run; `db` is named for pytest."""
    played: Sequence[Again] = request.getfixturevalue(f"{request.param}_again")
    return played


def test_a_model_that_repeats_changes_no_more_than_hard(again: Sequence[Again]) -> None:
    assert again_missed(again) == []


def test_it_repeats_wherever_something_was_done(again: Sequence[Again]) -> None:
    """Equal effects would prove nothing if nothing was repeated."""
    idle = {each.hard.request.kind for each in again if not each.calls}
    assert idle <= {*_NOTHING_DONE, "transient"}
    assert {each.hard.request.kind for each in again if each.calls} & _NOTHING_DONE == set()


def test_a_finished_call_that_comes_again_is_given_its_first_outcome(
    again: Sequence[Again],
) -> None:
    odd = [
        (each.hard.request.id, each.calls, each.kept_off)
        for each in again
        if each.kept_off != each.calls
        # Not finished yet, or changed by a reviewer, so that its repeat is refused.
        and each.hard.request.kind != "transient"
        and each.repeated.course.rule != "policy_block"
    ]
    assert odd == []


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_the_page_shows_what_the_whole_collection_did(whole_again: list[Again]) -> None:
    assert again_table(whole_again) in PAGE.read_text("utf-8")


def test_without_the_no_repeat_rule_the_same_repeats_change_more(
    short: list[Trio], setting: Setting, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Gate, "_repeat", lambda *_given: None)
    kinds = ("look_then_write", "mixed", "fatal", "ticket")
    with setting() as stage:
        found = again_measure([t for t in short if t["hard"].request.kind in kinds], stage)
    assert {each.hard.request.id: _tables(each) for each in found} == {
        "look-refund-last": {"reviews"},
        "mixed-ticket": {"intents", "processor's payments", "processor's requests"},
        "declined": {"intents", "processor's payments", "processor's requests"},
        # Here the app has a lock of its own.
        "ticket-broken-box": set(),
    }
    assert [each.kept_off for each in found] == [0, 0, 0, 0]
    assert "look-refund-last did not end when repeated: it is waiting." in again_missed(found)


def _tables(again: Again) -> set[str]:
    return {line.partition(":")[0] for line in again.differing()}


def test_a_request_that_did_not_end_is_named(short_again: list[Again]) -> None:
    waits = replace(short_again[0].repeated, state="waiting")
    (told,) = again_missed([replace(short_again[0], repeated=waits)])
    assert told == "charge-good-card did not end when repeated: it is waiting."


def test_the_model_repeats_its_last_batch_with_effects_once_and_then_answers() -> None:
    model = repeating("offline:planner@0")
    said = [
        HumanMessage("Open a ticket about a broken box"),
        _asking("ticket_create", subject="A"),
        ToolMessage("Ticket A.", tool_call_id="1"),
        _asking("customer_find", key="x"),
        ToolMessage("Nobody.", tool_call_id="1"),
    ]
    again = model.invoke(said)
    assert [(call["name"], call["args"]) for call in again.tool_calls] == [
        ("ticket_create", {"subject": "A"})
    ]
    assert not model.invoke([*said, again, ToolMessage("Ticket A.", tool_call_id="2")]).tool_calls
    assert not model.invoke([*said, AIMessage("Done."), HumanMessage("Thanks")]).tool_calls
    assert isinstance(model, RepeatingModel)
    assert "customer_find" not in model.effects


def _asking(tool: str, **arguments: str) -> AIMessage:
    call = {"name": tool, "args": arguments, "id": "1", "type": "tool_call"}
    return AIMessage("", tool_calls=[call])


def test_a_providers_model_is_not_made_to_repeat(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tests.savings.repeats.chat_model", lambda *_given, **_more: object())
    with pytest.raises(TypeError, match="is no offline model"):
        repeating("groq:some")
