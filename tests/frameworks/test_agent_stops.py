"""What stops LangChain's `create_agent`, and what only looks as if it did.

Each test names the place of ours that stands on what it shows. A red test is no defect of ours: it
says that the named place must be looked at before the new version is taken.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from typing import Any

import pytest
from langchain.agents.middleware import AgentState, PIIMiddleware, hook_config
from langchain_core.messages import AIMessage, ToolMessage
from langchain_core.tools import StructuredTool
from langgraph.graph import END
from langgraph.runtime import Runtime
from langgraph.types import Command

from agent_core.chat_models.scripted import ScriptedCall, ScriptedStep
from tests.frameworks.agents import Hook, Notes, agent
from tests.frameworks.bare import (
    ASKED,
    DONE,
    THREAD,
    call,
    calls,
    effect,
    scripted,
    told,
    waits,
)

RELAY = "pay A: done."


class Ends(Hook):
    """Ends with a command after a tool: its result alone, or with a relayed answer as well."""

    def __init__(self, goto: str = END, *, relays: bool = False) -> None:
        super().__init__()
        self.goto, self.relays = goto, relays

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        """Execute the call, and command where to go."""
        messages = [handler(request)]
        if self.relays:
            messages.append(AIMessage(RELAY))
        return Command(goto=self.goto, update={"messages": messages})


def _jump(state: AgentState[Any]) -> dict[str, Any] | None:
    if not isinstance(state["messages"][-1], ToolMessage):
        return None
    return {"messages": [AIMessage(RELAY)], "jump_to": "end"}


class Jumps(Hook):
    """Jumps to the end before the model would read a tool's result; declares that it may."""

    @hook_config(can_jump_to=["end"])
    def before_model(self, state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Jump when a tool has just answered."""
        return _jump(state)


class JumpsUndeclared(Hook):
    """The same jump without the declaration."""

    def before_model(self, state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Jump when a tool has just answered."""
        return _jump(state)


# Ending from a tool call


@pytest.mark.parametrize(("direct", "model_calls"), [(True, 1), (False, 2)])
def test_a_result_with_goto_end_stops_only_when_the_tool_returns_directly(
    direct: bool, model_calls: int
) -> None:
    """Relies: `agent_core/middleware/stop.py:Stop.before_model`.

    It ends before the model instead.
    """
    model = scripted(calls(call("pay")), DONE)
    tools = [effect("pay", [], return_direct=direct)]
    agent(model, tools, Ends()).invoke(ASKED, THREAD)
    assert len(model.requests) == model_calls


@pytest.mark.parametrize("direct", [True, False])
def test_a_result_with_goto_end_and_a_relayed_answer_loops(direct: bool) -> None:
    """Relies: `agent_core/middleware/stop.py:Stop.before_model`.

    The answer is relayed after the tools.

    The check that would end the turn finds the relay first.
    """
    model = scripted(calls(call("pay")), DONE)
    tools = [effect("pay", [], return_direct=direct)]
    result = agent(model, tools, Ends(relays=True)).invoke(ASKED, THREAD)
    assert result["messages"][-1].content == "Done talking."
    assert len(model.requests) == 2


def test_a_command_to_the_model_beside_a_hook_calls_the_model_twice() -> None:
    """Relies: `agent_core/middleware/gate.py:GatedCalls.wrap_tool_call`.

    It returns messages only.
    """
    model = scripted(calls(call("pay")), DONE, DONE)
    agent(model, [effect("pay", [])], Ends("model"), Notes([])).invoke(ASKED, THREAD)
    assert len(model.requests) == 3


# Ending before the model


def test_a_declared_jump_ends_with_one_model_call_and_runs_once_after_all_tools() -> None:
    """Relies: `agent_core/middleware/stop.py:Stop.before_model` in whole."""
    made: list[str] = []
    seen: list[str] = []
    paid = threading.Event()
    tools = [effect("ship", made, before=waits(paid)), effect("pay", made, after=paid.set)]
    model = scripted(calls(call("ship"), call("pay")))
    result = agent(model, tools, Notes(seen), Jumps()).invoke(ASKED, THREAD)
    assert made == ["pay A", "ship A"]
    assert [message.name for message in told(result)] == ["ship", "pay"]
    assert result["messages"][-1].content == RELAY
    assert len(model.requests) == 1
    assert seen == ["notes before 1", "notes after 2", "notes before 4"]


@pytest.mark.parametrize("later", [(), (Notes([]),)], ids=["last", "before another"])
def test_an_undeclared_jump_is_ignored_without_a_word(later: tuple[Notes, ...]) -> None:
    """Relies: `agent_core/middleware/stop.py:Stop.before_model`, decorated with `hook_config`."""
    model = scripted(calls(call("pay")), DONE)
    result = agent(model, [effect("pay", [])], JumpsUndeclared(), *later).invoke(ASKED, THREAD)
    assert len(model.requests) == 2
    assert result["messages"][-1].content == "Done talking."


def test_a_jump_passes_by_the_later_hooks_before_and_every_hook_after_the_model() -> None:
    """Relies: `agent_core/middleware/__init__.py:countersign_stack`, which puts the stop last."""
    seen: list[str] = []
    model = scripted(calls(call("pay")))
    stack = (Notes(seen, "first"), Jumps(), Notes(seen, "last"))
    agent(model, [effect("pay", [])], *stack).invoke(ASKED, THREAD)
    assert seen == [
        "first before 1",
        "last before 1",
        "last after 2",
        "first after 2",
        "first before 3",
    ]


# Redaction


def _leaking() -> StructuredTool:
    def run(thing: str) -> tuple[str, dict[str, str]]:
        return "Sent to ann@example.com.", {"to": "ann@example.com"}

    return StructuredTool.from_function(
        func=run, name="pay", description="Pay.", response_format="content_and_artifact"
    )


class Relays(Hook):
    """Relays the tool's own text as the answer."""

    @hook_config(can_jump_to=["end"])
    def before_model(self, state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Jump with what the tool said."""
        last = state["messages"][-1]
        if not isinstance(last, ToolMessage):
            return None
        return {"messages": [AIMessage(str(last.content))], "jump_to": "end"}


def test_redaction_of_the_output_never_sees_a_relayed_answer() -> None:
    """Relies: `agent_core/middleware/parts.py:Redaction`.

    Each tool message is cleaned where it is made.
    """
    redaction = PIIMiddleware("email", strategy="redact", apply_to_output=True)
    model = scripted(calls(call("pay")))
    result = agent(model, [_leaking()], redaction, Relays()).invoke(ASKED, THREAD)
    assert result["messages"][-1].content == "Sent to ann@example.com."


def test_redaction_of_tool_results_before_the_stop_works_and_leaves_artifacts_as_they_are() -> None:
    """Relies: `agent_core/middleware/parts.py:Redaction`.

    And `agent_core/contract.py:completed`'s data.
    """
    redaction = PIIMiddleware("email", strategy="redact", apply_to_tool_results=True)
    model = scripted(calls(call("pay")))
    result = agent(model, [_leaking()], redaction, Relays()).invoke(ASKED, THREAD)
    assert result["messages"][-1].content == "Sent to [REDACTED_EMAIL]."
    assert told(result)[0].artifact == {"to": "ann@example.com"}


# What is no failure to the framework


def test_malformed_arguments_end_the_turn_with_an_empty_answer() -> None:
    """Relies: `agent_core/middleware/gate.py:GatedCalls.after_model`.

    It counts them as calls.
    """
    step = ScriptedStep(calls=(ScriptedCall("pay", "{not json"),))
    model = scripted(step)
    result = agent(model, [effect("pay", [])]).invoke(ASKED, THREAD)
    assert len(model.requests) == 1
    assert (result["messages"][-1].content, told(result)) == ("", [])


def test_a_streamed_call_that_breaks_off_is_executed_with_another_amount() -> None:
    """Relies: `agent_core/chat_models/reading.py:calls_read`.

    Only when someone streams the agent's messages is the model itself streamed.
    """
    made: list[str] = []
    model = scripted(ScriptedStep(calls=(ScriptedCall("pay", '{"thing": "50'),)), DONE)
    for _ in agent(model, [effect("pay", made)]).stream(ASKED, THREAD, stream_mode="messages"):
        pass
    assert made == ["pay 50"]


def test_an_exception_of_a_tool_is_raised() -> None:
    """Relies: `agent_core/toolset.py:Toolset.executed`, which lets no exception get this far."""

    def broken(thing: str) -> str:
        """Break."""
        raise RuntimeError("out of order")

    tools = [StructuredTool.from_function(func=broken)]
    with pytest.raises(RuntimeError, match="out of order"):
        agent(scripted(calls(call("broken")), DONE), tools).invoke(ASKED, THREAD)


# Where hooks run


class Where(Hook):
    """Writes down in which thread its hook runs."""

    def __init__(self) -> None:
        super().__init__()
        self.thread = 0

    def before_model(self, state: AgentState[Any], runtime: Runtime[Any]) -> None:
        """Note the thread."""
        self.thread = threading.get_ident()


def test_under_ainvoke_a_hook_that_is_not_async_runs_on_the_event_loop() -> None:
    """Relies: `agent_core/middleware/stop.py:Stop.abefore_model`.

    Whatever of the stack looks something up has an async twin that hands over to a thread.
    """
    where = Where()

    async def ask() -> int:
        await agent(scripted(DONE), [], where).ainvoke(ASKED, THREAD)
        return threading.get_ident()

    assert asyncio.run(ask()) == where.thread
