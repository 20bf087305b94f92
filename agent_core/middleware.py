"""The same contract and router for people who use LangChain's `create_agent`.

`countersign_stack` builds the whole ordered stack: authorisation, spend caps, output, review and
gate, stop. It brings the tools with it, so `create_agent(model, middleware=stack)` is all.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, cast
from uuid import UUID

from langchain.agents.middleware import (
    AgentMiddleware,
    ModelRequest,
    ModelResponse,
    hook_config,
)
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.tools import BaseTool
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.runtime import Runtime
from langgraph.types import interrupt

from agent_core.answer import answer_compose
from agent_core.budget import Budget, Limits, Usage
from agent_core.chat_models.reading import text_of
from agent_core.contract import RunContext, Tool, outcome_read, policy_block
from agent_core.errors import ContractBroken, ModelEmpty
from agent_core.gate import Gate, blocked, tries_of
from agent_core.middleware_state import (
    RELAYED,
    UNANSWERED_TEXT,
    Answered,
    CountersignState,
    answers_of,
    calls_minted,
    cleaned,
    decision_kept,
    decisions_fitting,
    entry_decided,
    entry_finished,
    entry_foreign,
    entry_of,
    kept_fresh,
    kept_of,
    kept_timed,
    stubbed,
    told,
)
from agent_core.router import Settled, decide, measured
from agent_core.toolset import Toolset

logger = logging.getLogger(__name__)

UNGATED_TEXT: Final = "This step was not checked beforehand, so it was not done."

Request = ModelRequest[Any]
Response = ModelResponse[Any]
Stack = list[AgentMiddleware[Any, Any, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Rules:
    """What every part of one stack shares."""

    toolset: Toolset
    context: Callable[[], RunContext]
    limits: Limits
    stop_mode: str
    passes: tuple[type[BaseException], ...]
    foreign: frozenset[str] = field(default=frozenset())


def countersign_stack(
    tools: Iterable[Tool | BaseTool],
    context: Callable[[], RunContext],
    *,
    limits: Limits | None = None,
    stop_mode: str = "hard",
    passes: tuple[type[BaseException], ...] = (),
) -> Stack:
    """Build the whole ordered stack for `create_agent`. Put nothing between its parts.

    `context` says who acts, read anew before every decision. A LangChain tool among `tools` has no
    policy and no outcome of its own: each of its calls waits for a person. `passes` are errors the
    tool boundary lets through.

    Raises:
        ContractBroken: a tool returns directly, two share a name, or the stop mode is unknown.
    """
    ours = [tool for tool in tools if isinstance(tool, Tool)]
    foreign = [tool for tool in tools if isinstance(tool, BaseTool)]
    _none_direct(foreign)
    if stop_mode not in ("hard", "never"):
        raise ContractBroken(f"There is no stop mode {stop_mode!r} here; there are hard and never.")
    rules = _Rules(
        toolset=Toolset(ours),
        context=context,
        limits=limits or Limits(),
        stop_mode=stop_mode,
        passes=passes,
        foreign=frozenset(tool.name for tool in foreign),
    )
    # After-model hooks run from the last to the first: the gate first, then the review.
    return [
        Authorisation(rules, foreign),
        SpendCaps(rules),
        Output(rules),
        Review(rules),
        GatedCalls(rules),
        Stop(rules),
    ]


def _none_direct(tools: Sequence[BaseTool]) -> None:
    for tool in tools:
        if tool.return_direct:
            raise ContractBroken(
                f"{tool.name} is registered with return_direct, which ends the turn even when the "
                "call failed. A call says that it may stop in its artifact."
            )


class _Part(AgentMiddleware[CountersignState, Any, Any]):
    """One part of the stack."""

    state_schema = CountersignState

    def __init__(self, rules: _Rules, tools: Sequence[BaseTool] = ()) -> None:
        super().__init__()
        self._rules = rules
        self.tools = list(tools)


class Authorisation(_Part):
    """Offers the tools that the requester may use, and shows relayed answers as short stubs."""

    def __init__(self, rules: _Rules, foreign: Sequence[BaseTool]) -> None:
        every = frozenset(tool.right for tool in rules.toolset)
        super().__init__(rules, [*rules.toolset.offered(every), *foreign])

    def wrap_model_call(
        self, request: Request, handler: Callable[[Request], Response]
    ) -> Response | AIMessage:
        """Call the model with what it may see."""
        return handler(self._narrowed(request))

    async def awrap_model_call(
        self, request: Request, handler: Callable[[Request], Awaitable[Response]]
    ) -> Response | AIMessage:
        """Call the model with what it may see."""
        return await handler(await asyncio.to_thread(self._narrowed, request))

    def _narrowed(self, request: Request) -> Request:
        rights = self._rules.context().rights
        barred = {tool.name for tool in self._rules.toolset if tool.right not in rights}
        offered = [
            tool
            for tool in request.tools
            if (tool.name if isinstance(tool, BaseTool) else tool.get("name")) not in barred
        ]
        return request.override(tools=offered, messages=[stubbed(m) for m in request.messages])


class SpendCaps(_Part):
    """Counts model calls, tokens and working time; what is used up is the router's to say."""

    def before_model(self, state: CountersignState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Start the clock of a turn, or add the time its tools took."""
        kept = kept_of(state)
        if isinstance(state["messages"][-1], HumanMessage):
            kept = kept_fresh()
        return {"countersign": kept_timed(kept)}

    def after_model(self, state: CountersignState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Add one model call with its tokens."""
        kept, message = kept_of(state), state["messages"][-1]
        used = message.usage_metadata if isinstance(message, AIMessage) else None
        tokens = used["total_tokens"] if used else 0
        return {
            "countersign": {
                **kept,
                "model_calls": kept["model_calls"] + 1,
                "tokens": kept["tokens"] + tokens,
            }
        }


class Output(_Part):
    """Cuts and redacts what a tool said before it is checkpointed; our tools do so themselves."""

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Answered]
    ) -> Answered:
        """Clean the text of a tool message."""
        return cleaned(handler(request))

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Answered]]
    ) -> Answered:
        """Clean the text of a tool message."""
        return cleaned(await handler(request))


class Review(_Part):
    """Pauses once for every call of the batch that waits for a person."""

    def after_model(self, state: CountersignState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Ask, and store who decided how; an answer that does not fit is asked again."""
        kept = kept_of(state)
        waiting = [call for call in kept["batch"] if call["verdict"] == "review"]
        if not waiting:
            return None
        ids = {call["id"] for call in waiting}
        decisions: Mapping[str, Any] | None = None
        while decisions is None:
            asked = [{k: call[k] for k in ("id", "tool", "arguments", "ask")} for call in waiting]
            decisions = decisions_fitting(interrupt({"calls": asked}), ids)
        batch = [
            entry_decided(call, decisions[call["id"]]) if call["id"] in ids else call
            for call in kept["batch"]
        ]
        # Waiting for people is not working time.
        return {"countersign": {**kept, "batch": batch, "mark": time.time()}}


class GatedCalls(_Part):
    """Gives each call its verdict, and executes none that has not passed here unchanged."""

    def after_model(self, state: CountersignState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """Mint an id for each call and judge the batch.

        Raises:
            ModelEmpty: the model answered with neither text nor a call.
        """
        message, kept = state["messages"][-1], kept_timed(kept_of(state))
        if not isinstance(message, AIMessage):
            return None
        context = self._rules.context()
        calls = calls_minted(message, context.run_id)
        if not calls:
            if not text_of(message).strip():
                raise ModelEmpty
            decision = {"rule": "answered", "stop": True, "evidence": {}}
            return {"countersign": {**kept, "batch": [], "decision": decision}}
        known = [call for call in calls if call["tool"] not in self._rules.foreign]
        judged = Gate(self._rules.toolset, context, kept["history"]).batch(known)
        sent = {call["id"]: call["arguments"] for call in calls}
        entries = {item.record.id: entry_of(item, sent[item.record.id]) for item in judged}
        batch = [entries.get(call["id"]) or entry_foreign(call) for call in calls]
        asked = [
            {"id": call["id"], "name": call["tool"], "args": call["arguments"], "type": "tool_call"}
            for call in calls
        ]
        minted = AIMessage(
            text_of(message),
            id=message.id,
            tool_calls=asked,
            usage_metadata=message.usage_metadata,
            response_metadata=message.response_metadata,
        )
        return {"messages": [minted], "countersign": {**kept, "batch": batch}}

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Answered]
    ) -> Answered:
        """Answer one call: from its verdict, or by executing exactly what was judged."""
        entry = self._judged(request)
        if entry is not None and entry["foreign"] and entry["result"] is None:
            return handler(request)
        return self._answer(request, entry)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Answered]]
    ) -> Answered:
        """Answer one call: from its verdict, or by executing exactly what was judged."""
        entry = self._judged(request)
        if entry is not None and entry["foreign"] and entry["result"] is None:
            return await handler(request)
        return await asyncio.to_thread(self._answer, request, entry)

    def _judged(self, request: ToolCallRequest) -> dict[str, Any] | None:
        """Return what the gate said of this very call, or None when it is another one.

        Raises:
            ContractBroken: someone registered the tool again so that it returns directly.
        """
        call = request.tool_call
        if request.tool is not None and request.tool.return_direct:
            raise ContractBroken(f"{call['name']} was registered again with return_direct.")
        for entry in kept_of(request.state)["batch"]:
            same = entry["tool"] == call["name"] and entry["asked"] == call["args"]
            if entry["id"] == call["id"] and same and entry["verdict"] != "review":
                return cast("dict[str, Any]", entry)
        return None

    def _answer(self, request: ToolCallRequest, entry: Mapping[str, Any] | None) -> ToolMessage:
        call = request.tool_call
        if entry is None:
            logger.error("call.ungated", extra={"tool": call["name"], "call": call["id"]})
            return told(call, UNGATED_TEXT, policy_block("call.ungated"))
        if entry["result"] is not None:
            return told(call, *entry["result"])
        if entry["twin_of"]:
            return told(call, UNANSWERED_TEXT, None)
        tool = self._rules.toolset.tool(entry["tool"])
        review = UUID(entry["review"]) if entry["review"] else None
        context = replace(self._rules.context(), call_id=UUID(entry["id"]), review_id=review)
        verdict = Gate(self._rules.toolset, context, []).fresh(entry, entry["arguments"])
        asks = verdict.kind == "review" and not entry["approved"]
        if tool is None or verdict.kind == "block" or asks:
            return told(call, *blocked(verdict))
        message = self._rules.toolset.executed(
            tool, entry["arguments"], context, self._rules.passes
        )
        return told(call, str(message.content), message.artifact)


class Stop(_Part):
    """Lets the router decide over the whole batch before the model is called again."""

    @hook_config(can_jump_to=["end"])
    def before_model(self, state: CountersignState, runtime: Runtime[Any]) -> dict[str, Any] | None:
        """End with the tools' own text, or go on."""
        kept = kept_of(state)
        batch = kept["batch"]
        if not batch:
            return None
        settled, late = answers_of(batch, state["messages"])
        history = [
            *kept["history"],
            *(
                entry_finished(self._rules.toolset, self._rules.context, call, settled)
                for call in batch
            ),
        ]
        kept = {**kept, "history": history, "tool_calls": kept["tool_calls"] + len(batch)}
        budget = self._budget(kept, batch)
        decision = decide(
            [
                Settled(
                    call_id=call["id"],
                    outcome=outcome_read(settled[call["id"]].artifact),
                    remaining=call["remaining"],
                )
                for call in batch
            ],
            budget,
        )
        if self._rules.stop_mode == "never":
            decision = measured(decision, budget)
        kept = {**kept, "batch": [], "decision": decision_kept(decision)}
        if not decision.stop:
            return {"messages": late, "countersign": kept}
        answer = answer_compose(history, rule=decision.rule, evidence=decision.evidence)
        relay = AIMessage(answer.text, response_metadata={RELAYED: decision.rule})
        return {"messages": [*late, relay], "countersign": kept, "jump_to": "end"}

    def _budget(self, kept: Mapping[str, Any], batch: Sequence[dict[str, Any]]) -> Budget:
        usage = Usage(
            model_calls=kept["model_calls"],
            tool_calls=kept["tool_calls"],
            tokens=kept["tokens"],
            seconds=int(kept["worked"]),
            tries=tries_of(kept["history"], batch),
        )
        return Budget(limits=self._rules.limits, usage=usage)
