"""What a tool is and what it returns: the data beside the text, and how a program reads it.

A tool is a plain function ``run(context, **arguments) -> (content, artifact)``. ``content`` is text
that a customer could read; ``artifact`` is a plain dict made by one of the four constructors here.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Literal, TypedDict, cast, get_args
from uuid import UUID

from agent_core.errors import ContractBroken

if TYPE_CHECKING:
    from agent_core.policy import Policy, ReviewProposal

CONTRACT_VERSION: Final = 1

Reason = Literal["completed", "transient", "fatal", "policy_block"]
REASONS: Final[tuple[str, ...]] = get_args(Reason)

DEEPEST: Final = 32
"""The most levels of lists and dicts in what is stored; more is a mistake, such as a cycle."""

# A zero byte and half of a surrogate pair: valid in JSON, refused by Postgres and by UTF-8.
_UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")


class Artifact(TypedDict):
    """The outcome of one call as it is stored: primitives, lists and dicts only."""

    v: int
    reason: Reason
    stop: bool
    code: str
    already_applied: bool
    data: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Outcome:
    """What the program reads from an artifact."""

    reason: Reason
    stop: bool
    code: str
    already_applied: bool = False
    data: Mapping[str, Any] = field(default_factory=dict)


def _artifact(
    reason: Reason, stop: bool, code: str, already_applied: bool, data: Mapping[str, Any] | None
) -> Artifact:
    return {
        "v": CONTRACT_VERSION,
        "reason": reason,
        "stop": stop,
        "code": cast("str", plain(code, "code")),
        "already_applied": already_applied,
        "data": cast("dict[str, Any]", plain(dict(data or {}), "data")),
    }


def text_storable(text: str) -> str:
    """Return the text with the mark of an unreadable sign for each that no row holds.

    A sign that was only left out could turn one amount or reference into another. What is more than
    text, such as an enum's value, comes back as text alone.
    """
    return _UNSTORABLE.sub("\ufffd", text)


def integer_storable(value: int) -> bool:
    """Tell whether JSON, msgpack and a database column all hold it: signed 64 bits."""
    return -(2**63) <= value < 2**63


def plain(value: object, where: str, depth: int = 0) -> object:
    """Return `value` as it survives strict msgpack, JSON and a database: a copy of plain types.

    Raises:
        ContractBroken: it holds something else than text, 64-bit integers, lists and dicts with
            text keys, or nests deeper than `DEEPEST` levels (whatever holds itself does).
    """
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, str):
        return text_storable(value)
    if isinstance(value, UUID):
        return str(value)
    if isinstance(value, int):
        if not integer_storable(value):
            raise ContractBroken(f"{where} holds an integer of more than 64 bits.")
        return int(value)
    if depth > DEEPEST:
        raise ContractBroken(f"{where[:80]} is nested deeper than {DEEPEST} levels.")
    if isinstance(value, list | tuple):
        return [plain(item, where, depth + 1) for item in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {
            text_storable(key): plain(item, f"{where}.{key}", depth + 1)
            for key, item in value.items()
        }
    raise ContractBroken(f"{where} holds a {type(value).__name__}, which an artifact cannot carry.")


def completed(
    code: str,
    *,
    stop: bool,
    already_applied: bool = False,
    data: Mapping[str, Any] | None = None,
) -> Artifact:
    """Say that the call did what was asked; `stop` when its text can be the answer."""
    return _artifact("completed", stop, code, already_applied, data)


def transient(code: str, *, data: Mapping[str, Any] | None = None) -> Artifact:
    """Say that the call did not succeed now and that the model should go on with that."""
    return _artifact("transient", False, code, False, data)


def fatal(code: str, *, data: Mapping[str, Any] | None = None) -> Artifact:
    """Say that the call failed for good and must not be repeated."""
    return _artifact("fatal", True, code, False, data)


def policy_block(code: str, *, data: Mapping[str, Any] | None = None) -> Artifact:
    """Say that a rule or a person forbids the call."""
    return _artifact("policy_block", True, code, False, data)


def outcome_read(artifact: object) -> Outcome | None:
    """Read an artifact; None when it is missing or malformed, which never counts as completed."""
    if not isinstance(artifact, dict) or artifact.get("v") != CONTRACT_VERSION:
        return None
    reason, stop, code = artifact.get("reason"), artifact.get("stop"), artifact.get("code")
    applied, data = artifact.get("already_applied", False), artifact.get("data", {})
    if reason not in REASONS or not isinstance(stop, bool) or not isinstance(code, str) or not code:
        return None
    if not isinstance(applied, bool) or not isinstance(data, dict):
        return None
    if applied and reason != "completed":
        return None
    return Outcome(cast("Reason", reason), stop, code, applied, data)


def _no_fence() -> None:
    """Stand in where no run can be taken over (tests, adopters without a durable host)."""


def _no_bind(customer_id: UUID, label: str) -> None:
    """Stand in where there is no conversation to bind."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunContext:
    """Who acts, for whom and within what: made by the server, never by the model.

    `rights` are permission names such as ``payments.request_refund``. `words` are the staff
    member's own messages in this conversation, oldest first; `told` what tools answered in it, as
    pairs of what was done and the text. `beside` holds, while the gate judges a batch, the calls of
    that batch, each with what it asks of a person if it was judged before this one: two calls must
    not both count on the same remainder. `fence` must be called inside the
    transaction of every intent: it raises StaleAttempt once another worker owns the run.
    """

    run_id: UUID
    attempt: int
    conversation_id: UUID
    requester_id: int
    requester_name: str
    rights: frozenset[str]
    team_ids: frozenset[UUID]
    customer_id: UUID | None = None
    language: str = "en"
    words: tuple[str, ...] = ()
    told: tuple[tuple[str, str], ...] = ()
    call_id: UUID | None = None
    review_id: UUID | None = None
    beside: Mapping[UUID, ReviewProposal | None] = field(default_factory=dict)
    fence: Callable[[], object] = _no_fence
    bind_customer: Callable[[UUID, str], None] = _no_bind


ToolFunction = Callable[..., tuple[str, Artifact]]
Facts = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """One tool as the toolset registers it.

    - `run(context, **arguments)`: keyword arguments with annotations become the schema, its
      docstring the description that the model reads. It and the functions below are plain ones.
    - `doing`, `done`: plain words for staff ("Looking up the customer", "Looked up the customer").
    - `right`: the permission the requester needs; without it the tool is neither offered nor run.
    - `effect`: it changes something. `may_stop`: its completed outcome may end the turn.
    - `before_review`: may run while another call of its batch waits for a person.
    - `facts(context, arguments)`: looks up, within the requester's scope, what policies read; None
      when the thing is not found, and then the tool itself says so. `begun: True` in it says that
      this very call has begun its effect before: played again, it passes without the right.
    - `policies`: first verdict wins; none gives a review.
    - `identity(context, arguments)`: the business identity of an effect, for the no-repeat rule.
    - `propose(context, arguments, facts)`: what a reviewer is asked.
    """

    name: str
    run: ToolFunction
    doing: str
    done: str
    right: str
    effect: bool
    may_stop: bool
    before_review: bool = False
    facts: Callable[[RunContext, Mapping[str, Any]], Facts | None] | None = None
    policies: Sequence[Policy] = ()
    identity: Callable[[RunContext, Mapping[str, Any]], str] | None = None
    propose: Callable[[RunContext, Mapping[str, Any], Facts], ReviewProposal] | None = None

    def __post_init__(self) -> None:
        parts = (self.run, self.facts, self.identity, self.propose, *self.policies)
        if any(_returns_later(part) for part in parts):
            raise ContractBroken(
                f"{self.name} has an async or generator function where a plain one is called: it "
                "would return before anything is done. Write it as a plain function."
            )
        if self.effect and self.identity is None:
            raise ContractBroken(f"{self.name} has a side effect and must define its identity.")
        if not self.effect and self.identity is not None:
            raise ContractBroken(f"{self.name} only reads; reads are never cached.")

    @property
    def runs_before_review(self) -> bool:
        """Tell whether a sibling's review does not hold this call up."""
        return self.before_review or not self.effect


def _returns_later(function: object) -> bool:
    """Tell whether a call of it only makes a coroutine or a generator."""
    kinds = (
        inspect.iscoroutinefunction,
        inspect.isgeneratorfunction,
        inspect.isasyncgenfunction,
    )
    called = (function, getattr(function, "__call__", None))  # noqa: B004 - its code is looked at
    return any(kind(each) for kind in kinds for each in called)
