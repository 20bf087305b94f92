"""Play one case through the explicit graph that the product runs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from agent_core.chat_models.scripted import ScriptedModel
from agent_core.contract import Tool
from agent_core.graph import graph_compile
from agent_core.harness.cases import Case
from agent_core.harness.memory import MemoryHost, context_make
from agent_core.harness.probes import RIGHT
from agent_core.harness.transcript import Transcript, call_line, walked
from agent_core.host import Parts
from agent_core.toolset import Toolset


def play_graph(case: Case, tools: Sequence[Tool]) -> Transcript:
    """Play the case through the explicit graph that the product runs."""
    host = MemoryHost(context_make(RIGHT))
    model = ScriptedModel(steps=list(case.steps))
    parts = Parts(
        host=host,
        model=model,
        toolset=Toolset(tools),
        limits=case.limits,
        stop_mode=case.stop_mode,
    )
    graph = graph_compile(InMemorySaver())

    def steps(given: Any, config: RunnableConfig) -> Iterable[dict[str, Any]]:
        return graph.stream(given, config, context=parts, stream_mode="updates")

    def decided(call_id: str) -> Mapping[str, Any]:
        return case.decisions[host.calls[call_id].tool]

    path, error = walked(steps, {}, decided)
    end = host.ends[-1] if host.ends else None
    return Transcript(
        path=path,
        model_calls=len(model.requests),
        calls=tuple(call_line(host.calls[key].tool, *host.answers[key]) for key in host.calls),
        rule=end.rule if end else "failed",
        text=end.answer if end else error,
    )
