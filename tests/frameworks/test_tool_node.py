"""What LangGraph's ToolNode and LangChain's messages do, on every generation.

Each test names the place of ours that stands on what it shows. A red test is no defect of ours: it
says that the named place must be looked at before the new version is taken.
"""

from __future__ import annotations

import threading

import pytest
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    ToolMessage,
    convert_to_openai_messages,
)
from langchain_core.messages.ai import add_ai_message_chunks
from langchain_core.messages.tool import ToolCallChunk
from langchain_core.tools import StructuredTool

from agent_core.chat_models.scripted import ScriptedCall, ScriptedStep
from tests.frameworks.bare import (
    ASKED,
    DONE,
    GENERATION,
    THREAD,
    call,
    calls,
    effect,
    looped,
    scripted,
    told,
    waits,
)


def _broken(thing: str) -> str:
    """Break."""
    raise RuntimeError("out of order")


BROKEN = StructuredTool.from_function(func=_broken, name="broken")


def test_an_exception_of_a_tool_is_raised_since_langgraph_1_and_was_a_message_before() -> None:
    """Relies: `agent_core/toolset.py:Toolset.executed`, which lets no exception get this far."""
    graph = looped(scripted(calls(call("broken")), DONE), [BROKEN])
    if GENERATION >= 1:
        with pytest.raises(RuntimeError, match="out of order"):
            graph.invoke(ASKED, THREAD)
        return
    message = told(graph.invoke(ASKED, THREAD))[0]
    assert (message.status, message.artifact) == ("error", None)
    assert "out of order" in str(message.content)


@pytest.mark.parametrize(
    "step",
    [
        ScriptedStep(calls=(ScriptedCall("pay", {"things": 1}),)),
        ScriptedStep(calls=(ScriptedCall("pays", {"thing": "A"}),)),
    ],
    ids=["bad arguments", "unknown tool"],
)
def test_bad_arguments_and_unknown_tools_come_back_as_an_error_without_an_artifact(
    step: ScriptedStep,
) -> None:
    """Relies: `agent_core/toolset.py:Toolset.checked` and `agent_core/contract.py:outcome_read`.

    The framework's own message names no outcome, so it would only ever be *unclear*.
    """
    made: list[str] = []
    message = told(looped(scripted(step, DONE), [effect("pay", made)]).invoke(ASKED, THREAD))[0]
    assert made == []
    assert (message.status, message.artifact) == ("error", None)


@pytest.mark.parametrize("sends", [False, True], ids=["one task", "a task for each call"])
def test_tool_messages_stand_in_call_order_whichever_finishes_first(sends: bool) -> None:
    """Relies: `agent_core/graph.py:_answers`, where our own order is the calls' too."""
    made: list[str] = []
    second_done = threading.Event()
    first = effect("first", made, before=waits(second_done))
    second = effect("second", made, after=second_done.set)
    graph = looped(
        scripted(calls(call("first"), call("second")), DONE), [first, second], sends=sends
    )
    result = graph.invoke(ASKED, THREAD)
    assert made == ["second A", "first A"]
    assert [message.name for message in told(result)] == ["first", "second"]


def test_malformed_arguments_are_no_call_and_leave_nothing_to_answer() -> None:
    """Relies: `agent_core/chat_models/reading.py:calls_read`, which counts them as calls."""
    step = ScriptedStep(calls=(ScriptedCall("pay", "{not json"),))
    result = looped(scripted(step), [effect("pay", [])]).invoke(ASKED, THREAD)
    last = result["messages"][-1]
    assert isinstance(last, AIMessage)
    assert (last.content, last.tool_calls) == ("", [])
    assert [each["name"] for each in last.invalid_tool_calls] == ["pay"]


def test_a_streamed_call_that_breaks_off_is_repaired_into_another_amount() -> None:
    """Relies: `agent_core/chat_models/reading.py:_strict`, which reads the pieces itself."""
    piece = ToolCallChunk(
        name="pay", args='{"amount": "50', id="c", index=0, type="tool_call_chunk"
    )
    chunk = AIMessageChunk(content="", tool_call_chunks=[piece])
    whole = add_ai_message_chunks(chunk, AIMessageChunk(content="", response_metadata={"x": 1}))
    assert [each["args"] for each in whole.tool_calls] == [{"amount": "50"}]
    assert whole.invalid_tool_calls == []


def test_nothing_of_an_artifact_is_in_the_form_that_providers_are_sent() -> None:
    """Relies: `agent_core/contract.py:completed`, whose data is for the program only."""
    message = ToolMessage("Paid.", artifact={"code": "secret"}, tool_call_id="c", name="pay")
    assert "secret" not in repr(convert_to_openai_messages([message]))
