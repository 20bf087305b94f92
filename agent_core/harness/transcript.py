"""What a played case leaves, and how a case is walked through to its end."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from langchain_core.messages import AIMessage, BaseMessage, ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command

from agent_core.chat_models.scripted import ScriptEnded
from agent_core.contract import RunContext, Tool, outcome_read
from agent_core.errors import ModelFailed
from agent_core.harness.cases import Case
from agent_core.harness.stage import Stage

THREAD: Final = "case"

_LOG_REFERENCE: Final = re.compile(r"\bE-[0-9A-Z]{8}\b")

DecisionIn = Callable[[str, Any], Mapping[str, Any] | None]
"""Finds the decision over a batch in what a node has reported, if it made one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """The facts of the stop record; `notes` are its evidence of polish and of stops held back."""

    done: tuple[str, ...]
    not_done: tuple[str, ...]
    saved: int
    notes: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """Return them as lines."""
        parts = (("done", self.done), ("not done", self.not_done))
        return [
            *(f"{name}: {'; '.join(items)}" for name, items in parts if items),
            f"model calls saved: {self.saved}",
            *self.notes,
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """What one orchestration did with one case.

    `decisions` are the rules of all batches in turn; `replies` says how many replies each call has
    in what the model reads, which must be one; `ran` names the probes that ran.
    """

    path: tuple[str, ...]
    model_calls: int
    decisions: tuple[str, ...]
    calls: tuple[str, ...]
    replies: tuple[int, ...]
    rule: str
    text: str
    record: Record | None = None
    ran: tuple[str, ...] = ()

    def written(self) -> str:
        """Return it as lines that a person can compare."""
        lines = [f"path: {' '.join(self.path)}", f"model calls: {self.model_calls}", "calls:"]
        lines += [f"  {call}" for call in self.calls]
        lines += [f"ran: {', '.join(self.ran)}"] if self.ran else []
        lines += [f"decisions: {', '.join(self.decisions)}"] if self.decisions else []
        lines += [f"rule: {self.rule}", *(self.record.lines() if self.record else []), "text:"]
        lines += [f"  {line}".rstrip() for line in self.text.splitlines()]
        return _without_references("\n".join(lines)) + "\n"

    @property
    def told(self) -> str:
        """Return the final text with one and the same reference into the log."""
        return _without_references(self.text)


def record_notes(evidence: Mapping[str, Any]) -> tuple[str, ...]:
    """Return what the evidence of a stop record says besides the batch that ended the run."""
    held_back = [item["rule"] for item in evidence.get("would_have_stopped", ())]
    return (
        *([f"polish: {evidence['polish']}"] if "polish" in evidence else []),
        *([f"would have stopped: {', '.join(held_back)}"] if held_back else []),
    )


def _without_references(text: str) -> str:
    return _LOG_REFERENCE.sub("E-REFERENCE", text)


class Play(Protocol):
    """How one orchestration plays a case with these tools.

    `context` says who acts, read anew before every decision; someone who may use the probes when
    none is given. `stage` is where the probes among the tools take their turns.
    """

    def __call__(
        self,
        case: Case,
        tools: Sequence[Tool],
        *,
        context: Callable[[], RunContext] | None = None,
        stage: Stage | None = None,
    ) -> Transcript:
        """Play the case."""


@dataclass
class Walk:
    """How a case was walked: the nodes, the decisions over batches, the error that ended it."""

    path: list[str] = field(default_factory=list)
    decisions: list[str] = field(default_factory=list)
    error: str = ""


def walked(
    case: Case,
    steps: Callable[[Any, RunnableConfig], Iterable[Any]],
    given: Any,
    *,
    most_steps: int,
    decided: Callable[[str], Mapping[str, Any]],
    decision_in: DecisionIn,
) -> Walk:
    """Run until nothing is left to do, deciding every review; a model that fails ends the walk.

    `most_steps` is for the framework, and so many that the limits of the case end it before.

    Raises:
        ContractBroken: a tool breaks the contract in a way that no outcome can tell.
        ModelFailed: the case has too few steps.
    """
    config: RunnableConfig = {
        "configurable": {"thread_id": THREAD},
        "recursion_limit": most_steps,
    }
    forced = [step.error for step in case.steps if step.error is not None]
    breaking: tuple[type[BaseException], ...] = (ModelFailed, *map(type, forced))
    walk = Walk()
    try:
        while given is not None:
            asked: Sequence[Any] | None = None
            for update in steps(given, config):
                asked = update.get("__interrupt__") or asked
                _noted(walk, update, decision_in)
            given = None
            if asked:
                walk.path.append("(pause)")
                made = {key: decided(key) for key in _asked_ids(asked[0].value)}
                given = Command(resume={"decisions": made})
    except breaking as error:
        walk.error = _failure(error, forced)
        if not walk.error:
            raise
    return walk


def _failure(error: BaseException, forced: Sequence[BaseException]) -> str:
    """Say how the model failed, without its provider's words; nothing when it was not the model.

    The graph wraps what the model raises, and `create_agent` lets it through as it is.
    """
    if any(each in (error, error.__cause__) for each in forced):
        return str(ModelFailed())
    own = isinstance(error, ModelFailed) and not isinstance(error.__cause__, ScriptEnded)
    return str(error) if own else ""


def transcript_of(
    walk: Walk,
    messages: Sequence[BaseMessage],
    *,
    model_calls: int,
    rule: str,
    text: str,
    record: Record | None,
) -> Transcript:
    """Put a transcript together; a walk that an error ended has failed, and says why."""
    calls, replies = replies_told(messages)
    return Transcript(
        path=tuple(walk.path),
        model_calls=model_calls,
        decisions=tuple(walk.decisions),
        calls=calls,
        replies=replies,
        rule="failed" if walk.error else rule,
        text=walk.error or text,
        record=None if walk.error else record,
    )


def _noted(walk: Walk, update: Mapping[str, Any], decision_in: DecisionIn) -> None:
    for node, part in update.items():
        if node.startswith("__"):
            continue
        walk.path.append(node)
        decision = decision_in(node, part)
        if decision is not None:
            walk.decisions.append(_decision_line(decision))


def _decision_line(decision: Mapping[str, Any]) -> str:
    rule, evidence = str(decision["rule"]), decision["evidence"]
    if rule == "budget":
        spent = f"{evidence['limit']} {evidence['used']} of {evidence['allowed']}"
        return f"budget ({spent}, else {evidence['otherwise']})"
    held_back = rule in ("completed", "fatal") and not decision["stop"]
    return f"{rule} (goes on)" if held_back else rule


def _asked_ids(value: Mapping[str, Any]) -> list[str]:
    return [call if isinstance(call, str) else call["id"] for call in value["calls"]]


def replies_told(messages: Sequence[BaseMessage]) -> tuple[tuple[str, ...], tuple[int, ...]]:
    """Return one line for each reply in call order, and how many replies each call has.

    A reply to nothing counts as a call with no name of its own.
    """
    asked = {
        str(call["id"]): str(call["name"])
        for message in messages
        if isinstance(message, AIMessage)
        for call in message.tool_calls
    }
    found = [message for message in messages if isinstance(message, ToolMessage)]
    names = {**{message.tool_call_id: "(not asked)" for message in found}, **asked}
    lines: list[str] = []
    counts: list[int] = []
    for key, name in [*asked.items(), *(item for item in names.items() if item[0] not in asked)]:
        own = [message for message in found if message.tool_call_id == key]
        counts.append(len(own))
        lines += [_call_line(name, str(each.content), each.artifact) for each in own]
        lines += [] if own else [f"{name} -> no reply"]
    return tuple(lines), tuple(counts)


def _call_line(tool: str, content: str, artifact: object) -> str:
    outcome = outcome_read(artifact)
    reason = outcome.reason if outcome else "unclear"
    again = ", already applied" if outcome and outcome.already_applied else ""
    return f"{tool} -> {reason}{again}: {' / '.join(content.splitlines())}"
