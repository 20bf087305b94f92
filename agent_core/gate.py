"""The gate: a verdict for each call of a batch, over facts looked up on the server."""

from __future__ import annotations

import hashlib
import json
import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from uuid import UUID

from agent_core.contract import RunContext, Tool, outcome_read, policy_block
from agent_core.host import CallRecord
from agent_core.policy import Proposal, ReviewProposal, Verdict, verdict_of
from agent_core.toolset import ArgumentsBad, Checked, Toolset, invalid

logger = logging.getLogger(__name__)

HELD_TEXT = "Not done, because another part of this request was refused."
CHANGED_TEXT = (
    "A reviewer has already changed and decided this request, so it is not asked for again."
)
RIGHT_TEXT = "You do not have the right to do this. Ask your team lead if you need it."


@dataclass(frozen=True, slots=True, kw_only=True)
class Gated:
    """One call with its verdict; `result` is set when it needs no execution."""

    record: CallRecord
    remaining: bool
    result: tuple[str, Mapping[str, Any]] | None
    twin_of: str | None
    runs_before_review: bool

    def state(self) -> dict[str, Any]:
        """Return what the graph keeps of it: primitives only."""
        record = self.record
        return {
            "id": record.id,
            "position": record.position,
            "tool": record.tool,
            "label": record.label,
            "arguments": dict(record.arguments),
            "verdict": record.verdict,
            "identity": record.identity,
            "effect": record.effect,
            "remaining": self.remaining,
            "twin_of": self.twin_of,
            "early": self.runs_before_review,
        }


class Gate:
    """Decides over one batch. `history` lists the finished calls of this run and of the one before.

    The order is public: authorisation, then the rules of the tool, then the no-repeat rule; the
    batch as a whole comes last.
    """

    def __init__(
        self, toolset: Toolset, context: RunContext, history: Sequence[Mapping[str, Any]]
    ) -> None:
        self._toolset = toolset
        self._context = context
        self._history = history

    def batch(self, calls: Sequence[Mapping[str, Any]]) -> list[Gated]:
        """Return the calls with their verdicts, in call order; each knows what those before ask."""
        first_of: dict[str, str] = {}
        beside: dict[UUID, ReviewProposal | None] = {UUID(str(call["id"])): None for call in calls}
        gated = []
        for call in calls:
            item = self._call(call, first_of, beside)
            beside[UUID(item.record.id)] = item.record.proposal
            gated.append(item)
        if any(item.record.verdict == "block" for item in gated):
            gated = [_held(item) for item in gated]
        return gated

    def fresh(self, call: Mapping[str, Any], arguments: Mapping[str, Any]) -> Verdict:
        """Return the verdict on the facts of this moment, just before the call is executed.

        A call that has begun its effect before its worker died passes without the right, too: it
        does nothing new, and saying that it was refused would be untrue.
        """
        tool = self._toolset.tool(str(call["tool"]))
        if tool is None:
            return Verdict(kind="block", rule="right.missing", text=RIGHT_TEXT)
        context = replace(self._context, call_id=UUID(str(call["id"])))
        facts = _facts(tool, context, arguments)
        begun = facts is not None and facts.get("begun") is True
        if tool.right not in context.rights and not begun:
            return Verdict(kind="block", rule="right.missing", text=RIGHT_TEXT)
        return _ruled(tool, context, arguments, facts)

    def _call(
        self,
        call: Mapping[str, Any],
        first_of: dict[str, str],
        beside: Mapping[UUID, ReviewProposal | None],
    ) -> Gated:
        try:
            if call.get("malformed"):
                raise ArgumentsBad("The details of this call could not be read.")
            checked = self._toolset.checked(str(call["tool"]), call["arguments"])
        except ArgumentsBad as error:
            return self._invalid(call, error)
        tool = checked.tool
        if tool.right not in self._context.rights:
            verdict = Verdict(kind="block", rule="right.missing", text=RIGHT_TEXT)
            return self._gated(call, checked, verdict, "", None)
        identity = identity_of(tool, self._context, checked.arguments)
        repeat = self._repeat(call, checked, identity, first_of)
        if repeat is not None:
            return repeat
        context = replace(self._context, call_id=UUID(str(call["id"])), beside=dict(beside))
        facts = _facts(tool, context, checked.arguments)
        verdict = _ruled(tool, context, checked.arguments, facts)
        proposal: ReviewProposal | None = None
        if verdict.kind == "review" and facts is not None:
            asked = tool.propose(context, checked.arguments, facts) if tool.propose else None
            proposal = asked or _plain_proposal(tool, checked.arguments)
            proposal = replace(proposal, rule=verdict.rule)
        return self._gated(call, checked, verdict, identity, proposal)

    def _repeat(
        self,
        call: Mapping[str, Any],
        checked: Checked,
        identity: str,
        first_of: dict[str, str],
    ) -> Gated | None:
        if not identity:
            return None
        for past in reversed(self._history):
            if identity not in (past["identity"], past["identity_executed"]):
                continue
            if past.get("changed") and identity == past["identity"]:
                verdict = Verdict(kind="block", rule="repeat.changed", text=CHANGED_TEXT)
                return self._gated(call, checked, verdict, identity, None)
            if past["reason"] in ("completed", "fatal"):
                result = repeated(past["content"], past["artifact"])
                return self._settled(call, checked, identity, result, None)
        if identity in first_of:
            return self._settled(call, checked, identity, None, first_of[identity])
        first_of[identity] = str(call["id"])
        return None

    def _settled(
        self,
        call: Mapping[str, Any],
        checked: Checked,
        identity: str,
        result: tuple[str, Mapping[str, Any]] | None,
        twin_of: str | None,
    ) -> Gated:
        verdict = Verdict(kind="allow", rule="repeat")
        record = _record(call, checked.tool, checked.arguments, verdict, identity, result=result)
        return Gated(
            record=record,
            remaining=checked.remaining,
            result=result,
            twin_of=twin_of,
            runs_before_review=True,
        )

    def _gated(
        self,
        call: Mapping[str, Any],
        checked: Checked,
        verdict: Verdict,
        identity: str,
        proposal: ReviewProposal | None,
    ) -> Gated:
        result: tuple[str, Mapping[str, Any]] | None = None
        if verdict.kind == "block":
            result = blocked(verdict)
        record = _record(
            call,
            checked.tool,
            checked.arguments,
            verdict,
            identity,
            result=result,
            proposal=proposal,
        )
        return Gated(
            record=record,
            remaining=checked.remaining,
            result=result,
            twin_of=None,
            runs_before_review=checked.tool.runs_before_review,
        )

    def _invalid(self, call: Mapping[str, Any], error: ArgumentsBad) -> Gated:
        logger.info("call.invalid", extra={"call": call["id"], "tool": call["tool"]})
        tool = self._toolset.tool(str(call["tool"]))
        content, artifact = invalid(str(error))
        record = CallRecord(
            id=str(call["id"]),
            position=int(call["position"]),
            tool=str(call["tool"])[:64],
            label=tool.doing if tool else "Reading the request",
            arguments=dict(call["arguments"]),
            verdict="invalid",
            rule="call.invalid",
            identity="",
            effect=False,
            content=content,
            artifact=artifact,
        )
        return Gated(
            record=record,
            remaining=False,
            result=(content, artifact),
            twin_of=None,
            runs_before_review=True,
        )


def identity_of(tool: Tool, context: RunContext, arguments: Mapping[str, Any]) -> str:
    """Return the hashed business identity of an effect; empty for a call that only reads."""
    if tool.identity is None:
        return ""
    wanted = tool.identity(context, arguments)
    return hashlib.sha256(f"{tool.name}\n{wanted}".encode()).hexdigest()


def label_after(tool: Tool | None, call: Mapping[str, Any], artifact: object) -> str:
    """Return the words for an ended call: what was done, or what was being done and is not."""
    outcome = outcome_read(artifact)
    done = tool is not None and (
        not tool.effect or (outcome is not None and outcome.reason == "completed")
    )
    return tool.done if tool is not None and done else str(call["label"])


def history_entry(
    toolset: Toolset,
    context: Callable[[], RunContext],
    call: Mapping[str, Any],
    *,
    content: str,
    artifact: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """Return an ended call as the no-repeat rule and the answer read it.

    `call` says in `changed` whether a reviewer changed it, and in `executed` with what arguments
    it ran then.
    """
    tool, outcome = toolset.tool(str(call["tool"])), outcome_read(artifact)
    executed = call["identity"]
    if tool is not None and call["changed"]:
        executed = identity_of(tool, context(), call["executed"])
    asked = {"tool": str(call["tool"]), "arguments": call.get("executed", {})}
    return {
        "call": call["id"],
        "position": call.get("position", 0),
        "identity": call["identity"],
        "identity_executed": executed,
        # For counting only: a call without an identity may be made again and again.
        "try_key": executed or arguments_hash(asked),
        "verdict": call["verdict"],
        "effect": call["effect"],
        "label": label_after(tool, call, artifact),
        "reason": outcome.reason if outcome else "",
        "content": content,
        "artifact": artifact,
        "changed": call["changed"],
    }


def blocked(verdict: Verdict) -> tuple[str, Mapping[str, Any]]:
    """Return the outcome of a call that a rule forbids."""
    return verdict.text, policy_block(verdict.rule, data={"rule": verdict.rule, **verdict.data})


def repeated(content: str, artifact: Mapping[str, Any]) -> tuple[str, Mapping[str, Any]]:
    """Return the first outcome for its twin; only a completed one counts as already applied."""
    if artifact.get("reason") == "completed":
        return content, {**artifact, "already_applied": True}
    return content, dict(artifact)


def arguments_hash(arguments: Mapping[str, Any]) -> str:
    """Return a stable hash of business arguments."""
    text = json.dumps(arguments, sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def tries_of(history: Sequence[Mapping[str, Any]], batch: Sequence[Mapping[str, Any]]) -> int:
    """Return the most tries that a call of the batch has had in this run without success.

    What completed is no such try, however often it is asked again, and what stands twice in one
    message is one; to ask again for what failed for good is one, though it is not executed. All
    calls that do not fit count as the same call.
    """
    present = {call["id"] for call in batch}
    failed: set[tuple[int, str]] = set()
    latest: set[str] = set()
    message = 0
    for past in history:
        message += past.get("position", 0) == 0
        if past["reason"] != "completed":
            failed.add((message, _try_key(past)))
            if past["call"] in present:
                latest.add(_try_key(past))
    tries = Counter(key for _message, key in failed)
    return max((tries[key] for key in latest if key), default=0)


def _try_key(past: Mapping[str, Any]) -> str:
    """Return what two tries of one call have in common; an older checkpoint knows less of it."""
    if past["verdict"] == "invalid":
        return "invalid"
    return str(past.get("try_key", past["identity_executed"]))


def _held(item: Gated) -> Gated:
    """Hold every effect of a batch of which one call is blocked."""
    record = item.record
    if not record.effect or item.result is not None:
        return item
    artifact = policy_block("batch.held", data={"held": True})
    held = replace(
        record,
        verdict="block",
        rule="batch.held",
        content=HELD_TEXT,
        artifact=artifact,
        proposal=None,
    )
    return replace(item, record=held, result=(HELD_TEXT, artifact), twin_of=None)


def _record(
    call: Mapping[str, Any],
    tool: Tool,
    arguments: Mapping[str, Any],
    verdict: Verdict,
    identity: str,
    *,
    result: tuple[str, Mapping[str, Any]] | None,
    proposal: ReviewProposal | None = None,
) -> CallRecord:
    return CallRecord(
        id=str(call["id"]),
        position=int(call["position"]),
        tool=tool.name,
        label=tool.doing,
        arguments=dict(arguments),
        verdict=verdict.kind,
        rule=verdict.rule,
        identity=identity,
        effect=tool.effect,
        content=result[0] if result else "",
        artifact=result[1] if result else None,
        proposal=proposal,
    )


def _facts(
    tool: Tool, context: RunContext, arguments: Mapping[str, Any]
) -> Mapping[str, Any] | None:
    return tool.facts(context, arguments) if tool.facts else {}


def _ruled(
    tool: Tool,
    context: RunContext,
    arguments: Mapping[str, Any],
    facts: Mapping[str, Any] | None,
) -> Verdict:
    if facts is None:
        # Not found: the tool says so itself, in the same words as for a missing reference.
        return Verdict(kind="allow", rule="not_found")
    proposal = Proposal(
        tool=tool.name,
        arguments=arguments,
        rights=context.rights,
        customer_id=context.customer_id,
    )
    return verdict_of(tool.policies, proposal, facts)


def _plain_proposal(tool: Tool, arguments: Mapping[str, Any]) -> ReviewProposal:
    """Ask about a call for which nobody wrote a card: a tool that nobody listed is reviewed."""
    return ReviewProposal(
        kind="call",
        subject_id=None,
        subject_hash=arguments_hash({"tool": tool.name, **arguments}),
        title=tool.doing,
        button="Approve",
        card=[{"label": name, "text": str(value)} for name, value in sorted(arguments.items())],
    )
