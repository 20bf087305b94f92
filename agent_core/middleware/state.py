"""What the middleware keeps beside the messages: the judged batch, its history and its usage.

Primitives only, so that any checkpointer can store it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Annotated, Any, NotRequired

from langchain.agents.middleware import AgentState
from langchain.agents.middleware.types import OmitFromInput
from langchain_core.messages import AIMessage, AnyMessage, ToolMessage

from agent_core.chat_models.reading import text_of
from agent_core.contract import RunContext, policy_block
from agent_core.gate import HELD_TEXT, Gated, history_entry, repeated
from agent_core.host import RunEnd
from agent_core.middleware.messages import UNANSWERED_TEXT, told
from agent_core.toolset import Toolset, invalid

UNGATED_CODE = "call.ungated"


class CountersignState(AgentState[Any]):
    """What the stack keeps beside the messages: primitives only, and never from the caller."""

    countersign: NotRequired[Annotated[dict[str, Any], OmitFromInput]]


def kept_fresh(now: float) -> dict[str, Any]:
    """Return what a turn starts with, at this time of the stack's clock."""
    return {
        "batch": [],
        "batch_number": 0,
        "history": [],
        "model_calls": 0,
        "tool_calls": 0,
        "tokens": 0,
        "last_usage": {"read": 0, "made": 0},
        "worked": 0.0,
        "mark": now,
        "held_back": [],
        "decision": None,
    }


def kept_of(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the state keeps of this turn so far."""
    return {**kept_fresh(0.0), **(state.get("countersign") or {})}


def kept_timed(kept: dict[str, Any], now: float) -> dict[str, Any]:
    """Add the time since the last mark. Each step has its own mark, so a pause adds nothing."""
    return {**kept, "worked": kept["worked"] + max(0.0, now - kept["mark"]), "mark": now}


def _entry(call: Mapping[str, Any], **judged: Any) -> dict[str, Any]:
    """Return what the state keeps of a call: as it was sent, and what is not yet said of it."""
    return {
        "id": call["id"],
        "position": call["position"],
        "tool": call["tool"],
        "label": str(call["tool"]),
        "arguments": call["arguments"],
        "asked": dict(call["arguments"]),
        "verdict": "block",
        "identity": "",
        "effect": True,
        "remaining": False,
        "twin_of": None,
        "early": False,
        "result": None,
        "ask": {},
        "may_change": {},
        "approved": False,
        "changed": False,
        "review": "",
        "foreign": False,
        **judged,
    }


def entry_of(item: Gated, call: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the state keeps of a judged call; `call` is what the model sent."""
    proposal = item.record.proposal
    card = [dict(row) for row in proposal.card] if proposal else []
    return _entry(
        call,
        **{**item.state(), "tool": call["tool"]},
        result=list(item.result) if item.result else None,
        ask={"title": proposal.title, "card": card} if proposal else {},
        may_change=dict(proposal.fields) if proposal else {},
    )


def entry_foreign(call: Mapping[str, Any], problem: str, *, held: bool) -> dict[str, Any]:
    """Nobody wrote a policy for this tool, so a person decides; not about what cannot be done."""
    if problem:
        return _entry(
            call, verdict="invalid", effect=False, result=list(invalid(problem)), foreign=True
        )
    if held:
        refusal = [HELD_TEXT, policy_block("batch.held", data={"held": True})]
        return _entry(call, result=refusal, foreign=True)
    ask = {"title": str(call["tool"]), "card": []}
    return _entry(call, verdict="review", ask=ask, foreign=True)


def entries_put_in(
    messages: Sequence[AnyMessage], batch: Sequence[Mapping[str, Any]]
) -> list[dict[str, Any]]:
    """Return the refused calls behind the last model message that the gate has never seen."""
    judged = {call["id"] for call in batch}
    behind: list[ToolMessage] = []
    for message in reversed(messages):
        if isinstance(message, AIMessage):
            break
        if isinstance(message, ToolMessage) and message.tool_call_id not in judged:
            behind.insert(0, message)
    return [
        _entry(
            {"id": each.tool_call_id, "position": place, "tool": str(each.name), "arguments": {}},
            label="An unchecked step",
        )
        for place, each in enumerate(behind, len(batch))
        if isinstance(each.artifact, dict) and each.artifact.get("code") == UNGATED_CODE
    ]


def entry_decided(
    call: dict[str, Any], decision: Mapping[str, Any], toolset: Toolset
) -> dict[str, Any]:
    """A person's refusal is policy; an approval may have changed what may be changed."""
    if decision["state"] != "approved":
        sentence = str(decision.get("sentence") or "This was not approved, so it was not done.")
        summary = str(decision.get("summary", ""))
        artifact = policy_block(f"review.{decision['state']}", data={"summary": summary})
        return {**call, "verdict": "block", "result": [sentence, artifact]}
    changes = decision.get("changes") or {}
    arguments = call["arguments"]
    if changes:
        arguments = toolset.checked(call["tool"], {**arguments, **changes}).arguments
    return {
        **call,
        "verdict": "allow",
        "approved": True,
        "arguments": arguments,
        "changed": arguments != call["arguments"],
        "review": str(decision.get("review") or ""),
    }


def answers_of(
    batch: Sequence[Mapping[str, Any]], messages: Sequence[AnyMessage]
) -> tuple[dict[str, ToolMessage], list[ToolMessage]]:
    """Match the tool messages by call; also return those that are new or another than stored."""
    found = {each.tool_call_id: each for each in messages if isinstance(each, ToolMessage)}
    late: list[ToolMessage] = []
    for call in batch:
        first = found.get(call["twin_of"] or "")
        own = found.get(call["id"])
        if own is not None and first is None:
            continue
        content, artifact = UNANSWERED_TEXT, None
        if first is not None and first.artifact is not None:
            content, artifact = repeated(text_of(first), first.artifact)
        answer = told({"id": call["id"], "name": call["tool"]}, content, artifact)
        found[call["id"]] = answer.model_copy(update={"id": own.id}) if own else answer
        late.append(found[call["id"]])
    return found, late


def entry_finished(
    toolset: Toolset,
    context: Callable[[], RunContext],
    call: Mapping[str, Any],
    answers: Mapping[str, ToolMessage],
) -> dict[str, Any]:
    """Return a call with its outcome, as the no-repeat rule and the answer read it."""
    message = answers[call["id"]]
    return history_entry(
        toolset,
        context,
        {**call, "executed": call["arguments"]},
        content=text_of(message),
        artifact=message.artifact,
    )


def record_of(end: RunEnd) -> dict[str, Any]:
    """Return as primitives how a turn ended; its answer stands among the messages."""
    record = {name: value for name, value in asdict(end).items() if name not in ("answer", "stub")}
    return {**record, "stop": True, "done": list(end.done), "not_done": list(end.not_done)}
