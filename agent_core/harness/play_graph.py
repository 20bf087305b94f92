"""Play one case through the explicit graph that the product runs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from copy import copy
from functools import cache, partial
from typing import Any

from langgraph.graph.state import CompiledStateGraph

from agent_core.chat_models.scripted import ScriptedModel
from agent_core.contract import RunContext, Tool
from agent_core.graph import graph_compile, recursion_limit
from agent_core.graph_state import State
from agent_core.harness.cases import AskedOf, Case
from agent_core.harness.memory import MemoryHost, context_make
from agent_core.harness.probes import RIGHT
from agent_core.harness.stage import Stage
from agent_core.harness.transcript import (
    THREAD,
    Record,
    Transcript,
    record_notes,
    transcript_of,
    walked,
)
from agent_core.host import Parts, RunEnd
from agent_core.toolset import Toolset


def play_graph(
    case: Case,
    tools: Sequence[Tool],
    *,
    context: Callable[[], RunContext] | None = None,
    stage: Stage | None = None,
) -> Transcript:
    """Play the case through the explicit graph that the product runs."""
    acting = context_make(RIGHT)
    host = MemoryHost(context or (lambda: acting), seconds=case.seconds)
    model = ScriptedModel(steps=list(case.steps))
    graph = copy(_compiled())
    graph.checkpointer = (stage or Stage()).saver()

    def decided(call_id: str) -> Mapping[str, Any]:
        call = host.calls[call_id]
        return case.decided(AskedOf(call.id, call.tool, call.arguments))

    parts = _parts(case, tools, host, model)
    walk = walked(
        case,
        partial(graph.stream, context=parts, stream_mode="updates"),
        {},
        most_steps=recursion_limit(case.limits),
        decided=decided,
        decision_in=_decision_in,
    )
    messages = graph.get_state({"configurable": {"thread_id": THREAD}}).values["messages"]
    end = host.ends[-1] if host.ends else RunEnd(rule="failed", answer="")
    return transcript_of(
        walk,
        messages,
        model_calls=len(model.requests),
        rule=end.rule,
        text=end.answer,
        record=_record(end),
    )


def _parts(case: Case, tools: Sequence[Tool], host: MemoryHost, model: ScriptedModel) -> Parts:
    return Parts(
        host=host,
        model=model,
        toolset=Toolset(tools),
        limits=case.limits,
        stop_mode=case.stop_mode,
    )


@cache
def _compiled() -> CompiledStateGraph[State, Parts, State, State]:
    """Compile once: the graph itself keeps nothing of a case."""
    return graph_compile(None)


def _record(end: RunEnd) -> Record:
    return Record(
        done=tuple(end.done),
        not_done=tuple(end.not_done),
        saved=end.model_calls_saved,
        notes=record_notes(end.evidence),
    )


def _decision_in(node: str, part: Any) -> Mapping[str, Any] | None:
    found: Mapping[str, Any] | None = part["decision"] if node == "route" else None
    return found
