"""Play one case through LangChain's `create_agent` with the stack."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import HumanMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool

from agent_core.chat_models.reading import text_of
from agent_core.chat_models.scripted import ScriptedModel
from agent_core.contract import RunContext, Tool
from agent_core.harness.cases import AskedOf, Case
from agent_core.harness.memory import context_make
from agent_core.harness.probes import RIGHT
from agent_core.harness.stage import Stage
from agent_core.harness.transcript import THREAD, Transcript, replies_told, walked
from agent_core.middleware import countersign_stack


def play_middleware(
    case: Case,
    tools: Sequence[Tool],
    *,
    context: Callable[[], RunContext] | None = None,
    stage: Stage | None = None,
    registered: Sequence[BaseTool] = (),
) -> Transcript:
    """Play the case through `create_agent` with the stack.

    `registered` are tools that somebody gives to `create_agent` besides the stack's own.

    Raises:
        ContractBroken: one of them returns directly.
    """
    acting = context_make(RIGHT)
    model = ScriptedModel(steps=list(case.steps))
    stack = countersign_stack(
        tools, context or (lambda: acting), limits=case.limits, stop_mode=case.stop_mode
    )
    agent = create_agent(
        model, registered, middleware=stack, checkpointer=(stage or Stage()).saver()
    )

    def steps(given: Any, config: RunnableConfig) -> Iterable[dict[str, Any]]:
        return agent.stream(given, config, stream_mode="updates")

    def kept() -> dict[str, Any]:
        values: dict[str, Any] = agent.get_state({"configurable": {"thread_id": THREAD}}).values
        return values

    def decided(call_id: str) -> Mapping[str, Any]:
        waiting = kept()["countersign"]["batch"]
        call = next(call for call in waiting if call["id"] == call_id)
        return case.decided(AskedOf(call_id, call["tool"], call["arguments"]))

    given = {"messages": [HumanMessage("Go on.")]}
    walk = walked(steps, given, decided=decided, decision_in=_decision_in)
    end = kept()
    decision = (end.get("countersign") or {}).get("decision") if not walk.error else None
    calls, replies = replies_told(end["messages"])
    return Transcript(
        path=tuple(walk.path),
        model_calls=len(model.requests),
        decisions=tuple(walk.decisions),
        calls=calls,
        replies=replies,
        rule=decision["rule"] if decision else "failed",
        text=walk.error or text_of(end["messages"][-1]),
    )


def _decision_in(node: str, part: Any) -> Mapping[str, Any] | None:
    if node != "Stop.before_model" or not part:
        return None
    found: Mapping[str, Any] = part["countersign"]["decision"]
    return found
