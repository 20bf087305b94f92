"""Which checkpoints of a turn are stored, and with what."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.db import connection
from langgraph.checkpoint.postgres import PostgresSaver

from agent_core.runs import work
from agent_core.runs.models import Run
from tests.runs.scripting import ScriptedModel

Play = Callable[..., ScriptedModel]
Say = Callable[[str], Run]

MODEL, GATE, ACT, END = 2, 3, 4, 7
"""LangGraph's numbers of the steps of a turn with one call; 5 is the review, 6 the route."""


def stored_steps(run: Run) -> list[int]:
    """List the steps of which a checkpoint is stored."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT (metadata->>'step')::int FROM checkpoints WHERE thread_id = %s ORDER BY 1",
            [str(run.pk)],
        )
        return [step for (step,) in cursor.fetchall()]


def channels(run: Run, step: int) -> dict[str, Any]:
    """Read what a stored checkpoint holds, by LangGraph's own saver."""
    saver = PostgresSaver(work.saver_pool())
    found = [
        each.checkpoint["channel_values"]
        for each in saver.list({"configurable": {"thread_id": str(run.pk)}})
        if each.metadata.get("step") == step
    ]
    (values,) = found
    return values


def test_a_turn_stores_what_must_not_happen_twice_and_its_end(script: Play, say: Say) -> None:
    script([("probe_pay", {"amount": "5"})])

    run = say("pay 5")

    assert stored_steps(run) == [MODEL, GATE, ACT, END]


def test_a_checkpoint_holds_what_was_held_back_before_it(script: Play, say: Say) -> None:
    script([("probe_pay", {"amount": "5"})])

    run = say("pay 5")

    # These two were written by steps whose own checkpoints were held back.
    assert channels(run, MODEL)["history"] == []
    end = channels(run, END)
    assert end["decision"]["rule"] == "completed"
    assert [each["content"] for each in end["history"]] == ["Paid 5."]
    assert [message.type for message in end["messages"]] == ["system", "human", "ai", "tool"]


def test_a_pause_is_stored_on_a_checkpoint_that_is_stored_too(script: Play, say: Say) -> None:
    script([("probe_refund", {"amount": "5"})])

    run = say("refund 5")

    assert stored_steps(run) == [MODEL, GATE]
    saver = PostgresSaver(work.saver_pool())
    latest = saver.get_tuple({"configurable": {"thread_id": str(run.pk)}})
    assert latest is not None
    assert [channel for _task, channel, _value in latest.pending_writes or ()] == ["__interrupt__"]
