"""One agent of `create_agent` with the whole stack and a script, for the tests of the stack."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langchain_core.tools import BaseTool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.types import Command

from agent_core.chat_models.reading import text_of
from agent_core.chat_models.scripted import ScriptedModel, ScriptedStep, calls, says
from agent_core.contract import Artifact, RunContext, Tool, completed
from agent_core.harness.memory import context_make
from agent_core.harness.probes import PROBES, RIGHT, probe
from agent_core.middleware import countersign_stack
from agent_core.policy import Policy, Proposal, ReviewProposal, Verdict

CONFIG: RunnableConfig = {"configurable": {"thread_id": "t"}}
DONE = says("Done talking.")
Extra = AgentMiddleware[Any, Any, Any]
APPROVED: Mapping[str, Any] = {"state": "approved"}


def one(tool: str, **more: Any) -> ScriptedStep:
    """Call one probe."""
    return calls((tool, {"thing": "T-1", **more}))


def asks(proposal: Proposal, facts: Mapping[str, Any]) -> Verdict | None:
    """Let a person decide."""
    return Verdict(kind="review", rule="probe.asked")


def allows(proposal: Proposal, facts: Mapping[str, Any]) -> Verdict | None:
    """Let it pass."""
    return Verdict(kind="allow", rule="probe.allowed")


def noted(made: list[str], *, name: str = "noted", policy: Policy = allows) -> Tool:
    """Return an effect that writes down each execution; its amount is what a reviewer may lower."""

    def run(context: RunContext, *, thing: str, amount: str = "") -> tuple[str, Artifact]:
        """Note a thing."""
        made.append(f"{thing} {amount}".strip())
        return f"Noted {thing}.", completed("probe.noted", stop=True)

    def propose(
        context: RunContext, arguments: Mapping[str, Any], facts: Mapping[str, Any]
    ) -> ReviewProposal:
        return ReviewProposal(
            kind="probe",
            subject_id=None,
            subject_hash="h",
            title="Note it?",
            button="Note",
            fields={"amount": str(arguments["amount"])},
        )

    def identity(context: RunContext, arguments: Mapping[str, Any]) -> str:
        return f"{arguments['thing']} {arguments['amount']}"

    return replace(
        probe("receipt"),
        name=name,
        run=run,
        policies=(policy,),
        propose=propose,
        identity=identity,
    )


class Turn:
    """One agent with a script; `said` is the last text, `decision` what ended the turn.

    Checkpoints are strict, so that whatever a test plays must be storable anywhere.
    """

    def __init__(
        self,
        *steps: ScriptedStep,
        tools: Sequence[Tool | BaseTool] = PROBES,
        before: Sequence[Extra] = (),
        extra: Sequence[Extra] = (),
        registered: Sequence[BaseTool] = (),
        context: Callable[[], RunContext] | None = None,
        **options: Any,
    ) -> None:
        acting = context_make(RIGHT)
        self.model = ScriptedModel(steps=list(steps))
        self.stack = countersign_stack(tools, context or (lambda: acting), **options)
        self.agent: Any = create_agent(
            self.model,
            list(registered),
            middleware=[*before, *self.stack, *extra],
            checkpointer=InMemorySaver(serde=JsonPlusSerializer(allowed_msgpack_modules=None)),
        )
        self.result: dict[str, Any] = {}

    def ask(self, words: str = "Go on.") -> Turn:
        """Send a message."""
        return self._play({"messages": [HumanMessage(words)]})

    def decide(self, answer: Any) -> Turn:
        """Answer the pause with anything."""
        return self._play(Command(resume=answer))

    def decide_each(self, *decisions: Mapping[str, Any]) -> Turn:
        """Answer the pause with one decision for each waiting call, in call order."""
        made = zip((call["id"] for call in self.asked), decisions, strict=True)
        return self.decide({"decisions": dict(made)})

    def _play(self, given: Any) -> Turn:
        self.result = self.agent.invoke(given, CONFIG)
        return self

    def await_(self, given: Any) -> Turn:
        """Play as an asynchronous server does."""
        self.result = asyncio.run(self.agent.ainvoke(given, CONFIG))
        return self

    @property
    def pause(self) -> Mapping[str, Any]:
        """Return what the turn waits for; nothing when it does not wait."""
        pauses = self.agent.get_state(CONFIG).interrupts
        found: Mapping[str, Any] = pauses[0].value if pauses else {}
        return found

    @property
    def asked(self) -> list[dict[str, Any]]:
        """Return the calls that wait for a person, or nothing."""
        return list(self.pause.get("calls", ()))

    @property
    def messages(self) -> list[BaseMessage]:
        """Return what is stored of the conversation."""
        return list(self.agent.get_state(CONFIG).values["messages"])

    @property
    def kept(self) -> dict[str, Any]:
        """Return what the stack keeps."""
        return dict(self.agent.get_state(CONFIG).values["countersign"])

    @property
    def said(self) -> str:
        """Return the last text."""
        return text_of(self.messages[-1])

    @property
    def record(self) -> dict[str, Any]:
        """Return how the turn ended."""
        return dict(self.kept["decision"])

    @property
    def decision(self) -> tuple[bool, str]:
        """Return whether the turn has ended, and by which rule."""
        return self.record["stop"], self.record["rule"]

    @property
    def replies(self) -> list[ToolMessage]:
        """Return the tool messages, oldest first."""
        return [message for message in self.messages if isinstance(message, ToolMessage)]

    @property
    def told(self) -> list[str]:
        """Return what the tools said, oldest first."""
        return [str(message.content) for message in self.replies]


def replied_once(messages: Sequence[BaseMessage]) -> bool:
    """Tell whether each call has exactly one reply, behind it and before anybody else speaks."""
    waiting: list[str] = []
    for message in messages:
        if isinstance(message, ToolMessage):
            if message.tool_call_id not in waiting:
                return False
            waiting.remove(message.tool_call_id)
        elif waiting:
            return False
        elif isinstance(message, AIMessage):
            every = (*message.tool_calls, *message.invalid_tool_calls)
            waiting = [str(call["id"]) for call in every]
    return not waiting
