"""Field reports of the router, in whole turns: the worker's own function, the product's host.

The model plays a script on probe tools; B15 also plays on the product's tools.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import cast

import pytest
from django.contrib.auth.models import User
from langchain_core.tools import ToolException

from agent_core.chat_models import chat_model
from agent_core.contract import Artifact, RunContext, Tool, policy_block
from agent_core.runs import work
from agent_core.runs.models import Message, Run
from agent_core.runs.states import CallState, Role, RunState
from agent_core.toolset import Toolset
from tests.conformance.desk import inner_words
from tests.core.groq_server import groq_serve
from tests.runs.conftest import EFFECTS, PROBES, conversation, effects, say, tom
from tests.runs.scripting import ScriptedModel, Step, scripted

__all__ = ["conversation", "effects", "say", "tom"]

Play = Callable[..., ScriptedModel]
Say = Callable[[str], Run]

AFTERWARDS = "I have told you what came of it."


def _odd(context: RunContext, *, amount: str) -> tuple[str, Artifact]:
    """Move money and say nothing that a program can read."""
    EFFECTS.append(f"odd {amount}")
    return f"Something came of {amount}.", cast("Artifact", None)


def _forbid(context: RunContext, *, amount: str) -> tuple[str, Artifact]:
    """Forbid it where it would be done."""
    return f"{amount} may not be paid.", policy_block("pay.forbidden")


def _fails_with(error: Exception) -> Callable[..., tuple[str, Artifact]]:
    def run(context: RunContext, *, amount: str) -> tuple[str, Artifact]:
        """Fail in the middle of it."""
        raise error

    return run


def _probe(name: str, run: Callable[..., tuple[str, Artifact]]) -> Tool:
    return replace(PROBES[0], name=name, run=run)


TOOLS = (
    *PROBES,
    _probe("probe_odd", _odd),
    _probe("probe_forbid", _forbid),
    _probe("probe_tool_error", _fails_with(ToolException("inner: pi_123 was not there"))),
    _probe("probe_plain_error", _fails_with(KeyError("inner_key"))),
    _probe("probe_time_out", _fails_with(TimeoutError("inner.example:443 timed out"))),
)


@pytest.fixture
def play(monkeypatch: pytest.MonkeyPatch) -> Play:
    """Let the worker's model play the given steps on the probes of this page."""

    def played(*steps: Step) -> ScriptedModel:
        model = scripted(steps)
        monkeypatch.setattr(work, "chat_model", lambda *_args, **_options: model)
        monkeypatch.setattr(work, "toolset", lambda: Toolset(TOOLS))
        return model

    return played


def _batch(*tools: str) -> Step:
    return [(f"probe_{tool}", {"amount": str(place)}) for place, tool in enumerate(tools, 5)]


def _answer(run: Run) -> str:
    found = Message.objects.filter(run=run, role=Role.ASSISTANT).last()
    assert found is not None
    assert found.text.strip()
    assert inner_words(found.text) == []
    return found.text


def _reasons(run: Run) -> list[str]:
    rows = run.calls.order_by("batch", "position").values_list("outcome", flat=True)
    return [str((outcome or {}).get("reason", "")) for outcome in rows]


# One batch, what the router says of it, the model calls it takes, and what ran.
Row = tuple[Sequence[str], str, int, list[str]]
TABLE: Sequence[Row] = (
    (("pay",), "completed", 1, ["pay 5"]),
    (("pay", "pay"), "completed", 1, ["pay 5", "pay 6"]),
    (("slow",), "answered", 2, []),
    (("decline",), "fatal", 1, []),
    (("decline", "broken"), "fatal", 1, []),
    (("forbid",), "policy_block", 1, []),
    (("blocked",), "policy_block", 1, []),
    (("pay", "slow"), "answered", 2, ["pay 5"]),
    (("pay", "forbid"), "policy_block", 1, ["pay 5"]),
    (("pay", "blocked"), "policy_block", 1, []),
    (("pay", "decline"), "answered", 2, ["pay 5"]),
    (("odd",), "answered", 2, ["odd 5"]),
    (("pay", "odd"), "answered", 2, ["odd 6", "pay 5"]),
    (("forbid", "odd"), "policy_block", 1, ["odd 6"]),
    (("slow", "forbid"), "policy_block", 1, []),
)


@pytest.mark.parametrize("row", TABLE, ids=["-".join(row[0]) for row in TABLE])
def test_b05_a_turn_ends_only_when_every_result_of_its_batch_is_terminal(
    play: Play, say: Say, effects: list[str], row: Row
) -> None:
    tools, rule, model_calls, ran = row
    model = play(_batch(*tools), AFTERWARDS)

    run = say("do it all")

    assert (run.state, run.stop.rule) == (RunState.DONE, rule)
    assert len(model.requests) == run.stop.model_calls_made == model_calls
    assert sorted(effects) == ran
    answer = _answer(run)
    if model_calls == 2:
        assert answer == AFTERWARDS
    else:
        # On a stop the tools speak for themselves: what came of each call stands in the answer.
        assert [call for call in run.calls.all() if call.content not in answer] == []


def test_b05_only_what_may_succeed_is_tried_again_and_not_for_ever(
    play: Play, say: Say, effects: list[str]
) -> None:
    again = _batch("pay", "slow")
    model = play(again, again, again, again, again, AFTERWARDS)

    run = say("pay and wait")

    assert effects == ["pay 5"]
    assert run.stop.rule == "budget"
    assert (run.stop.evidence["limit"], len(model.requests)) == ("tries", 3)
    assert "the same step did not succeed (tries used 3, allowed 3)" in _answer(run)
    assert "Paid 5." in _answer(run)


def test_b05_no_outcome_counts_as_unknown_and_never_as_completed(
    play: Play, say: Say, effects: list[str]
) -> None:
    play(_batch("odd"), AFTERWARDS)

    run = say("pay 5")

    assert [call.state for call in run.calls.all()] == [CallState.UNKNOWN]
    assert (run.stop.done, effects) == ([], ["odd 5"])
    assert run.stop.not_done == ["Doing pay (outcome unknown)"]


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (_batch("tool_error"), "fatal"),
        (_batch("plain_error"), "fatal"),
        (_batch("time_out"), "fatal"),
        ([("probe_pay", {"sum": "5"})], "transient"),
        ([("probe_pay", '{"amount": 5')], "transient"),
        ([("probe_payed", {"amount": "5"})], "transient"),
    ],
    ids=["tool-error", "plain-error", "time-out", "arguments", "unreadable", "unknown-name"],
)
def test_b07_each_way_to_fail_has_a_class_and_a_plain_sentence_and_moves_nothing(
    play: Play, say: Say, effects: list[str], step: Step, reason: str
) -> None:
    model = play(step, AFTERWARDS)

    run = say("pay 5")

    (call,) = run.calls.all()
    assert _reasons(run) == [reason]
    assert call.state == CallState.FAILED
    assert (effects, run.stop.done) == ([], [])
    # What is final is not tried again; what the model can mend is told to it, once.
    assert len(model.requests) == (1 if reason == "fatal" else 2)
    for text in (_answer(run), call.content):
        assert inner_words(text) == []
        assert "inner" not in text


@pytest.mark.parametrize("name", ["probe_payment", "probe_pays", "Probe_Pay", "pay", " probe_pay"])
def test_b15_a_near_name_runs_nothing_and_ends_in_plain_words(
    play: Play, say: Say, effects: list[str], name: str
) -> None:
    wrong: Step = [(name, {"amount": "5"})]
    model = play(wrong, wrong, wrong, wrong, AFTERWARDS)

    run = say("pay 5")

    assert effects == []
    # Two more tries, and then the turn ends by itself.
    assert (run.stop.rule, len(model.requests)) == ("budget", 3)
    assert set(_reasons(run)) == {"transient"}
    for text in (_answer(run), *run.calls.values_list("content", flat=True)):
        assert not any(tool.name in text for tool in TOOLS), text


def test_b15_what_a_role_may_not_use_is_neither_offered_nor_run(
    play: Play, say: Say, effects: list[str], tom: User
) -> None:
    User.objects.filter(pk=tom.pk).update(is_superuser=False)
    model = play(_batch("pay"), AFTERWARDS)

    run = say("pay 5")

    assert model.offered == [[]]
    assert (run.stop.rule, effects) == ("policy_block", [])
    assert "right" in _answer(run)


def test_b15_a_call_that_the_provider_refuses_fails_the_run_in_plain_words(
    monkeypatch: pytest.MonkeyPatch, say: Say, effects: list[str]
) -> None:
    with groq_serve() as server:
        model = chat_model("groq:tool-refused", timeout=5, api_key="k-1", base_url=server.address)
        monkeypatch.setattr(work, "chat_model", lambda *_args, **_options: model)
        monkeypatch.setattr(work, "toolset", lambda: Toolset(TOOLS))

        run = say("pay 5")

        assert len(server.requests) == 1
    assert (run.state, run.calls.count(), effects) == (RunState.FAILED, 0, [])
    assert run.failure_reference in _answer(run)
    assert "function" not in _answer(run)
