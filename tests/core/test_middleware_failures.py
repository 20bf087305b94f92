"""Whatever a tool does: the router is given a class, the person a sentence, the thread lives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool, StructuredTool, ToolException
from langgraph.errors import GraphBubbleUp

from agent_core.chat_models.scripted import ScriptedCall, ScriptedStep, calls, says
from agent_core.contract import Artifact, RunContext, Tool, outcome_read
from agent_core.errors import RunCancelled
from agent_core.harness.memory import context_make
from agent_core.harness.probes import PROBES, RIGHT, probe
from tests.core.turns import APPROVED, DONE, Turn, noted, one, replied_once

FAULT = "This could not be completed because of a fault on our side, and it is not tried again."


def ours(error: BaseException) -> Tool:
    """Return a tool of ours that breaks with this error."""

    def run(context: RunContext, *, thing: str) -> tuple[str, Artifact]:
        """Break."""
        raise error

    return replace(probe("receipt"), name="breaking", run=run)


def foreign(error: BaseException, **options: Any) -> BaseTool:
    """Return a LangChain tool that breaks with this error."""

    def run(thing: str) -> str:
        raise error

    return StructuredTool.from_function(func=run, name="breaking", description="Break.", **options)


def outcome(reply: ToolMessage) -> tuple[str, str]:
    """Return class and code of a reply."""
    read = outcome_read(reply.artifact)
    assert read is not None
    return read.reason, read.code


def played(tool: Tool | BaseTool, step: ScriptedStep | None = None) -> Turn:
    """Play a turn with one call, approved when somebody is asked."""
    turn = Turn(step or one("breaking"), DONE, tools=[*PROBES, tool]).ask()
    return turn.decide_each(*[APPROVED] * len(turn.asked)) if turn.asked else turn


ERRORS = [ToolException("key=secret"), RuntimeError("boom"), TimeoutError("slow"), KeyError("k")]


@pytest.mark.parametrize("make", [ours, foreign])
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_b06_b07_an_exception_in_a_tool_is_fatal_with_a_reference(
    error: Exception, make: Callable[[BaseException], Tool | BaseTool]
) -> None:
    turn = played(make(error))
    assert outcome(turn.replies[0]) == ("fatal", "tool.failed")
    assert turn.decision == (True, "fatal")
    assert turn.said.startswith(FAULT)
    assert turn.replies[0].artifact["data"]["reference"] in turn.said
    assert type(error).__name__ not in turn.said
    assert "secret" not in str(turn.messages)
    assert len(turn.model.requests) == 1


@pytest.mark.parametrize("make", [ours, foreign])
@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_b06_the_next_turn_sends_exactly_one_reply_for_every_call(
    error: Exception, make: Callable[[BaseException], Tool | BaseTool]
) -> None:
    turn = played(make(error))
    turn.ask("hello?")
    assert turn.said == "Done talking."
    assert replied_once(turn.model.requests[-1])


@pytest.mark.parametrize("make", [ours, foreign])
@pytest.mark.parametrize(
    ("error", "passes"),
    [(RunCancelled(), ()), (ConnectionError("database gone"), (ConnectionError,))],
    ids=["control", "passes"],
)
def test_b06_an_error_that_passes_leaves_the_thread_fit_for_the_next_turn(
    error: Exception, passes: tuple[type[BaseException], ...], make: Callable[..., Any]
) -> None:
    """The framework stores the calls and no reply; the provider would refuse the next request."""
    step = calls(("breaking", {"thing": "A"}), ("lookup", {"thing": "B"}))
    turn = Turn(step, DONE, tools=[*PROBES, make(error)], passes=passes)
    with pytest.raises(type(error)):
        turn.ask().decide_each(APPROVED)
    turn.ask("hello?")
    assert turn.said == "Done talking."
    sent = turn.model.requests[-1]
    assert replied_once(sent)
    replies = [str(each.content) for each in sent if isinstance(each, ToolMessage)]
    assert "This step gave no clear result." in replies
    assert turn.kept["history"] == []


def test_a_control_exception_of_the_framework_passes() -> None:
    turn = Turn(one("breaking"), tools=[foreign(GraphBubbleUp())]).ask()
    with pytest.raises(GraphBubbleUp):
        turn.decide_each(APPROVED)
    assert turn.replies == []


def test_a_gate_that_breaks_leaves_the_thread_fit_for_the_next_turn() -> None:
    """Its calls still have the provider's ids, which come again in the next answer."""
    state = {"broken": True}

    def facts(context: RunContext, arguments: Any) -> dict[str, Any]:
        if state["broken"]:
            raise ConnectionError("database gone")
        return {}

    tool = replace(probe("receipt"), facts=facts)
    step = ScriptedStep(calls=(ScriptedCall("receipt", {"thing": "A"}, id="call_1"),))
    turn = Turn(step, step, step, tools=[tool])
    for _try in range(2):
        with pytest.raises(ConnectionError):
            turn.ask("Again.")
    state["broken"] = False
    turn.ask("Again.")
    assert turn.decision == (True, "completed")
    assert replied_once(turn.model.requests[-1])
    assert replied_once(turn.messages)


@pytest.mark.parametrize("make", [ours, foreign])
@pytest.mark.parametrize(
    "step",
    [
        calls(("breaking", {})),
        calls(("breaking", {"thing": {"a": 1}})),
        calls(("breaking", "{not json")),
    ],
    ids=["missing", "another kind", "no json"],
)
def test_b07_bad_arguments_are_transient_and_nobody_is_asked_about_them(
    step: ScriptedStep, make: Callable[[BaseException], Tool | BaseTool]
) -> None:
    turn = Turn(step, DONE, tools=[make(RuntimeError())]).ask()
    assert turn.asked == []
    assert outcome(turn.replies[0]) == ("transient", "call.invalid")
    assert turn.said == "Done talking."


def test_b07_an_error_that_a_foreign_tool_reports_itself_is_transient() -> None:
    turn = played(foreign(ToolException("No seat is left."), handle_tool_error=True))
    assert outcome(turn.replies[0]) == ("transient", "tool.refused")
    assert turn.told == ["No seat is left."]
    assert turn.said == "Done talking."


def test_b07_a_foreign_tool_may_give_an_outcome_of_its_own() -> None:
    artifact = {"v": 1, "reason": "completed", "stop": True, "code": "own.done"}

    def run(thing: str) -> Any:
        return "Done for you.", artifact

    tool = StructuredTool.from_function(
        func=run, name="breaking", description="Do.", response_format="content_and_artifact"
    )
    turn = played(tool)
    assert (turn.decision, turn.said) == ((True, "completed"), "Done for you.")


def test_a_foreign_tool_that_never_tells_an_outcome_is_tried_a_limited_number_of_times() -> None:
    made: list[str] = []

    def run(thing: str) -> str:
        made.append(thing)
        return "Nothing came."

    tool = StructuredTool.from_function(func=run, name="theirs", description="Try.")
    turn = Turn(*[one("theirs")] * 12, tools=[tool]).ask()
    while turn.asked:
        turn.decide_each(APPROVED)
    assert made == ["T-1"] * 3
    assert (turn.decision, turn.record["evidence"]["limit"]) == ((True, "budget"), "tries")


@pytest.mark.parametrize("name", ["refund_customer", "receipts", "RECEIPT", "r" * 80])
def test_b15_a_tool_that_does_not_exist_is_not_guessed_and_not_run(name: str) -> None:
    made: list[str] = []
    turn = Turn(one(name), says("I cannot do that."), tools=[*PROBES, noted(made)]).ask()
    assert made == []
    assert outcome(turn.replies[0]) == ("transient", "call.invalid")
    assert turn.told == ["There is no such tool. Use only the tools that are offered."]
    assert turn.said == "I cannot do that."


def test_b15_a_model_that_insists_on_it_is_stopped_in_plain_words() -> None:
    turn = Turn(one("receipts"), one("receipts"), one("receipts")).ask()
    assert turn.decision == (True, "budget")
    assert turn.said == (
        "I stopped here because the same step did not succeed (tries used 3, allowed 3)."
    )
    assert "receipts" not in turn.said


def test_b15_a_tool_that_the_role_may_not_use_is_neither_offered_nor_run() -> None:
    made: list[str] = []
    tools = [noted(made), replace(noted(made), name="other", right="another.right")]
    acting = replace(context_make(RIGHT), rights=frozenset({RIGHT}))
    turn = Turn(one("other"), tools=tools, context=lambda: acting).ask()
    assert turn.model.offered == [["noted"]]
    assert made == []
    assert turn.decision == (True, "policy_block")
    assert turn.replies[0].artifact["code"] == "right.missing"


@pytest.mark.parametrize(
    ("tools", "rule"),
    [
        (("receipt",), "completed"),
        (("timeout",), "answered"),
        (("decline",), "fatal"),
        (("forbid",), "policy_block"),
        (("receipt", "timeout"), "answered"),
        (("receipt", "forbid"), "policy_block"),
        (("receipt", "decline"), "answered"),
        (("silent",), "answered"),
        (("receipt", "silent"), "answered"),
    ],
    ids="-".join,
)
def test_b05_the_turn_ends_only_when_every_result_is_final(
    tools: tuple[str, ...], rule: str
) -> None:
    step = calls(*((tool, {"thing": f"T-{at}"}) for at, tool in enumerate(tools)))
    turn = Turn(step, DONE).ask()
    assert turn.decision == (True, rule)
    assert len(turn.model.requests) == (2 if rule == "answered" else 1)
    assert len(turn.replies) == len(tools)


def test_b05_a_completed_call_is_not_done_again_when_its_sibling_is_tried_again() -> None:
    made: list[str] = []
    both = calls(("noted", {"thing": "A"}), ("timeout", {"thing": "B"}))
    turn = Turn(both, both, DONE, tools=[*PROBES, noted(made)]).ask()
    assert made == ["A"]
    assert [outcome(reply)[0] for reply in turn.replies] == ["completed", "transient"] * 2
    assert turn.replies[2].artifact["already_applied"] is True
