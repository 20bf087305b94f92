"""The router's table, row by row: which rule speaks for a batch, and whether the turn ends."""

from __future__ import annotations

import pytest

from agent_core.budget import Budget, Limits, Usage
from agent_core.contract import Outcome, completed, fatal, outcome_read, policy_block, transient
from agent_core.router import (
    BATCH_RULES,
    END_RULES,
    STOP_RULES,
    Decision,
    Settled,
    decide,
)

PLENTY = Budget()
USED_UP = Budget(limits=Limits(model_calls=3), usage=Usage(model_calls=3))

OUTCOMES = {
    "completed": outcome_read(completed("refund.completed", stop=True)),
    "look-up": outcome_read(completed("customer.found", stop=False)),
    "transient": outcome_read(transient("charge.being_checked")),
    "fatal": outcome_read(fatal("charge.declined")),
    "policy_block": outcome_read(policy_block("payment.disputed")),
    "none": None,
}


def _decided(batch: str, budget: Budget = PLENTY) -> Decision:
    """Decide over outcomes named in one text; a star stands for something remaining."""
    settled = [
        Settled(
            call_id=f"call-{number}",
            outcome=OUTCOMES[name.rstrip("*")],
            remaining=name.endswith("*"),
        )
        for number, name in enumerate(batch.split(" + "))
    ]
    return decide(settled, budget)


TABLE = [
    ("completed", True, "completed"),
    ("transient", False, "transient"),
    ("fatal", True, "fatal"),
    ("policy_block", True, "policy_block"),
    ("none", False, "unclear"),
    ("look-up", False, "continue"),
    ("completed*", False, "continue"),
    ("fatal*", True, "fatal"),
    ("policy_block*", True, "policy_block"),
    ("transient*", False, "transient"),
    ("completed + transient", False, "transient"),
    ("completed + policy_block", True, "policy_block"),
    ("completed + fatal", False, "mixed"),
    ("completed + look-up", False, "mixed"),
    ("completed + none", False, "unclear"),
    ("completed + completed", True, "completed"),
    ("completed + completed*", False, "continue"),
    ("look-up + look-up", False, "continue"),
    ("look-up + fatal", False, "mixed"),
    ("look-up + transient", False, "transient"),
    ("fatal + fatal", True, "fatal"),
    ("fatal + transient", False, "transient"),
    ("fatal + none", False, "unclear"),
    ("none + transient", False, "unclear"),
    ("none + policy_block", True, "policy_block"),
    ("transient + policy_block + completed", True, "policy_block"),
    ("completed + fatal + transient", False, "transient"),
]


@pytest.mark.parametrize(("batch", "stop", "rule"), TABLE, ids=[row[0] for row in TABLE])
def test_each_batch_has_its_rule(batch: str, stop: bool, rule: str) -> None:
    decision = _decided(batch)
    assert (decision.stop, decision.rule) == (stop, rule)


@pytest.mark.parametrize(("batch", "stop", "rule"), TABLE, ids=[row[0] for row in TABLE])
def test_the_order_of_the_calls_changes_nothing(batch: str, stop: bool, rule: str) -> None:
    turned = " + ".join(reversed(batch.split(" + ")))
    assert (_decided(turned).stop, _decided(turned).rule) == (stop, rule)


@pytest.mark.parametrize(("batch", "stop", "rule"), TABLE, ids=[row[0] for row in TABLE])
def test_a_used_up_budget_ends_whatever_would_go_on(batch: str, stop: bool, rule: str) -> None:
    decision = _decided(batch, USED_UP)
    assert decision.stop
    if stop:
        assert decision.rule == rule
        assert "limit" not in decision.evidence
    else:
        assert decision.rule == "budget"
        assert {k: decision.evidence[k] for k in ("limit", "used", "allowed", "otherwise")} == {
            "limit": "model_calls",
            "used": 3,
            "allowed": 3,
            "otherwise": rule,
        }


def test_the_evidence_names_every_call_with_its_outcome() -> None:
    assert _decided("completed* + none").evidence == {
        "calls": [
            {
                "call": "call-0",
                "reason": "completed",
                "code": "refund.completed",
                "stop": True,
                "remaining": True,
            },
            {"call": "call-1", "reason": None},
        ]
    }


def test_an_empty_batch_is_nothing_to_decide() -> None:
    with pytest.raises(ValueError, match="at least one call"):
        decide([], PLENTY)


def test_a_transient_that_says_stop_does_not_stop() -> None:
    """The flag belongs to a completed call; a foreign artifact may carry it elsewhere."""
    odd = Outcome("transient", True, "odd.stop")
    assert decide([Settled(call_id="a", outcome=odd)], PLENTY).rule == "transient"


def test_the_names_of_the_rules_are_data_and_stay() -> None:
    assert BATCH_RULES == (
        "policy_block",
        "completed",
        "fatal",
        "budget",
        "unclear",
        "transient",
        "mixed",
        "continue",
    )
    assert END_RULES == ("answered", "cancelled", "failed", "parked")
    assert STOP_RULES == ("policy_block", "completed", "fatal", "budget")
