"""Verdicts over looked-up facts: allow, review or block. Policies are pure: no database."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal
from uuid import UUID

VerdictKind = Literal["allow", "review", "block"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Proposal:
    """One call as a policy sees it: tool, checked arguments, and the requester's rights."""

    tool: str
    arguments: Mapping[str, Any]
    rights: frozenset[str]
    customer_id: UUID | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What a policy says. `rule` is a stable name; `text` is a sentence for staff."""

    kind: VerdictKind
    rule: str
    text: str = ""
    data: Mapping[str, Any] = field(default_factory=dict)


Policy = Callable[[Proposal, Mapping[str, Any]], Verdict | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class ReviewProposal:
    """What a reviewer is asked to decide, ready to be stored and shown.

    `kind` names the registered subject ("refund"); `subject_hash` fixes exactly what may be
    executed; `amount_minor` is in minor units. `title` and `button` are shown as they are. `card`
    holds rows of label and text in a fixed order, `fields` what a reviewer may change. `rule` is
    the one that sent the call to a person, which the gate fills in. `flags` name risks, each as a
    mapping of `flag`, a stable name, and `text`, a sentence for the reviewer.
    """

    kind: str
    subject_id: UUID | None
    subject_hash: str
    title: str
    button: str
    amount_minor: int | None = None
    currency: str = ""
    team_id: UUID | None = None
    card: Sequence[Mapping[str, str]] = ()
    warnings: Sequence[str] = ()
    fields: Mapping[str, str] = field(default_factory=dict)
    rule: str = ""
    flags: Sequence[Mapping[str, str]] = ()


def allow(proposal: Proposal, facts: Mapping[str, Any]) -> Verdict | None:
    """Allow anything: the last policy of a tool that only reads."""
    return Verdict(kind="allow", rule="read")


def verdict_of(policies: Sequence[Policy], proposal: Proposal, facts: Mapping[str, Any]) -> Verdict:
    """Return the first verdict; a call on which no policy speaks is reviewed."""
    for policy in policies:
        verdict = policy(proposal, facts)
        if verdict is not None:
            return verdict
    return Verdict(kind="review", rule="unlisted", text="No rule covers this, so a person decides.")
