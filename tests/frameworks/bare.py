"""The bare framework for the characterisation tests: small tools, small graphs, no code of ours.

Only the scripted model is ours, and nothing here imports LangChain's agents, so that the tests of
the explicit graph run on every generation.
"""

from __future__ import annotations

import operator
import threading
from collections.abc import Callable, Sequence
from importlib.metadata import version
from typing import Annotated, Any, Final, TypedDict

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import Send, interrupt

from agent_core.chat_models.scripted import ScriptedModel, ScriptedStep, calls, says

GENERATION: Final = int(version("langgraph").split(".")[0])
"""0 for LangGraph 0.6, 1 for LangGraph 1: where the two differ, a test holds a value for each."""

THREAD: Final[RunnableConfig] = {"configurable": {"thread_id": "t"}}
DONE: Final = says("Done talking.")
PATIENCE: Final = 20
"""Seconds that a step waits for another before the test fails; nothing ever waits that long."""

ASKED: Final[dict[str, Any]] = {"messages": [HumanMessage("Go on.")]}


def effect(
    name: str,
    made: list[str],
    *,
    before: Callable[[], object] | None = None,
    after: Callable[[], object] | None = None,
    **options: Any,
) -> BaseTool:
    """Return a tool that does `before`, writes down that it was executed, and does `after`."""

    def run(thing: str) -> str:
        if before:
            before()
        made.append(f"{name} {thing}")
        if after:
            after()
        return f"{name} {thing}: done."

    return StructuredTool.from_function(func=run, name=name, description=f"Do {name}.", **options)


def asking(name: str, made: list[str], *, before: Callable[[], object] | None = None) -> BaseTool:
    """Return a tool that writes down that it began, asks a person, and writes down the answer."""

    def run(thing: str) -> str:
        made.append(f"{name} {thing} begins")
        if before:
            before()
        answer = interrupt({"asked": thing})
        made.append(f"{name} {thing} {answer}")
        return f"{name} {thing}: {answer}."

    return StructuredTool.from_function(func=run, name=name, description=f"Ask for {name}.")


def call(name: str, thing: str = "A") -> tuple[str, dict[str, Any]]:
    """Return one call for the script."""
    return name, {"thing": thing}


def looped(
    model: ScriptedModel, tools: Sequence[BaseTool], *, sends: bool = False, review: bool = False
) -> Any:
    """Compile agent → [review →] tools → agent by hand.

    The tools run in one task behind a plain edge, or with `sends` in one task for each call.
    """
    bound = model.bind_tools(list(tools))

    def agent(state: MessagesState) -> dict[str, Any]:
        return {"messages": [bound.invoke(state["messages"])]}

    def asked(state: MessagesState) -> dict[str, Any]:
        interrupt({"asked": [each["name"] for each in _calls(state)]})
        return {}

    def to_tools(state: MessagesState) -> Sequence[Send] | str:
        if not sends:
            return "tools"
        return [Send("tools", [{**each, "type": "tool_call"}]) for each in _calls(state)]

    graph = StateGraph(MessagesState)
    graph.add_node("agent", agent)
    graph.add_node("tools", ToolNode(list(tools)))
    graph.add_edge(START, "agent")
    if review:
        graph.add_node("review", asked)
        graph.add_conditional_edges(
            "agent", lambda state: "review" if _calls(state) else END, ["review", END]
        )
        graph.add_conditional_edges("review", to_tools, ["tools"])
    else:
        graph.add_conditional_edges(
            "agent", lambda state: to_tools(state) if _calls(state) else END, ["tools", END]
        )
    graph.add_edge("tools", "agent")
    return graph.compile(checkpointer=InMemorySaver())


def _calls(state: MessagesState) -> list[Any]:
    last = state["messages"][-1]
    return list(last.tool_calls) if isinstance(last, AIMessage) else []


class Answers(TypedDict):
    """What `asked_once` keeps: every answer that its node has accepted."""

    accepted: Annotated[list[Any], operator.add]


def asked_once(accepts: Callable[[Any], bool], seen: list[Any]) -> Any:
    """Compile one node that asks, notes the answer in `seen`, and refuses what it cannot accept."""

    def node(state: Answers) -> dict[str, Any]:
        answer = interrupt("which?")
        seen.append(answer)
        if not accepts(answer):
            raise ValueError(f"{answer!r} does not fit")
        return {"accepted": [answer]}

    graph = StateGraph(Answers)
    graph.add_node("ask", node)
    graph.add_edge(START, "ask")
    graph.add_edge("ask", END)
    return graph.compile(checkpointer=InMemorySaver())


def told(result: dict[str, Any]) -> list[ToolMessage]:
    """Return the tool messages, in the order in which they stand."""
    messages: list[AnyMessage] = result["messages"]
    return [message for message in messages if isinstance(message, ToolMessage)]


def waits(event: threading.Event) -> Callable[[], None]:
    """Return a step that goes on when `event` is set, and fails when it never is."""

    def wait() -> None:
        assert event.wait(PATIENCE), "the other step never came"

    return wait


def scripted(*steps: ScriptedStep, repeat: bool = False) -> ScriptedModel:
    """Return a model with a script."""
    return ScriptedModel(steps=list(steps), repeat=repeat)


__all__ = [
    "ASKED",
    "DONE",
    "GENERATION",
    "THREAD",
    "asked_once",
    "asking",
    "call",
    "calls",
    "effect",
    "looped",
    "says",
    "scripted",
    "told",
    "waits",
]
