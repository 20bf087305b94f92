"""Play one case through LangChain's `create_agent` with the stack."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver

from agent_core.chat_models.reading import text_of
from agent_core.chat_models.scripted import ScriptedModel
from agent_core.contract import Tool
from agent_core.harness.cases import Case
from agent_core.harness.memory import context_make
from agent_core.harness.probes import RIGHT
from agent_core.harness.transcript import Transcript, call_line, walked
from agent_core.middleware import countersign_stack


def play_middleware(case: Case, tools: Sequence[Tool]) -> Transcript:
    """Play the case through `create_agent` with the stack."""
    acting = context_make(RIGHT)
    model = ScriptedModel(steps=list(case.steps))
    stack = countersign_stack(tools, lambda: acting, limits=case.limits, stop_mode=case.stop_mode)
    agent = create_agent(model, middleware=stack, checkpointer=InMemorySaver())
    config: RunnableConfig = {"configurable": {"thread_id": "case"}}

    def steps(given: Any, config: RunnableConfig) -> Iterable[dict[str, Any]]:
        return agent.stream(given, config, stream_mode="updates")

    def decided(call_id: str) -> Mapping[str, Any]:
        waiting = agent.get_state(config).values["countersign"]["batch"]
        return case.decisions[next(call["tool"] for call in waiting if call["id"] == call_id)]

    path, error = walked(steps, {"messages": [HumanMessage("Go on.")]}, decided)
    kept = agent.get_state(config).values
    messages = kept["messages"]
    told = [message for message in messages if isinstance(message, ToolMessage)]
    order = [call["id"] for m in messages if isinstance(m, AIMessage) for call in m.tool_calls]
    told.sort(key=lambda message: order.index(message.tool_call_id))
    decision = (kept.get("countersign") or {}).get("decision") if not error else None
    return Transcript(
        path=path,
        model_calls=len(model.requests),
        calls=tuple(call_line(str(m.name), str(m.content), m.artifact) for m in told),
        rule=decision["rule"] if decision else "failed",
        text=error or text_of(messages[-1]),
    )
