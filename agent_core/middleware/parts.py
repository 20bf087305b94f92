"""The outer parts of the stack: who may use what, what is used up, and how large and how clean a
tool's message is."""

from __future__ import annotations

import asyncio
import logging
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from langchain.agents.middleware import AgentMiddleware, ModelRequest, ModelResponse
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, RemoveMessage, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.graph.message import REMOVE_ALL_MESSAGES
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.runtime import Runtime

from agent_core.budget import Budget, Limits, Usage
from agent_core.contract import RunContext
from agent_core.errors import ContractBroken
from agent_core.middleware.messages import (
    Answered,
    artifact_storable,
    masked,
    replies_completed,
    replies_mapped,
    sized,
    stubbed,
)
from agent_core.middleware.state import CountersignState, kept_fresh, kept_of, kept_timed
from agent_core.toolset import Toolset

logger = logging.getLogger(__name__)

Request = ModelRequest[Any]
Response = ModelResponse[Any]
Update = dict[str, Any] | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What every part of one stack shares; the fields are those of `countersign_stack`.

    Nothing of a turn is here: turns of one stack go on side by side, with whatever model each has.
    """

    toolset: Toolset
    foreign: Mapping[str, BaseTool]
    context: Callable[[], RunContext]
    limits: Limits
    stop_mode: str
    polish_with: BaseChatModel | None
    passes: tuple[type[BaseException], ...]
    clock: Callable[[], float]

    def listed(self, name: str) -> bool:
        """Tell whether a tool of this name was handed to the factory."""
        return name in self.foreign or self.toolset.tool(name) is not None

    def budget(self, kept: Mapping[str, Any], *, tool_calls: int = 0, tries: int = 0) -> Budget:
        """Return what this turn has used, held against the limits."""
        usage = Usage(
            model_calls=kept["model_calls"],
            tool_calls=tool_calls,
            tokens=kept["tokens"],
            seconds=int(kept["worked"]),
            tries=tries,
        )
        return Budget(limits=self.limits, usage=usage)


AGAIN: Final = "was registered again"


class Part(AgentMiddleware[CountersignState, Any, Any]):
    """One part of the stack."""

    state_schema = CountersignState

    def __init__(self, rules: Rules, tools: Sequence[BaseTool] = ()) -> None:
        super().__init__()
        self._rules = rules
        self.tools = list(tools)


def direct_refused(tools: Iterable[BaseTool], *, how: str = "is registered") -> None:
    """Refuse a tool that ends the turn by its registration.

    Raises:
        ContractBroken: one is registered with `return_direct`.
    """
    for tool in tools:
        if tool.return_direct:
            raise ContractBroken(
                f"{tool.name} {how} with return_direct, which ends the turn even when "
                "the call failed. A call says that it may stop in its artifact."
            )


class Authorisation(Part):
    """Offers the listed tools that the requester may use; shows relayed answers as short stubs."""

    def __init__(self, rules: Rules) -> None:
        every = frozenset(tool.right for tool in rules.toolset)
        super().__init__(rules, [*rules.toolset.offered(every), *rules.foreign.values()])

    def wrap_model_call(
        self, request: Request, handler: Callable[[Request], Response]
    ) -> Response | AIMessage:
        """Call the model with what it may see.

        Raises:
            ContractBroken: someone registered a tool again so that it returns directly.
        """
        return handler(self._narrowed(request))

    async def awrap_model_call(
        self, request: Request, handler: Callable[[Request], Awaitable[Response]]
    ) -> Response | AIMessage:
        """Call the model with what it may see."""
        return await handler(await asyncio.to_thread(self._narrowed, request))

    def _narrowed(self, request: Request) -> Request:
        present = [tool for tool in request.tools if isinstance(tool, BaseTool)]
        direct_refused(present, how=AGAIN)
        rights = self._rules.context().rights
        offered = [tool for tool in request.tools if self._usable(tool, rights)]
        return request.override(tools=offered, messages=[stubbed(m) for m in request.messages])

    def _usable(self, tool: BaseTool | dict[str, Any], rights: frozenset[str]) -> bool:
        """A tool that the provider itself would run passes no gate, so it is not offered either."""
        name = tool.name if isinstance(tool, BaseTool) else str(tool.get("name", ""))
        ours = self._rules.toolset.tool(name)
        if ours is None and name not in self._rules.foreign:
            logger.warning("tool.unlisted", extra={"tool": name})
            return False
        return ours is None or ours.right in rights


class SpendCaps(Part):
    """Counts model calls, tokens and working time; what is used up is the router's to say.

    A model call is one that brought an answer. The tries of a middleware before the stack all
    belong to one call, and what they used in vain is not in the tokens.
    """

    def before_agent(self, state: CountersignState, runtime: Runtime[Any]) -> Update:
        """Begin a turn: counts of its own, and a reply for each call that the last one left open.

        A new message drops a pause without a word, and an error leaves calls behind; a provider
        refuses a conversation in which one call has no reply.
        """
        completed = replies_completed(state["messages"], kept_of(state)["batch"])
        update: dict[str, Any] = {"countersign": kept_fresh(self._rules.clock())}
        if completed is not None:
            update["messages"] = [RemoveMessage(id=REMOVE_ALL_MESSAGES), *completed]
        return update

    def before_model(self, state: CountersignState, runtime: Runtime[Any]) -> Update:
        """Add the time that the tools took."""
        return {"countersign": kept_timed(kept_of(state), self._rules.clock())}

    def after_model(self, state: CountersignState, runtime: Runtime[Any]) -> Update:
        """Add one model call with its tokens."""
        kept, message = kept_of(state), state["messages"][-1]
        used = message.usage_metadata if isinstance(message, AIMessage) else None
        read, made = (used["input_tokens"], used["output_tokens"]) if used else (0, 0)
        return {
            "countersign": {
                **kept,
                "model_calls": kept["model_calls"] + 1,
                "tokens": kept["tokens"] + read + made,
                "last_usage": {"read": read, "made": made},
            }
        }


class _Cleaning(Part):
    """A part that acts on every tool message before it is checkpointed."""

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Answered]
    ) -> Answered:
        """Clean what a tool said."""
        return replies_mapped(handler(request), self._cleaned)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Answered]]
    ) -> Answered:
        """Clean what a tool said."""
        return replies_mapped(await handler(request), self._cleaned)

    @abstractmethod
    def _cleaned(self, reply: ToolMessage) -> ToolMessage: ...


class OutputSize(_Cleaning):
    """Cuts the text of a tool message that is too long, and says so in it."""

    def _cleaned(self, reply: ToolMessage) -> ToolMessage:
        return sized(reply)


class Redaction(_Cleaning):
    """Masks card numbers and secrets in the text; an artifact stays if it can be stored."""

    def _cleaned(self, reply: ToolMessage) -> ToolMessage:
        return artifact_storable(masked(reply))
