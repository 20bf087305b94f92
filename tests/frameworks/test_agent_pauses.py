"""What LangChain's own review and call limit do in `create_agent`, and why ours is another.

Each test names the place of ours that stands on what it shows. A red test is no defect of ours: it
says that the named place must be looked at before the new version is taken.
"""

from __future__ import annotations

import threading
from typing import Any

import pytest
from langchain.agents.middleware import (
    AgentState,
    HumanInTheLoopMiddleware,
    ModelCallLimitMiddleware,
    hook_config,
)
from langchain_core.messages import AIMessage
from langgraph.runtime import Runtime
from langgraph.types import Command

from tests.frameworks.agents import Hook, agent
from tests.frameworks.bare import (
    ASKED,
    DONE,
    THREAD,
    asking,
    call,
    calls,
    effect,
    scripted,
    told,
    waits,
)

APPROVE = {"type": "approve"}
REJECT = {"type": "reject", "message": "No."}


def _review(*names: str) -> Any:
    return HumanInTheLoopMiddleware(interrupt_on=dict.fromkeys(names, True))


def _decide(*decisions: dict[str, Any]) -> Any:
    return Command(resume={"decisions": list(decisions)})


def test_a_pause_inside_a_tool_leaves_its_finished_sibling_alone() -> None:
    """Relies: `agent_core/middleware/gate.py:Review.after_model`.

    Nothing of ours pauses in a tool.
    """
    made: list[str] = []
    paid = threading.Event()
    tools = [effect("pay", made, after=paid.set), asking("ask", made, before=waits(paid))]
    playing = agent(scripted(calls(call("pay"), call("ask")), DONE), tools)
    playing.invoke(ASKED, THREAD)
    playing.invoke(Command(resume="yes"), THREAD)
    assert sorted(made) == ["ask A begins", "ask A begins", "ask A yes", "pay A"]


def test_a_review_asks_once_for_the_whole_turn_and_names_no_call_id() -> None:
    """Relies: `agent_core/middleware/gate.py:Review.after_model`.

    It asks by the id of each call.
    """
    tools = [effect("pay", []), effect("ship", [])]
    model = scripted(calls(call("pay"), call("ship")))
    result = agent(model, tools, _review("pay", "ship")).invoke(ASKED, THREAD)
    (pause,) = result["__interrupt__"]
    assert [each["name"] for each in pause.value["action_requests"]] == ["pay", "ship"]
    ids = [each["id"] for each in result["messages"][-1].tool_calls]
    assert not any(key in repr(pause.value) for key in ids)


def test_decisions_are_matched_by_position_alone() -> None:
    """Relies: `agent_core/middleware/decisions.py:answer_problem`, which matches by call."""
    made: list[str] = []
    tools = [effect("pay", made), effect("look", made), effect("ship", made)]
    model = scripted(calls(call("pay"), call("look"), call("ship")), DONE)
    playing = agent(model, tools, _review("pay", "ship"))
    playing.invoke(ASKED, THREAD)
    playing.invoke(_decide(REJECT, APPROVE), THREAD)
    assert sorted(made) == ["look A", "ship A"]


def test_after_a_review_the_refused_call_is_answered_first() -> None:
    """Relies: `agent_core/middleware/state.py:answers_of`, which matches by call id."""
    tools = [effect("pay", []), effect("ship", [])]
    playing = agent(scripted(calls(call("pay"), call("ship")), DONE), tools, _review("ship"))
    playing.invoke(ASKED, THREAD)
    result = playing.invoke(_decide(REJECT), THREAD)
    assert [message.name for message in told(result)] == ["ship", "pay"]


def test_an_edit_can_turn_a_call_into_another_tool_that_nobody_guards() -> None:
    """Relies: `agent_core/middleware/gate.py:GatedCalls._passed`, which refuses a renamed call."""
    made: list[str] = []
    tools = [effect("pay", made), effect("wipe", made)]
    playing = agent(scripted(calls(call("pay")), DONE), tools, _review("pay"))
    playing.invoke(ASKED, THREAD)
    edit = {"type": "edit", "edited_action": {"name": "wipe", "args": {"thing": "all"}}}
    playing.invoke(_decide(edit), THREAD)
    assert made == ["wipe all"]


def test_a_tool_that_nobody_listed_runs_unreviewed() -> None:
    """Relies: `agent_core/middleware/state.py:entry_foreign`, which gives it to a person."""
    made: list[str] = []
    tools = [effect("pay", made), effect("wipe", made)]
    agent(scripted(calls(call("wipe")), DONE), tools, _review("pay")).invoke(ASKED, THREAD)
    assert made == ["wipe A"]


class JumpsToTools(Hook):
    """Puts a call of its own into the conversation and jumps to the tools."""

    @hook_config(can_jump_to=["tools"])
    def before_model(self, state: AgentState[Any], runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Jump once."""
        if len(state["messages"]) > 1:
            return None
        forged = {"id": "forged", "name": "pay", "args": {"thing": "X"}, "type": "tool_call"}
        return {"messages": [AIMessage("", tool_calls=[forged])], "jump_to": "tools"}


def test_a_second_middleware_that_jumps_to_the_tools_runs_a_guarded_call() -> None:
    """Relies: `agent_core/middleware/gate.py:GatedCalls._answer`.

    It refuses what was not judged.
    """
    made: list[str] = []
    agent(scripted(DONE), [effect("pay", made)], _review("pay"), JumpsToTools()).invoke(
        ASKED, THREAD
    )
    assert made == ["pay X"]


def test_a_wrong_number_of_decisions_poisons_the_thread() -> None:
    """Relies: `agent_core/middleware/gate.py:Review.after_model`.

    It asks again until it fits.
    """
    made: list[str] = []
    playing = agent(scripted(calls(call("pay")), DONE), [effect("pay", made)], _review("pay"))
    playing.invoke(ASKED, THREAD)
    for decisions in ((APPROVE, APPROVE), (APPROVE,)):
        with pytest.raises(ValueError, match="decisions"):
            playing.invoke(_decide(*decisions), THREAD)
    assert made == []


# Limits


@pytest.mark.parametrize(
    ("reviewed", "model_calls"), [((), 2), (("pay",), 4)], ids=["no pause", "pauses"]
)
def test_a_limit_for_one_run_starts_again_at_every_resume(
    reviewed: tuple[str, ...], model_calls: int
) -> None:
    """Relies: `agent_core/middleware/parts.py:SpendCaps.after_model`.

    Its count outlives the pause.
    """
    model = scripted(*(calls(call("pay", thing)) for thing in "ABC"), DONE)
    limit = ModelCallLimitMiddleware(run_limit=2, exit_behavior="end")
    playing = agent(model, [effect("pay", [])], limit, _review(*reviewed))
    result = playing.invoke(ASKED, THREAD)
    while result.get("__interrupt__"):
        result = playing.invoke(_decide(APPROVE), THREAD)
    assert len(model.requests) == model_calls


def test_a_limit_for_the_thread_holds_over_a_resume() -> None:
    """Relies: `agent_core/middleware/parts.py:SpendCaps.before_model`.

    It counts over the pause.
    """
    model = scripted(calls(call("pay")), DONE)
    limit = ModelCallLimitMiddleware(thread_limit=1, exit_behavior="end")
    playing = agent(model, [effect("pay", [])], limit, _review("pay"))
    playing.invoke(ASKED, THREAD)
    playing.invoke(_decide(APPROVE), THREAD)
    assert len(model.requests) == 1
