"""The gate of the stack: a verdict for each call, a person asked where one must be, and nothing
executed that has not passed here unchanged."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final, cast
from uuid import UUID

from langchain_core.messages import AIMessage, ToolMessage
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.runtime import Runtime
from langgraph.types import interrupt

from agent_core.contract import RunContext, policy_block
from agent_core.ending import ANSWERED
from agent_core.gate import Gate, blocked
from agent_core.middleware.begun import Begun
from agent_core.middleware.decisions import answer_problem
from agent_core.middleware.foreign import (
    CallChanged,
    arguments_problem,
    exactly,
    failure_told,
    must_pass,
    outcome_given,
)
from agent_core.middleware.listening import Pieces, formats_refused, listened, response_read
from agent_core.middleware.messages import (
    UNANSWERED_TEXT,
    Answered,
    calls_minted,
    message_minted,
    told,
)
from agent_core.middleware.parts import (
    AGAIN,
    Part,
    Request,
    Response,
    Rules,
    Update,
    direct_refused,
)
from agent_core.middleware.state import (
    CountersignState,
    entry_decided,
    entry_foreign,
    entry_of,
    kept_of,
    kept_timed,
)

logger = logging.getLogger(__name__)

Entry = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Ungated:
    """Why a call is refused: a name for records, a sentence for people, a hint for developers."""

    why: str
    text: str
    hint: str


PUT_IN: Final = Ungated(
    "put_in",
    "This step was not checked beforehand, so it was not done.",
    "Another middleware put this call in, or jumped to the tools past the gate.",
)
UNLISTED: Final = Ungated(
    "unlisted",
    "This step is not among those that may be done here, so it was not done.",
    "The tool was given to create_agent but not to countersign_stack.",
)
CHANGED: Final = Ungated(
    "changed",
    "This step was changed after it had been checked, so it was not done.",
    "Another middleware renamed this call or changed its arguments after the gate.",
)
UNDECIDED: Final = Ungated(
    "undecided",
    "Nobody has decided about this step yet, so it was not done.",
    "Another middleware jumped to the tools past the review of this call.",
)


class Review(Part):
    """Pauses once for every call of the batch that waits for a person."""

    def after_model(self, state: CountersignState, runtime: Runtime[Any]) -> Update:
        """Ask, and store who decided how; an answer that does not fit is asked again.

        An answer that an error refused would stay in the thread and refuse every later one. What is
        tested here must depend on stored state only, since it is tested again at each resume.
        """
        kept = kept_of(state)
        waiting = {call["id"]: call for call in kept["batch"] if call["verdict"] == "review"}
        if not waiting:
            return None
        asked = [
            {name: call[name] for name in ("id", "tool", "arguments", "ask", "may_change")}
            for call in waiting.values()
        ]
        answer = interrupt({"calls": asked})
        while problem := answer_problem(answer, waiting, self._rules.toolset):
            logger.warning("review.answer_refused", extra={"problem": problem})
            answer = interrupt({"calls": asked, "refused": problem})
        decisions = answer["decisions"]
        batch = [
            entry_decided(call, decisions[call["id"]], self._rules.toolset)
            if call["id"] in waiting
            else call
            for call in kept["batch"]
        ]
        # Waiting for people is not working time.
        return {"countersign": {**kept, "batch": batch, "mark": self._rules.clock()}}


class GatedCalls(Part):
    """Gives each call its verdict, and executes none that has not passed here unchanged."""

    def __init__(self, rules: Rules) -> None:
        super().__init__(rules)
        self._begun = Begun()

    def wrap_model_call(
        self, request: Request, handler: Callable[[Request], Response]
    ) -> Response | AIMessage:
        """Read what the model sent, strictly.

        Raises:
            ModelFailed: no usable answer came.
            ContractBroken: the agent was made with a response format.
        """
        formats_refused(request)
        pieces = Pieces()
        return response_read(request, handler(listened(request, pieces)), pieces)

    async def awrap_model_call(
        self, request: Request, handler: Callable[[Request], Awaitable[Response]]
    ) -> Response | AIMessage:
        """Read what the model sent, strictly."""
        formats_refused(request)
        pieces = Pieces()
        return response_read(request, await handler(listened(request, pieces)), pieces)

    def after_model(self, state: CountersignState, runtime: Runtime[Any]) -> Update:
        """Mint an id for each call and judge the batch."""
        message = state["messages"][-1]
        if not isinstance(message, AIMessage):
            return None
        kept = kept_timed(kept_of(state), self._rules.clock())
        context = self._rules.context()
        calls = calls_minted(message, context.run_id)
        if not calls:
            return {"countersign": {**kept, "batch": [], "decision": ANSWERED}}
        kept["batch"] = self._judged_batch(calls, context, kept["history"])
        kept["batch_number"] += 1
        return {"messages": [message_minted(message, calls)], "countersign": kept}

    async def aafter_model(self, state: CountersignState, runtime: Runtime[Any]) -> Update:
        """Mint an id for each call and judge the batch, off the event loop."""
        return await asyncio.to_thread(self.after_model, state, runtime)

    def _judged_batch(
        self, calls: list[dict[str, Any]], context: RunContext, history: list[dict[str, Any]]
    ) -> list[dict[str, Any]]:
        sent = {call["id"]: call for call in calls}
        foreign = self._rules.foreign
        known = [call for call in calls if call["tool"] not in foreign]
        judged = Gate(self._rules.toolset, context, history).batch(known)
        entries = {item.record.id: entry_of(item, sent[item.record.id]) for item in judged}
        held = any(entry["verdict"] == "block" for entry in entries.values())
        return [
            entries.get(call["id"])
            or entry_foreign(call, arguments_problem(foreign[call["tool"]], call), held=held)
            for call in calls
        ]

    def wrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Answered]
    ) -> Answered:
        """Answer one call: from its verdict, or by executing exactly what was judged.

        Raises:
            ContractBroken: someone registered the tool again so that it returns directly.
        """
        if self._begun.before(request):
            return self._begun.answer(request)
        return self._begun.noted(request, self._executed(request, handler))

    def _executed(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Answered]
    ) -> Answered:
        entry = self._passed(request)
        tool = _foreign_tool(entry, self._rules.foreign)
        if isinstance(entry, Ungated) or tool is None:
            return self._answer(request.tool_call, entry)
        try:
            return outcome_given(request.tool_call, handler(exactly(request, tool)))
        except CallChanged:
            return _refused(request.tool_call, CHANGED)
        except Exception as error:  # The boundary: whatever a tool raises, the run gets an outcome.
            if must_pass(error, self._rules.passes):
                raise
            return failure_told(request.tool_call, error)

    async def awrap_tool_call(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Answered]]
    ) -> Answered:
        """Answer one call: from its verdict, or by executing exactly what was judged."""
        if self._begun.before(request):
            return self._begun.answer(request)
        return self._begun.noted(request, await self._aexecuted(request, handler))

    async def _aexecuted(
        self, request: ToolCallRequest, handler: Callable[[ToolCallRequest], Awaitable[Answered]]
    ) -> Answered:
        entry = self._passed(request)
        tool = _foreign_tool(entry, self._rules.foreign)
        if isinstance(entry, Ungated) or tool is None:
            return await asyncio.to_thread(self._answer, request.tool_call, entry)
        try:
            return outcome_given(request.tool_call, await handler(exactly(request, tool)))
        except CallChanged:
            return _refused(request.tool_call, CHANGED)
        except Exception as error:  # The boundary, as above.
            if must_pass(error, self._rules.passes):
                raise
            return failure_told(request.tool_call, error)

    def _passed(self, request: ToolCallRequest) -> Entry | Ungated:
        """Return what the gate said of this very call, or why it did not pass.

        Raises:
            ContractBroken: someone registered the tool again so that it returns directly.
        """
        call = request.tool_call
        if request.tool is not None:
            direct_refused([request.tool], how=AGAIN)
        batch = kept_of(request.state)["batch"]
        entry = next((each for each in batch if each["id"] == call["id"]), None)
        if entry is not None and (entry["tool"], entry["asked"]) != (call["name"], call["args"]):
            return CHANGED
        if request.tool is not None and not self._rules.listed(call["name"]):
            return UNLISTED
        if entry is None:
            return PUT_IN
        return UNDECIDED if entry["verdict"] == "review" else cast("Entry", entry)

    def _answer(self, call: Mapping[str, Any], entry: Entry | Ungated) -> ToolMessage:
        if isinstance(entry, Ungated):
            return _refused(call, entry)
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


def _foreign_tool(entry: Entry | Ungated, foreign: Mapping[str, Any]) -> Any:
    """Return the LangChain tool to execute, or None when the call is answered otherwise."""
    if isinstance(entry, Ungated) or not entry["foreign"] or entry["result"] is not None:
        return None
    return foreign[entry["tool"]]


def _refused(call: Mapping[str, Any], reason: Ungated) -> ToolMessage:
    logger.error(
        "call.ungated",
        extra={"tool": call["name"], "call": call["id"], "why": reason.why, "hint": reason.hint},
    )
    artifact = policy_block("call.ungated", data={"why": reason.why})
    return told(call, reason.text, artifact, refused=True)
