"""Awaited, the stack does the same, and nothing that may touch a database runs on the loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from langchain_core.messages import HumanMessage
from langchain_core.tools import BaseTool, StructuredTool
from langgraph.types import Command

from agent_core.chat_models.scripted import ScriptedModel, ScriptedStep, calls, says
from agent_core.contract import Artifact, RunContext, Tool, completed
from agent_core.harness.memory import context_make
from agent_core.harness.probes import PROBES, RIGHT, probe
from agent_core.policy import Proposal, ReviewProposal, Verdict
from tests.core.turns import APPROVED, CONFIG, DONE, Turn, noted, one

GIVEN = {"messages": [HumanMessage("Go on.")]}


class Places:
    """Writes down what ran on an event loop's thread, where Django's ORM refuses to work."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.on_loop: list[str] = []

    def seen(self, what: str) -> None:
        """Note where this runs."""
        self.asked.append(what)
        try:
            asyncio.get_running_loop()
        except RuntimeError:
            return
        self.on_loop.append(what)


def tool_of(places: Places, *, verdict: Verdict) -> Tool:
    """Return a tool whose every function says where it runs."""

    def run(context: RunContext, *, thing: str, amount: str = "5") -> tuple[str, Artifact]:
        """Note a thing."""
        places.seen("run")
        return f"Noted {thing}.", completed("probe.noted", stop=True)

    def facts(context: RunContext, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        places.seen("facts")
        return {}

    def policy(proposal: Proposal, facts: Mapping[str, Any]) -> Verdict:
        places.seen("policy")
        return verdict

    def identity(context: RunContext, arguments: Mapping[str, Any]) -> str:
        places.seen("identity")
        return f"{arguments['thing']} {arguments['amount']}"

    def propose(
        context: RunContext, arguments: Mapping[str, Any], facts: Mapping[str, Any]
    ) -> ReviewProposal:
        places.seen("propose")
        return ReviewProposal(
            kind="probe",
            subject_id=None,
            subject_hash="h",
            title="Note it?",
            button="Note",
            fields={"amount": "5"},
        )

    return replace(
        probe("receipt"),
        name="noted",
        run=run,
        facts=facts,
        policies=(policy,),
        identity=identity,
        propose=propose,
    )


def stranger_of(places: Places) -> StructuredTool:
    """Return a LangChain tool without a coroutine of its own."""

    def stranger(thing: str) -> str:
        """Do something."""
        places.seen("stranger")
        return "Did it."

    return StructuredTool.from_function(func=stranger)


class RewritesOffTheLoop(ScriptedModel):
    """A model that says where it is called."""

    places: Any = None

    def _next(self, *given: Any) -> Any:
        self.places.seen("polish")
        return super()._next(*given)


@pytest.mark.parametrize("verdict", ["allow", "review", "block"])
def test_context_facts_policies_and_tools_never_run_on_the_loops_thread(verdict: Any) -> None:
    places = Places()
    acting = context_make(RIGHT)

    def context() -> RunContext:
        places.seen("context")
        return acting

    tools: list[Tool | BaseTool] = [
        tool_of(places, verdict=Verdict(kind=verdict, rule="probe.ruled")),
        stranger_of(places),
    ]
    step = calls(("noted", {"thing": "A"}), ("stranger", {"thing": "B"}))
    again = calls(("noted", {"thing": "A", "amount": "4"}))
    rewrites = RewritesOffTheLoop(steps=[says("Noted A, indeed.")], places=places)
    turn = Turn(
        step, again, tools=tools, context=context, stop_mode="polish", polish_with=rewrites
    ).await_(GIVEN)
    if turn.asked:
        # A changed call has another identity, which the router's part asks for.
        changed = {"noted": {**APPROVED, "changes": {"amount": "4"}}, "stranger": APPROVED}
        made = {call["id"]: changed[call["tool"]] for call in turn.asked}
        turn.await_(Command(resume={"decisions": made}))
    assert places.on_loop == []
    expected = {"context", "facts", "policy", "identity"}
    if verdict != "block":
        expected |= {"run", "stranger", "polish"}
    if verdict == "review":
        expected |= {"propose"}
    assert set(places.asked) == expected


def test_a_tool_that_waits_does_not_stop_the_loop() -> None:
    """The loop itself lets the tool go on; on the loop's thread the tool would wait for ever."""
    begun, may_end = threading.Event(), threading.Event()

    def run(context: RunContext, *, thing: str) -> tuple[str, Artifact]:
        """Wait."""
        begun.set()
        assert may_end.wait(20)
        return "Done.", completed("probe.noted", stop=True)

    turn = Turn(one("receipt"), tools=[replace(probe("receipt"), run=run)])

    async def play() -> None:
        playing = asyncio.create_task(turn.agent.ainvoke(GIVEN, CONFIG))
        await asyncio.to_thread(begun.wait, 20)
        may_end.set()
        await playing

    asyncio.run(play())
    assert turn.said == "Done."


@pytest.mark.parametrize(
    "steps",
    [
        (one("receipt"),),
        (one("crash"),),
        (one("timeout"), DONE),
        (calls(("forbid", {"thing": "A"}), ("receipt", {"thing": "B"})),),
        (one("nobody"), DONE),
    ],
    ids=["receipt", "crash", "timeout", "forbid and receipt", "nobody"],
)
def test_awaited_and_called_a_turn_ends_alike(steps: tuple[ScriptedStep, ...]) -> None:
    called, awaited = Turn(*steps).ask(), Turn(*steps).await_(GIVEN)
    for name in ("rule", "model_calls_made", "model_calls_saved", "done", "not_done"):
        assert called.record[name] == awaited.record[name]
    assert len(called.messages) == len(awaited.messages)


def test_a_streamed_turn_is_the_same() -> None:
    turn = Turn(one("receipt"))

    async def play() -> list[str]:
        stream = turn.agent.astream(GIVEN, CONFIG, stream_mode="updates")
        return [node async for update in stream for node in update]

    path = asyncio.run(play())
    assert path[-2:] == ["Stop.before_model", "Stop.after_agent"]
    assert turn.said == "Receipt for T-1: 5.00 EUR."


def test_what_passes_by_the_gate_is_refused_when_awaited_too() -> None:
    made: list[str] = []
    registered = [stranger_of(Places())]
    turn = Turn(one("stranger"), tools=[*PROBES, noted(made)], registered=registered)
    turn.await_(GIVEN)
    assert turn.replies[0].artifact["data"] == {"why": "unlisted"}
    assert turn.decision == (True, "policy_block")


def test_a_foreign_tool_that_breaks_is_fatal_when_awaited_too() -> None:
    async def stranger(thing: str) -> str:
        """Break."""
        raise RuntimeError("boom")

    tool = StructuredTool.from_function(coroutine=stranger)
    turn = Turn(one("stranger"), tools=[tool]).await_(GIVEN)
    turn.await_(Command(resume={"decisions": {turn.asked[0]["id"]: APPROVED}}))
    assert turn.decision == (True, "fatal")
    assert turn.replies[0].artifact["code"] == "tool.failed"
