"""Decide, from the outcomes of one batch, whether the model is called again. One pure function."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from agent_core.budget import Budget
from agent_core.contract import Outcome

END_RULES: Final = ("answered", "cancelled", "failed", "parked")
"""How a run ends without a decision over a batch."""

STOP_MODES: Final = ("hard", "polish", "never")
"""What a stop does: relay the tools' text, let the model rewrite it once, or (to measure) go on."""

MEASURED_RULES: Final = ("completed", "fatal")
"""The stops that the mode `never` leaves out."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Settled:
    """One call of the batch with what came of it; `outcome` is None when it is unclear."""

    call_id: str
    outcome: Outcome | None
    remaining: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Stop or go on, by which rule, on what evidence."""

    stop: bool
    rule: str
    evidence: Mapping[str, Any] = field(default_factory=dict)


Matches = Callable[[Sequence[Settled]], bool]


def _blocked(batch: Sequence[Settled]) -> bool:
    return any(call.outcome and call.outcome.reason == "policy_block" for call in batch)


def _finished(batch: Sequence[Settled]) -> bool:
    return all(
        call.outcome
        and call.outcome.reason == "completed"
        and call.outcome.stop
        and not call.remaining
        for call in batch
    )


def _failed(batch: Sequence[Settled]) -> bool:
    return all(call.outcome and call.outcome.reason == "fatal" for call in batch)


def _unclear(batch: Sequence[Settled]) -> bool:
    return any(call.outcome is None for call in batch)


def _passing(batch: Sequence[Settled]) -> bool:
    return any(call.outcome and call.outcome.reason == "transient" for call in batch)


def _mixed(batch: Sequence[Settled]) -> bool:
    """A hidden partial failure is worse than one more model call."""
    known = [call.outcome for call in batch if call.outcome]
    fatal = any(outcome.reason == "fatal" for outcome in known)
    return fatal or len({outcome.stop for outcome in known}) > 1


def _rest(batch: Sequence[Settled]) -> bool:
    return True


_STOPS: Final[Mapping[str, Matches]] = {
    "policy_block": _blocked,
    "completed": _finished,
    "fatal": _failed,
}
_GOES_ON: Final[Mapping[str, Matches]] = {
    "unclear": _unclear,
    "transient": _passing,
    "mixed": _mixed,
    "continue": _rest,
}
_RULES: Final[Mapping[str, Matches]] = {**_STOPS, **_GOES_ON}
"""What each rule asks of the whole batch. The first that matches decides; what would go on by one
of the later ones is first held against the budget."""

STOP_RULES: Final = (*_STOPS, "budget")

BATCH_RULES: Final = (*STOP_RULES, *_GOES_ON)
"""The rules of `decide`, in the order in which they are tried."""


def decide(batch: Sequence[Settled], budget: Budget) -> Decision:
    """Return the first rule that matches the whole batch.

    Raises:
        ValueError: the batch is empty; there is nothing to decide.
    """
    if not batch:
        raise ValueError("A decision needs at least one call.")
    evidence = {"calls": [_evidence(call) for call in batch]}
    rule = next(name for name, matches in _RULES.items() if matches(batch))
    if rule in _STOPS:
        return Decision(stop=True, rule=rule, evidence=evidence)
    return _gone_on(rule, evidence, budget)


def measured(decision: Decision, budget: Budget) -> Decision:
    """Return what the mode `never` makes of a decision: what is finished goes on, within budget."""
    if decision.rule not in MEASURED_RULES:
        return decision
    return _gone_on(decision.rule, decision.evidence, budget)


def _gone_on(rule: str, evidence: Mapping[str, Any], budget: Budget) -> Decision:
    """Go on by this rule, unless a limit is used up."""
    exceeded = budget.exceeded()
    if exceeded is None:
        return Decision(stop=False, rule=rule, evidence=evidence)
    return Decision(
        stop=True,
        rule="budget",
        evidence={
            **evidence,
            "limit": exceeded.limit,
            "used": exceeded.used,
            "allowed": exceeded.allowed,
            "otherwise": rule,
        },
    )


def _evidence(call: Settled) -> dict[str, Any]:
    outcome = call.outcome
    if outcome is None:
        return {"call": call.call_id, "reason": None}
    return {
        "call": call.call_id,
        "reason": outcome.reason,
        "code": outcome.code,
        "stop": outcome.stop,
        "remaining": call.remaining,
    }
