"""How a turn of the stack ends (relayed, polished, measured, cut short), and what is kept of it."""

from __future__ import annotations

from typing import Any

import pytest
from langchain.agents.middleware import AgentMiddleware, AgentState, hook_config
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage
from langgraph.runtime import Runtime

from agent_core.answer import STUB
from agent_core.budget import Limits
from agent_core.chat_models.scripted import ScriptedModel, ScriptedStep, calls, fails, says
from agent_core.errors import ContractBroken
from agent_core.harness.memory import context_make
from agent_core.harness.probes import PROBES, RIGHT
from agent_core.middleware import countersign_stack
from tests.core.turns import APPROVED, CONFIG, DONE, Turn, asks, noted, one, replied_once

RECEIPT = "Receipt for T-1: 5.00 EUR."
KEPT = says("Here is the receipt for T-1: 5.00 EUR.", tokens=(7, 3))


def polishing(
    *steps: ScriptedStep, rewrite: ScriptedStep, **options: Any
) -> tuple[Turn, ScriptedModel]:
    """Return a turn that polishes with a model of its own, and that model."""
    model = ScriptedModel(steps=[rewrite])
    return Turn(*steps, stop_mode="polish", polish_with=model, **options), model


@pytest.mark.parametrize(
    ("rewrite", "said", "note"),
    [
        (KEPT, "Here is the receipt for T-1: 5.00 EUR.", "kept"),
        (says("Here is the receipt for T-1: 6.00 EUR."), RECEIPT, "facts lost"),
        (says("All done."), RECEIPT, "facts lost"),
        (fails(TimeoutError()), RECEIPT, "model failed"),
    ],
)
def test_polish_keeps_a_rewrite_that_keeps_every_fact_and_the_record_says_which(
    rewrite: ScriptedStep, said: str, note: str
) -> None:
    turn, model = polishing(one("receipt"), rewrite=rewrite)
    turn.ask()
    assert turn.said == said
    assert turn.record["evidence"]["polish"] == note
    assert turn.decision == (True, "completed")
    assert (turn.record["model_calls_made"], turn.record["model_calls_saved"]) == (2, 0)
    assert (len(turn.model.requests), model.offered) == (1, [[]])


def test_the_tokens_of_a_polish_are_counted() -> None:
    turn, _model = polishing(one("receipt"), rewrite=KEPT)
    turn.ask()
    assert turn.kept["tokens"] == 15 + 10
    assert turn.record["tokens_saved"] == 0


@pytest.mark.parametrize("tool", ["decline", "forbid"])
def test_only_what_is_completed_is_polished(tool: str) -> None:
    turn, model = polishing(one(tool), rewrite=KEPT)
    turn.ask()
    assert model.requests == []
    assert "polish" not in turn.record["evidence"]
    assert turn.record["model_calls_saved"] == 1


@pytest.mark.parametrize(
    "limits", [Limits(model_calls=1), Limits(tokens=15), Limits(seconds=9)], ids=str
)
def test_polish_is_not_called_when_no_model_call_is_left(limits: Limits) -> None:
    now = iter([0.0, *[9.0] * 20])
    turn, model = polishing(one("receipt"), rewrite=KEPT, limits=limits, clock=lambda: next(now))
    turn.ask()
    assert (turn.said, model.requests) == (RECEIPT, [])
    assert turn.record["evidence"]["polish"] == "no budget"
    assert turn.record["model_calls_saved"] == 1


def test_a_polished_answer_is_a_stub_for_the_model_too() -> None:
    turn, _model = polishing(one("receipt"), DONE, rewrite=KEPT)
    turn.ask().ask("And now?")
    sent = [m for m in turn.model.requests[1] if isinstance(m, AIMessage) and not m.tool_calls]
    assert [message.content for message in sent] == [STUB]


def test_whoever_streams_the_turn_never_sees_a_rewrite_that_is_thrown_away() -> None:
    turn, model = polishing(one("receipt"), rewrite=says("Here are 6.00 EUR."))
    given = {"messages": [HumanMessage("Go on.")]}
    streamed = turn.agent.stream(given, CONFIG, stream_mode="messages")
    seen = "".join(str(m.content) for m, _where in streamed if isinstance(m, AIMessage))
    assert len(model.requests) == 1
    assert "6.00" not in seen
    assert RECEIPT in seen


def test_polish_without_a_model_is_refused_when_the_stack_is_built() -> None:
    with pytest.raises(ContractBroken, match="polish needs a model to rewrite the answer with"):
        countersign_stack(PROBES, lambda: context_make(RIGHT), stop_mode="polish")


def test_never_notes_what_would_have_stopped_and_goes_on() -> None:
    turn = Turn(one("receipt"), one("decline"), one("lookup"), DONE, stop_mode="never").ask()
    assert turn.decision == (True, "answered")
    assert turn.record["evidence"] == {
        "would_have_stopped": [{"rule": "completed", "batch": 1}, {"rule": "fatal", "batch": 2}]
    }
    assert (turn.record["model_calls_made"], turn.record["model_calls_saved"]) == (4, 0)


def test_never_ends_within_its_budget_and_says_what_would_have_stopped_it() -> None:
    limits = Limits(model_calls=1)
    turn = Turn(one("receipt"), stop_mode="never", limits=limits).ask()
    assert turn.decision == (True, "budget")
    evidence = turn.record["evidence"]
    assert (evidence["limit"], evidence["otherwise"]) == ("model_calls", "completed")
    assert evidence["would_have_stopped"] == [{"rule": "completed", "batch": 1}]


@pytest.mark.parametrize("tool", ["forbid", "gated"])
def test_no_mode_goes_on_after_a_block(tool: str) -> None:
    assert Turn(one(tool), stop_mode="never").ask().decision == (True, "policy_block")


@pytest.mark.parametrize(
    ("steps", "limits", "counts"),
    [
        ((one("receipt"),), Limits(), ("completed", 1, 1)),
        ((one("lookup"), one("decline")), Limits(), ("fatal", 2, 1)),
        ((one("forbid"),), Limits(), ("policy_block", 1, 1)),
        ((one("lookup"),), Limits(model_calls=1), ("budget", 1, 0)),
        ((one("lookup"), DONE), Limits(), ("answered", 2, 0)),
    ],
    ids=["completed", "fatal", "policy_block", "budget", "answered"],
)
def test_the_record_counts_the_calls_made_and_the_one_saved(
    steps: tuple[ScriptedStep, ...], limits: Limits, counts: tuple[str, int, int]
) -> None:
    record = Turn(*steps, limits=limits).ask().record
    assert (record["rule"], record["model_calls_made"], record["model_calls_saved"]) == counts
    assert (record["tokens_saved"] > 0) == (record["model_calls_saved"] == 1)


def test_a_turn_that_goes_on_in_another_process_ends_with_the_same_record() -> None:
    """What the stack knows lies in the checkpoint; the model that was called is not there yet."""
    records = []
    for elsewhere in (False, True):
        made: list[str] = []
        tools = [noted(made, policy=asks)]
        turn = Turn(one("noted"), tools=tools).ask()
        if elsewhere:
            saver, turn = turn.agent.checkpointer, Turn(tools=tools)
            turn.agent.checkpointer = saver
        turn.decide_each(APPROVED)
        assert made == ["T-1"]
        evidence = turn.record["evidence"]["calls"]
        records.append({**turn.record, "evidence": [each["code"] for each in evidence]})
    assert records[0] == records[1]
    assert records[0]["tokens_saved"] > 0
    assert records[0]["tokens_estimated"] is True


def test_the_record_lists_what_was_done_and_what_was_not() -> None:
    step = calls(("forbid", {"thing": "A"}), ("receipt", {"thing": "B"}))
    record = Turn(step).ask().record
    assert record["headline"] == "1 of 2 done: 5.00 EUR for B; 1 not: trying forbid."
    assert (record["done"], record["not_done"]) == (["5.00 EUR for B"], ["Trying forbid"])


def test_each_turn_has_a_record_of_its_own() -> None:
    turn = Turn(one("decline"), DONE).ask()
    assert turn.record["rule"] == "fatal"
    turn.ask("And now?")
    assert turn.record["rule"] == "answered"
    assert (turn.record["model_calls_made"], turn.kept["history"]) == (1, [])


class EndsTheTurn(AgentMiddleware[AgentState[Any], Any, Any]):
    """Ends a turn before the stack decides, as a limit of somebody else's does."""

    def __init__(self, *, at: int) -> None:
        super().__init__()
        self.at = at

    @hook_config(can_jump_to=["end"])
    def before_model(self, state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any] | None:
        if len(state["messages"]) < self.at:
            return None
        return {"messages": [AIMessage("Enough for today.")], "jump_to": "end"}

    @hook_config(can_jump_to=["end"])
    def after_model(self, state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any] | None:
        return {"jump_to": "end"} if self.at == 0 else None


@pytest.mark.parametrize("at", [1, 3, 5], ids=["at once", "behind a batch", "behind the second"])
def test_a_turn_that_another_middleware_ends_is_recorded_as_such(at: int) -> None:
    turn = Turn(one("lookup"), one("receipt"), before=[EndsTheTurn(at=at)]).ask()
    assert turn.said == "Enough for today."
    assert turn.decision == (True, "cancelled")
    assert replied_once(turn.messages)


def test_calls_that_another_middleware_leaves_open_are_replied_to() -> None:
    made: list[str] = []
    turn = Turn(one("noted"), DONE, tools=[noted(made)], before=[EndsTheTurn(at=0)])
    turn.ask()
    assert (made, turn.decision) == ([], (True, "cancelled"))
    assert replied_once(turn.messages)


def test_a_streamed_turn_brings_the_relayed_answer_as_one_message() -> None:
    turn = Turn(one("receipt"))
    given = {"messages": [HumanMessage("Go on.")]}
    said = [
        message.content
        for message, _where in turn.agent.stream(given, CONFIG, stream_mode="messages")
        if isinstance(message, AIMessage) and not isinstance(message, AIMessageChunk)
    ]
    assert said[-1] == RECEIPT
