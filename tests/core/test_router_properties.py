"""The router against an oracle that was written from the design's table alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

from hypothesis import given
from hypothesis import strategies as st

from agent_core.budget import Budget, Limits
from agent_core.contract import Outcome
from agent_core.router import BATCH_RULES, STOP_RULES, Settled, decide
from tests.core.strategies import batches, budgets, settled

PLENTY = Budget()


def _letter(call: Settled) -> str:
    """Name the class of one call: the oracle decides over these letters only."""
    outcome = call.outcome
    if outcome is None:
        return "U"
    if outcome.reason == "completed":
        if not outcome.stop:
            return "L"
        return "R" if call.remaining else "C"
    return {"transient": "T", "fatal": "F", "policy_block": "P"}[outcome.reason]


def _oracle(batch: Sequence[Settled], used_up: bool) -> tuple[bool, str]:
    letters = {_letter(call) for call in batch}
    if "P" in letters:
        return True, "policy_block"
    if letters == {"C"}:
        return True, "completed"
    if letters == {"F"}:
        return True, "fatal"
    if used_up:
        return True, "budget"
    for letter, rule in (("U", "unclear"), ("T", "transient"), ("F", "mixed")):
        if letter in letters:
            return False, rule
    return False, "mixed" if "L" in letters and letters != {"L"} else "continue"


def _used_up(budget: Budget) -> bool:
    limits, usage = budget.limits, budget.usage
    return (
        usage.model_calls >= limits.model_calls
        or usage.tool_calls >= limits.tool_calls
        or usage.tokens >= limits.tokens
        or usage.seconds >= limits.seconds
        or usage.tries >= limits.tries
    )


@given(batches, budgets)
def test_the_router_agrees_with_the_table(batch: list[Settled], budget: Budget) -> None:
    decision = decide(batch, budget)
    assert (decision.stop, decision.rule) == _oracle(batch, _used_up(budget))


@given(batches, budgets, st.randoms(use_true_random=False))
def test_no_order_of_the_calls_matters(
    batch: list[Settled], budget: Budget, random: Random
) -> None:
    turned = list(batch)
    random.shuffle(turned)
    before, after = decide(batch, budget), decide(turned, budget)
    assert (before.stop, before.rule) == (after.stop, after.rule)


@given(batches, budgets)
def test_a_decision_stops_exactly_by_a_stopping_rule(batch: list[Settled], budget: Budget) -> None:
    decision = decide(batch, budget)
    assert decision.rule in BATCH_RULES
    assert decision.stop == (decision.rule in STOP_RULES)


@given(batches, budgets)
def test_the_same_batch_is_decided_the_same_and_every_call_is_in_the_evidence(
    batch: list[Settled], budget: Budget
) -> None:
    first, again = decide(batch, budget), decide(batch, budget)
    assert first == again
    assert [call["call"] for call in first.evidence["calls"]] == [call.call_id for call in batch]


@given(batches, budgets)
def test_something_remaining_never_causes_a_stop_and_softens_only_completed(
    batch: list[Settled], budget: Budget
) -> None:
    without = decide([replace(call, remaining=False) for call in batch], budget)
    with_all = decide([replace(call, remaining=True) for call in batch], budget)
    if without.rule == "completed":
        assert with_all.rule in ("continue", "budget")
    else:
        assert (with_all.stop, with_all.rule) == (without.stop, without.rule)


@given(batches, settled)
def test_a_policy_block_anywhere_beats_everything(batch: list[Settled], extra: Settled) -> None:
    blocked = replace(extra, outcome=Outcome("policy_block", True, "rule.says_no"))
    assert decide([*batch, blocked], PLENTY).rule == "policy_block"


@given(batches)
def test_one_call_without_an_outcome_keeps_the_turn_from_counting_as_completed(
    batch: list[Settled],
) -> None:
    unclear = Settled(call_id="unclear", outcome=None)
    assert decide([*batch, unclear], PLENTY).rule in ("policy_block", "unclear")


@given(batches)
def test_only_a_budget_separates_a_rich_run_from_a_poor_one(batch: list[Settled]) -> None:
    rich = decide(batch, PLENTY)
    poor = decide(batch, Budget(limits=Limits(model_calls=0)))
    if rich.stop:
        assert (poor.stop, poor.rule) == (True, rich.rule)
    else:
        assert (poor.rule, poor.evidence["otherwise"]) == ("budget", rich.rule)
