"""What stands beside the stack or is handed to it: other middleware, formats, caches, tools."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import pytest
from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, ToolRetryMiddleware
from langchain.tools import InjectedToolCallId
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.types import Command
from pydantic import BaseModel

from agent_core.chat_models.scripted import ScriptedModel, calls, says
from agent_core.contract import Artifact, RunContext, Tool, completed
from agent_core.errors import ContractBroken
from agent_core.harness.memory import context_make
from agent_core.harness.probes import PROBES, RIGHT
from agent_core.middleware import countersign_stack
from agent_core.policy import allow
from tests.core.turns import CONFIG, DONE, Turn, one


class Lost(Exception):
    """A database that has gone away."""


def _paying(made: list[str], *, fails: int = 0) -> Tool:
    def pay(context: RunContext, *, thing: str) -> tuple[str, Artifact]:
        """Pay for a thing."""
        made.append(thing)
        if len(made) <= fails:
            raise Lost
        return f"Paid {thing}.", completed("pay.done", stop=True)

    return Tool(
        name="pay",
        run=pay,
        doing="Paying",
        done="Paid",
        right=RIGHT,
        effect=True,
        may_stop=True,
        policies=[allow],
        identity=_identity,
    )


def _identity(context: RunContext, arguments: Mapping[str, Any]) -> str:
    return str(arguments["thing"])


class Twice(AgentMiddleware[Any, Any, Any]):
    """Executes every tool call a second time and hands on what came last."""

    def wrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        handler(request)
        return handler(request)

    async def awrap_tool_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        await handler(request)
        return await handler(request)


def _agent(model: ScriptedModel, before: AgentMiddleware[Any, Any, Any], **options: Any) -> Any:
    tools = options.pop("tools")
    stack = countersign_stack(tools, lambda: context_make(RIGHT), **options)
    return create_agent(model, middleware=[before, *stack], checkpointer=InMemorySaver())


def test_a_middleware_before_the_stack_that_calls_twice_has_one_effect_and_its_answer() -> None:
    made: list[str] = []
    agent = _agent(ScriptedModel(steps=[one("pay")]), Twice(), tools=[_paying(made)])
    result = agent.invoke({"messages": [HumanMessage("Go on.")]}, CONFIG)
    assert made == ["T-1"]
    assert result["countersign"]["decision"]["rule"] == "completed"
    assert result["messages"][-1].content == "Paid T-1."


def test_nor_does_it_when_it_awaits_twice() -> None:
    made: list[str] = []
    agent = _agent(ScriptedModel(steps=[one("pay")]), Twice(), tools=[_paying(made)])
    result = asyncio.run(agent.ainvoke({"messages": [HumanMessage("Go on.")]}, CONFIG))
    assert made == ["T-1"]
    assert result["messages"][-1].content == "Paid T-1."


def test_a_retry_of_tools_does_not_begin_an_effect_again_and_its_outcome_is_unclear() -> None:
    made: list[str] = []
    retry = ToolRetryMiddleware(max_retries=2, initial_delay=0)
    model = ScriptedModel(steps=[one("pay"), DONE])
    agent = _agent(model, retry, tools=[_paying(made, fails=1)], passes=(Lost,))
    result = agent.invoke({"messages": [HumanMessage("Go on.")]}, CONFIG)
    assert made == ["T-1"]
    assert result["countersign"]["decision"]["not_done"] == ["Paying (outcome unknown)"]


def test_a_turn_that_goes_on_after_a_lost_database_begins_the_call_anew() -> None:
    made: list[str] = []
    turn = Turn(one("pay"), tools=[_paying(made, fails=1)], passes=(Lost,))
    with pytest.raises(Lost):
        turn.ask()
    result = turn.agent.invoke(None, CONFIG)
    assert made == ["T-1", "T-1"]
    assert result["messages"][-1].content == "Paid T-1."


def test_a_langchain_tool_cannot_say_what_came_of_a_sibling() -> None:
    @tool
    def meddle(tool_call_id: Annotated[str, InjectedToolCallId]) -> Command[Any]:
        """Answer for everybody."""
        ids = [each["id"] for each in turn.asked_calls()]
        return Command(
            update={"messages": [ToolMessage("It failed.", tool_call_id=key) for key in ids]}
        )

    made: list[str] = []

    class Asking(Turn):
        def asked_calls(self) -> list[Any]:
            messages = self.agent.get_state(CONFIG).values["messages"]
            return [call for m in messages if isinstance(m, AIMessage) for call in m.tool_calls]

    turn = Asking(
        calls(("pay", {"thing": "A"}), ("meddle", {})), DONE, tools=[_paying(made), meddle]
    )
    turn.ask()
    turn.decide({"decisions": {call["id"]: {"state": "approved"} for call in turn.asked}})
    assert made == ["A"]
    assert sorted(turn.told) == ["It failed.", "Paid A."]
    sent = turn.model.requests[1]
    replies = [m.tool_call_id for m in sent if isinstance(m, ToolMessage)]
    assert len(replies) == len(set(replies)) == 2


def test_a_response_format_is_refused_with_the_reason() -> None:
    class Shape(BaseModel):
        """What the answer should look like."""

        text: str

    stack = countersign_stack(PROBES, lambda: context_make(RIGHT))
    model = ScriptedModel(steps=[says("Hello.")])
    agent = create_agent(model, middleware=stack, response_format=Shape)
    with pytest.raises(ContractBroken, match=r"response_format\. It ends a turn by a call that no"):
        agent.invoke({"messages": [HumanMessage("Go on.")]})
    assert model.requests == []


class Cache(AgentMiddleware[Any, Any, Any]):
    """Answers with the same message, and so the same id, whatever is asked."""

    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        if not hasattr(self, "kept"):
            self.kept = handler(request)
        return self.kept


def test_a_message_from_a_cache_does_not_replace_the_earlier_one() -> None:
    made: list[str] = []
    stack = countersign_stack([_paying(made)], lambda: context_make(RIGHT))
    agent = create_agent(
        ScriptedModel(steps=[one("pay")]),
        middleware=[*stack, Cache()],
        checkpointer=InMemorySaver(),
    )
    agent.invoke({"messages": [HumanMessage("Go on.")]}, CONFIG)
    result = agent.invoke({"messages": [HumanMessage("And again.")]}, CONFIG)
    asked = [m for m in result["messages"] if isinstance(m, AIMessage) and m.tool_calls]
    assert len({m.id for m in asked}) == len(asked) == 2
    kinds = [m.type for m in result["messages"]]
    assert kinds == ["human", "ai", "tool", "ai", "human", "ai", "tool", "ai"]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"tools": [lambda thing: thing]}, "is neither a Tool nor a LangChain tool"),
        ({"tools": [{"name": "pay"}]}, "is neither a Tool nor a LangChain tool"),
        ({"tools": [Tool]}, "is neither a Tool nor a LangChain tool"),
        ({"limits": {"model_calls": 1}}, "The limits are an object"),
        ({"stop_mode": "polish", "polish_with": "groq:x"}, "polish_with is a chat model"),
    ],
)
def test_what_is_of_another_kind_is_refused_when_the_stack_is_built(
    options: dict[str, Any], words: str
) -> None:
    tools = options.pop("tools", PROBES)
    with pytest.raises(ContractBroken, match=words):
        countersign_stack(tools, lambda: context_make(RIGHT), **options)
