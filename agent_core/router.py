"""Decide, from the outcomes of one batch, whether the model is called again. One pure function."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from agent_core.budget import Budget
from agent_core.contract import Outcome

BATCH_RULES: Final = (
    "policy_block",
    "completed",
    "fatal",
    "budget",
    "unclear",
    "transient",
    "mixed",
    "continue",
)
"""The rules of `decide`, in the order in which they are tried."""

END_RULES: Final = ("answered", "cancelled", "failed", "parked")
"""How a run ends without a decision over a batch."""

STOP_RULES: Final = ("policy_block", "completed", "fatal", "budget")

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


def decide(batch: Sequence[Settled], budget: Budget) -> Decision:
    """Return the first rule that matches the whole batch.

    Raises:
        ValueError: the batch is empty; there is nothing to decide.
    """
    if not batch:
        raise ValueError("A decision needs at least one call.")
    rule = _stopping_rule(batch)
    evidence = {"calls": [_evidence(call) for call in batch]}
    if rule is not None:
        return Decision(stop=True, rule=rule, evidence=evidence)
    return _gone_on(_going_on_rule(batch), evidence, budget)


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


def _stopping_rule(batch: Sequence[Settled]) -> str | None:
    outcomes = [call.outcome for call in batch]
    if any(outcome and outcome.reason == "policy_block" for outcome in outcomes):
        return "policy_block"
    if all(
        call.outcome
        and call.outcome.reason == "completed"
        and call.outcome.stop
        and not call.remaining
        for call in batch
    ):
        return "completed"
    if all(outcome and outcome.reason == "fatal" for outcome in outcomes):
        return "fatal"
    return None


def _going_on_rule(batch: Sequence[Settled]) -> str:
    outcomes = [call.outcome for call in batch]
    known = [outcome for outcome in outcomes if outcome is not None]
    if len(known) < len(outcomes):
        return "unclear"
    reasons = {outcome.reason for outcome in known}
    if "transient" in reasons:
        return "transient"
    if "fatal" in reasons or len({outcome.stop for outcome in known}) > 1:
        return "mixed"
    return "continue"


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
