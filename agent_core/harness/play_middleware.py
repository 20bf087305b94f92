"""Play one case through LangChain's `create_agent` with the stack."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import HumanMessage

from agent_core.chat_models.reading import text_of
from agent_core.chat_models.scripted import ScriptedModel
from agent_core.contract import RunContext, Tool
from agent_core.harness.cases import AskedOf, Case
from agent_core.harness.memory import context_make
from agent_core.harness.probes import RIGHT
from agent_core.harness.stage import Stage
from agent_core.harness.transcript import (
    THREAD,
    Record,
    Transcript,
    Walk,
    record_notes,
    transcript_of,
    walked,
)
from agent_core.middleware import Stack, countersign_stack


def play_middleware(
    case: Case,
    tools: Sequence[Tool],
    *,
    context: Callable[[], RunContext] | None = None,
    stage: Stage | None = None,
) -> Transcript:
    """Play the case through `create_agent` with the stack.

    Raises:
        ContractBroken: a tool returns directly.
    """
    model = ScriptedModel(steps=list(case.steps))
    agent = create_agent(
        model,
        middleware=_stack(case, tools, context, model),
        checkpointer=(stage or Stage()).saver(),
    )

    def kept() -> dict[str, Any]:
        values: dict[str, Any] = agent.get_state({"configurable": {"thread_id": THREAD}}).values
        return values

    def decided(call_id: str) -> Mapping[str, Any]:
        waiting = kept()["countersign"]["batch"]
        call = next(call for call in waiting if call["id"] == call_id)
        return case.decided(AskedOf(call_id, call["tool"], call["arguments"]))

    walk = walked(
        case,
        partial(agent.stream, stream_mode="updates"),
        {"messages": [HumanMessage("Go on.")]},
        # From one model call to the next no node comes twice.
        most_steps=len(agent.nodes) * (case.limits.model_calls + 1),
        decided=decided,
        decision_in=_decision_in,
    )
    return _told(walk, kept(), model_calls=len(model.requests))


def _told(walk: Walk, kept: Mapping[str, Any], *, model_calls: int) -> Transcript:
    messages = kept["messages"]
    decision: dict[str, Any] = kept.get("countersign", {}).get("decision") or {}
    return transcript_of(
        walk,
        messages,
        model_calls=model_calls,
        rule=decision.get("rule", "failed"),
        text=text_of(messages[-1]),
        record=Record(
            done=tuple(decision.get("done", ())),
            not_done=tuple(decision.get("not_done", ())),
            saved=decision.get("model_calls_saved", 0),
            notes=record_notes(decision.get("evidence", {})),
        ),
    )


def _stack(
    case: Case,
    tools: Sequence[Tool],
    context: Callable[[], RunContext] | None,
    model: ScriptedModel,
) -> Stack:
    acting = context_make(RIGHT)
    # What begins a turn reads the clock first; from then on it shows what the case says.
    readings = itertools.chain([0.0], itertools.repeat(float(case.seconds)))
    return countersign_stack(
        tools,
        context or (lambda: acting),
        limits=case.limits,
        stop_mode=case.stop_mode,
        polish_with=model,
        clock=lambda: next(readings),
    )


def _decision_in(node: str, part: Any) -> Mapping[str, Any] | None:
    if node != "Stop.before_model" or not part:
        return None
    found: Mapping[str, Any] = part["countersign"]["decision"]
    return found
