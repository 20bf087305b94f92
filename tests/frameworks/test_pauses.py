"""What LangGraph's interrupt and resume do on every generation, and what of it we stay clear of.

Each test names the place of ours that stands on what it shows. A red test is no defect of ours: it
says that the named place must be looked at before the new version is taken.
"""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command

from tests.frameworks.bare import (
    ASKED,
    DONE,
    PATIENCE,
    THREAD,
    asked_once,
    asking,
    call,
    calls,
    effect,
    looped,
    scripted,
    told,
    waits,
)

# An interrupt inside a tool


@pytest.mark.parametrize(
    ("sends", "times"), [(False, 2), (True, 1)], ids=["one task", "a task for each call"]
)
def test_a_pause_inside_a_tool_runs_its_sibling_again_unless_each_call_has_a_task(
    sends: bool, times: int
) -> None:
    """Relies: `agent_core/graph.py:after_gate`, which sends each call on its own.

    The sibling ends before the other tool asks. The same task is begun anew on resume.
    """
    made: list[str] = []
    paid = threading.Event()
    tools = [effect("pay", made, after=paid.set), asking("ask", made, before=waits(paid))]
    graph = looped(scripted(calls(call("pay"), call("ask")), DONE), tools, sends=sends)
    graph.invoke(ASKED, THREAD)
    graph.invoke(Command(resume="yes"), THREAD)
    assert made.count("pay A") == times
    assert made.count("ask A begins") == 2
    assert made.count("ask A yes") == 1


def test_two_tools_that_pause_in_one_task_run_the_first_ones_effect_twice() -> None:
    """Relies: `agent_core/graph.py:review`, one pause for the whole batch and never in a tool.

    One tool after the other, so that the answers come to the pauses in the same order each time.
    """
    made: list[str] = []
    graph = looped(
        scripted(calls(call("ask"), call("also")), DONE),
        [asking("ask", made), asking("also", made)],
    )
    slowly: RunnableConfig = {**THREAD, "max_concurrency": 1}
    graph.invoke(ASKED, slowly)
    graph.invoke(Command(resume="yes"), slowly)
    graph.invoke(Command(resume="yes"), slowly)
    assert (made.count("ask A yes"), made.count("also A yes")) == (2, 1)


def test_a_review_before_tasks_of_their_own_runs_nothing_early_and_each_effect_once() -> None:
    """Relies: `agent_core/graph.py:graph_compile`, built in this shape."""
    made: list[str] = []
    graph = looped(
        scripted(calls(call("pay"), call("ship")), DONE),
        [effect("pay", made), effect("ship", made)],
        sends=True,
        review=True,
    )
    graph.invoke(ASKED, THREAD)
    assert made == []
    graph.invoke(Command(resume="yes"), THREAD)
    assert sorted(made) == ["pay A", "ship A"]


# The answer to a pause


def test_an_answer_refused_after_the_pause_is_stored_and_refused_for_ever() -> None:
    """Relies: `agent_core/graph.py:review`, and `agent_core/runs/work.py:_begin` that builds it."""
    seen: list[Any] = []
    graph = asked_once(lambda answer: answer == "good", seen)
    graph.invoke({"accepted": []}, THREAD)
    with pytest.raises(ValueError, match="'bad' does not fit"):
        graph.invoke(Command(resume="bad"), THREAD)
    with pytest.raises(ValueError, match="'bad' does not fit"):
        graph.invoke(Command(resume="good"), THREAD)
    assert seen == ["bad", "bad"]


def test_a_bare_map_with_hexadecimal_keys_is_taken_for_a_map_of_pauses() -> None:
    """Relies: `agent_core/runs/work.py:_begin`, which wraps the decisions under a word."""
    seen: list[Any] = []
    key = "0123456789abcdef" * 2
    graph = asked_once(lambda _: True, seen)
    graph.invoke({"accepted": []}, THREAD)
    graph.invoke(Command(resume={key: "yes"}), THREAD)
    assert seen == []
    graph.invoke(Command(resume={"decisions": {key: "yes"}}), THREAD)
    assert seen == [{"decisions": {key: "yes"}}]


# A second answer


def _paused(made: list[str], *, before: Any = None) -> Any:
    graph = looped(
        scripted(calls(call("pay")), DONE, repeat=True),
        [effect("pay", made, before=before)],
        sends=True,
        review=True,
    )
    graph.invoke(ASKED, THREAD)
    return graph


def test_a_second_resume_after_the_first_has_no_effect() -> None:
    """Relies: `agent_core/runs/work.py:_begin`, where a worker may resume again after a crash."""
    made: list[str] = []
    graph = _paused(made)
    graph.invoke(Command(resume="yes"), THREAD)
    graph.invoke(Command(resume="yes"), THREAD)
    assert made == ["pay A"]


def test_two_resumes_at_once_run_the_approved_call_twice() -> None:
    """Relies: `agent_core/runs/claims.py:run_claim` and the fence of the saver: one worker only.

    Both executions are inside the tool at the same time.
    """
    made: list[str] = []
    graph = _paused(made, before=threading.Barrier(2, timeout=PATIENCE).wait)
    with ThreadPoolExecutor(2) as pool:
        for each in [pool.submit(graph.invoke, Command(resume="yes"), THREAD) for _ in range(2)]:
            each.result(PATIENCE)
    assert made == ["pay A", "pay A"]


def test_an_old_checkpoint_repeats_the_effect_with_the_old_decision() -> None:
    """Relies: `payments/services_intents.py:intent_replayed`: the ledger is the lock."""
    made: list[str] = []
    graph = _paused(made)
    old = graph.get_state(THREAD).config
    graph.invoke(Command(resume="yes"), THREAD)
    graph.invoke(Command(resume="yes"), old)
    assert made == ["pay A", "pay A"]


def test_a_resume_of_a_thread_that_never_ran_asks_the_model_with_no_message() -> None:
    """Relies: `agent_core/runs/work.py:_begin`, which looks at `created_at` first."""
    model = scripted(DONE)
    graph = looped(model, [effect("pay", [])])
    assert graph.get_state(THREAD).created_at is None
    graph.invoke(Command(resume="yes"), THREAD)
    assert model.requests == [[]]


def test_a_new_message_during_a_pause_drops_it_and_leaves_its_calls_unanswered() -> None:
    """Relies: `agent_core/runs/services.py:message_send`: a message starts a run of its own."""
    made: list[str] = []
    model = scripted(calls(call("pay")), DONE)
    graph = looped(model, [effect("pay", made)], sends=True, review=True)
    graph.invoke(ASKED, THREAD)
    result = graph.invoke({"messages": [HumanMessage("Something else.")]}, THREAD)
    assert not graph.get_state(THREAD).interrupts
    asked = [m for m in result["messages"] if isinstance(m, AIMessage) and m.tool_calls]
    assert (len(asked), told(result)) == (1, [])
    graph.invoke(Command(resume="yes"), THREAD)
    assert made == []
