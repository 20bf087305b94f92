"""What the middleware keeps beside the messages: the judged batch, its history and its usage.

Primitives only, so that any checkpointer can store it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NotRequired
from uuid import UUID, uuid5

from langchain.agents.middleware import AgentState
from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langgraph.types import Command

from agent_core.answer import STUB
from agent_core.chat_models.reading import calls_read, text_of
from agent_core.contract import RunContext, policy_block
from agent_core.gate import Gated, history_entry, repeated
from agent_core.redaction import redacted, shortened
from agent_core.router import Decision
from agent_core.toolset import Toolset

RELAYED: Final = "countersign"
UNANSWERED_TEXT: Final = "This step gave no clear result."
FINAL_STATES: Final = ("approved", "rejected", "withdrawn", "expired")

Answered = ToolMessage | Command[Any]


class CountersignState(AgentState[Any]):
    """What the stack keeps beside the messages: primitives only."""

    countersign: NotRequired[dict[str, Any]]


def kept_fresh() -> dict[str, Any]:
    """Return what a turn starts with."""
    return {
        "batch": [],
        "history": [],
        "model_calls": 0,
        "tool_calls": 0,
        "tokens": 0,
        "worked": 0.0,
        "mark": time.time(),
        "decision": None,
    }


def kept_of(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the state keeps of this turn so far."""
    return {**kept_fresh(), **(state.get("countersign") or {})}


def kept_timed(kept: dict[str, Any]) -> dict[str, Any]:
    """Add the time since the last mark. Each step has its own mark, so a pause adds nothing."""
    now = time.time()
    return {**kept, "worked": kept["worked"] + max(0.0, now - kept["mark"]), "mark": now}


def calls_minted(message: AIMessage, run_id: UUID) -> list[dict[str, Any]]:
    """Name each call by the message and its place: providers repeat ids, and replays must not."""
    return [
        {
            "id": str(uuid5(run_id, f"{message.id}:{position}")),
            "position": position,
            "tool": call.tool,
            "arguments": call.arguments,
            "malformed": call.malformed,
        }
        for position, call in enumerate(calls_read(message))
    ]


def entry_of(item: Gated, asked: Mapping[str, Any]) -> dict[str, Any]:
    """Return what the state keeps of a judged call; `asked` is what the model sent."""
    proposal = item.record.proposal
    return {
        **item.state(),
        "asked": dict(asked),
        "result": list(item.result) if item.result else None,
        "ask": {"title": proposal.title, "card": list(proposal.card)} if proposal else {},
        "may_change": sorted(proposal.fields) if proposal else [],
        "approved": False,
        "changed": False,
        "review": "",
        "foreign": False,
    }


def entry_foreign(call: Mapping[str, Any]) -> dict[str, Any]:
    """Nobody wrote a policy for this tool, so a person decides."""
    return {
        **call,
        "label": str(call["tool"]),
        "verdict": "review",
        "identity": "",
        "effect": True,
        "remaining": False,
        "twin_of": None,
        "early": False,
        "asked": dict(call["arguments"]),
        "result": None,
        "ask": {"title": str(call["tool"]), "card": []},
        "may_change": [],
        "approved": False,
        "changed": False,
        "review": "",
        "foreign": True,
    }


def decisions_fitting(answer: object, ids: set[str]) -> Mapping[str, Any] | None:
    """Return the decisions when there is exactly one final one for each waiting call."""
    decisions = answer.get("decisions") if isinstance(answer, Mapping) else None
    if not isinstance(decisions, Mapping) or set(decisions) != ids:
        return None
    fits = all(
        isinstance(each, Mapping) and each.get("state") in FINAL_STATES
        for each in decisions.values()
    )
    return decisions if fits else None


def entry_decided(call: dict[str, Any], decision: Mapping[str, Any]) -> dict[str, Any]:
    """A person's refusal is policy; of an approval only the fields that may change are taken."""
    if decision["state"] != "approved":
        sentence = str(decision.get("sentence") or "This was not approved, so it was not done.")
        artifact = policy_block(f"review.{decision['state']}")
        return {**call, "verdict": "block", "result": [sentence, artifact]}
    changes = decision.get("changes") or {}
    taken = {name: value for name, value in changes.items() if name in call["may_change"]}
    return {
        **call,
        "verdict": "allow",
        "approved": True,
        "arguments": {**call["arguments"], **taken},
        "changed": bool(taken),
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
            content, artifact = repeated(str(first.content), first.artifact)
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
        content=str(message.content),
        artifact=message.artifact,
    )


def decision_kept(decision: Decision) -> dict[str, Any]:
    """Return a decision as primitives."""
    return {"rule": decision.rule, "stop": decision.stop, "evidence": dict(decision.evidence)}


def told(call: Mapping[str, Any], content: str, artifact: object) -> ToolMessage:
    """Return the reply to a call that was not executed."""
    return ToolMessage(
        content=content, artifact=artifact, tool_call_id=str(call["id"]), name=str(call["name"])
    )


def cleaned(answer: Answered) -> Answered:
    """Mask card numbers and secrets in a reply, and cut what is too long."""
    if not isinstance(answer, ToolMessage):
        return answer
    clean = shortened(redacted(text_of(answer)))
    return answer if clean == answer.content else answer.model_copy(update={"content": clean})


def stubbed(message: AnyMessage) -> AnyMessage:
    """Show the model a stub in place of an answer that was the tools' own text."""
    if isinstance(message, AIMessage) and RELAYED in message.response_metadata:
        return AIMessage(STUB, id=message.id)
    return message
