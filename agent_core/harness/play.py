"""Play one case through one of the two orchestrations and write down what happened."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from langchain.agents import create_agent
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from agent_core.chat_models.scripted import ScriptedModel
from agent_core.contract import Tool, outcome_read
from agent_core.errors import CountersignError
from agent_core.graph import RECURSION_LIMIT, graph_compile
from agent_core.harness.cases import Case
from agent_core.harness.memory import MemoryHost, context_make
from agent_core.harness.probes import RIGHT
from agent_core.host import Parts
from agent_core.middleware import countersign_stack
from agent_core.toolset import Toolset

_LOG_REFERENCE: Final = re.compile(r"\bE-[0-9A-Z]{8}\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """What one orchestration did with one case."""

    path: tuple[str, ...]
    model_calls: int
    calls: tuple[str, ...]
    rule: str
    text: str

    def written(self) -> str:
        """Return it as lines that a person can compare."""
        lines = [f"path: {' '.join(self.path)}", f"model calls: {self.model_calls}", "calls:"]
        lines += [f"  {call}" for call in self.calls]
        lines += [f"rule: {self.rule}", "text:"]
        lines += [f"  {line}".rstrip() for line in self.text.splitlines()]
        return _LOG_REFERENCE.sub("E-REFERENCE", "\n".join(lines)) + "\n"


Play = Callable[[Case, Sequence[Tool]], Transcript]


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

    path, error = _walked(steps, {}, decided)
    end = host.ends[-1] if host.ends else None
    return Transcript(
        path=path,
        model_calls=len(model.requests),
        calls=tuple(_call_line(host.calls[key].tool, *host.answers[key]) for key in host.calls),
        rule=end.rule if end else "failed",
        text=end.answer if end else error,
    )


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

    path, error = _walked(steps, {"messages": [HumanMessage("Go on.")]}, decided)
    kept = agent.get_state(config).values
    messages = kept["messages"]
    told = [message for message in messages if isinstance(message, ToolMessage)]
    order = [call["id"] for m in messages if isinstance(m, AIMessage) for call in m.tool_calls]
    told.sort(key=lambda message: order.index(message.tool_call_id))
    decision = (kept.get("countersign") or {}).get("decision") if not error else None
    return Transcript(
        path=path,
        model_calls=len(model.requests),
        calls=tuple(_call_line(str(m.name), str(m.content), m.artifact) for m in told),
        rule=decision["rule"] if decision else "failed",
        text=error or str(messages[-1].text),
    )


ORCHESTRATIONS: Final[Mapping[str, Play]] = {"graph": play_graph, "middleware": play_middleware}


def _walked(
    steps: Callable[[Any, RunnableConfig], Iterable[dict[str, Any]]],
    given: Any,
    decided: Callable[[str], Mapping[str, Any]],
) -> tuple[tuple[str, ...], str]:
    """Run until nothing is left to do, deciding every review; return the path and the error."""
    config: RunnableConfig = {
        "configurable": {"thread_id": "case"},
        "recursion_limit": RECURSION_LIMIT,
    }
    path: list[str] = []
    try:
        while given is not None:
            asked: Sequence[Any] | None = None
            for update in steps(given, config):
                asked = update.get("__interrupt__") or asked
                path += [name for name in update if not name.startswith("__")]
            given = None
            if asked:
                path.append("(pause)")
                ids = _asked_ids(asked[0].value)
                # Each decision names the review it came from, as the product's host does.
                made = {key: {"review": key, **decided(key)} for key in ids}
                given = Command(resume={"decisions": made})
    except CountersignError as error:
        return tuple(path), str(error)
    return tuple(path), ""


def _asked_ids(value: Mapping[str, Any]) -> list[str]:
    return [call if isinstance(call, str) else call["id"] for call in value["calls"]]


def _call_line(tool: str, content: str, artifact: object) -> str:
    outcome = outcome_read(artifact)
    reason = outcome.reason if outcome else "unclear"
    again = ", already applied" if outcome and outcome.already_applied else ""
    return f"{tool} -> {reason}{again}: {' / '.join(content.splitlines())}"
