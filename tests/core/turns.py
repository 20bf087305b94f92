"""One agent of `create_agent` with the whole stack and a script, for the tests of the stack."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command

from agent_core.chat_models.scripted import ScriptedModel, ScriptedStep, calls, says
from agent_core.contract import RunContext, Tool
from agent_core.harness.memory import context_make
from agent_core.harness.probes import PROBES, RIGHT
from agent_core.middleware import countersign_stack

CONFIG: RunnableConfig = {"configurable": {"thread_id": "t"}}
DONE = says("Done talking.")
Extra = AgentMiddleware[Any, Any, Any]


def one(tool: str, **more: Any) -> ScriptedStep:
    """Call one probe."""
    return calls((tool, {"thing": "T-1", **more}))


class Turn:
    """One agent with a script; `said` is the last text, `decision` what ended the turn."""

    def __init__(
        self,
        *steps: ScriptedStep,
        tools: Sequence[Tool | BaseTool] = PROBES,
        extra: Sequence[Extra] = (),
        context: Callable[[], RunContext] | None = None,
        **options: Any,
    ) -> None:
        acting = context_make(RIGHT)
        self.model = ScriptedModel(steps=list(steps))
        stack = countersign_stack(tools, context or (lambda: acting), **options)
        self.agent = create_agent(
            self.model, middleware=[*stack, *extra], checkpointer=InMemorySaver()
        )

    def ask(self, words: str = "Go on.") -> Turn:
        self.result = self.agent.invoke({"messages": [HumanMessage(words)]}, CONFIG)
        return self

    def decide(self, answer: Mapping[str, Any]) -> Turn:
        self.result = self.agent.invoke(Command(resume=answer), CONFIG)
        return self

    @property
    def asked(self) -> list[dict[str, Any]]:
        """Return the calls that wait for a person, or nothing."""
        pauses = self.result.get("__interrupt__")
        return list(pauses[0].value["calls"]) if pauses else []

    @property
    def said(self) -> str:
        return str(self.result["messages"][-1].text)

    @property
    def decision(self) -> tuple[bool, str]:
        kept = self.result["countersign"]["decision"]
        return kept["stop"], kept["rule"]

    @property
    def told(self) -> list[str]:
        messages = self.result["messages"]
        return [str(message.content) for message in messages if isinstance(message, ToolMessage)]
