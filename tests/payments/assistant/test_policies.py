"""The decision tables of refunds and charges, at each boundary. Pure: no database."""

from typing import Any

import pytest

from agent_core.policy import Proposal, Verdict, verdict_of
from payments.policies import CHARGE_POLICIES, REFUND_POLICIES

RIGHTS = frozenset({"payments.request_refund", "payments.request_charge"})
REFUND: dict[str, Any] = {
    "payment": "PAY-1",
    "currency": "EUR",
    "paused": False,
    "disputed": False,
    "too_old": False,
    "refunded_as": "",
    "wanted_minor": 500,
    "left_minor": 4000,
    "waiting_minor": 0,
    "beside_minor": 0,
    "begun": False,
    "attaches": False,
    "today_minor": 0,
    "daily_limit_minor": 50_000,
}
CHARGE: dict[str, Any] = {
    "invoice": "INV-1",
    "currency": "EUR",
    "amount_minor": 2500,
    "open": True,
    "begun": False,
    "attaches": False,
    "named": True,
    "review_above_minor": 200_000,
}


def refund(rights: frozenset[str] = RIGHTS, **facts: Any) -> Verdict:
    """Return the verdict on a refund with these facts."""
    asked = Proposal(tool="refund_request", arguments={}, rights=rights, customer_id=None)
    return verdict_of(REFUND_POLICIES, asked, {**REFUND, **facts})


def charge(rights: frozenset[str] = RIGHTS, **facts: Any) -> Verdict:
    """Return the verdict on a charge with these facts."""
    asked = Proposal(tool="charge_invoice", arguments={}, rights=rights, customer_id=None)
    return verdict_of(CHARGE_POLICIES, asked, {**CHARGE, **facts})


@pytest.mark.parametrize(
    ("facts", "kind", "rule"),
    [
        ({}, "review", "refund.always"),
        ({"wanted_minor": 1}, "review", "refund.always"),
        ({"wanted_minor": 0}, "block", "refund.above_left"),
        ({"wanted_minor": -1}, "block", "refund.above_left"),
        ({"wanted_minor": 4000}, "review", "refund.always"),
        ({"wanted_minor": 4001}, "block", "refund.above_left"),
        ({"wanted_minor": 0, "left_minor": 0}, "block", "refund.above_left"),
        ({"disputed": True}, "block", "payment.disputed"),
        ({"too_old": True}, "block", "refund.expired"),
        ({"refunded_as": "REF-1", "left_minor": 0}, "block", "refund.already_refunded"),
        ({"refunded_as": "REF-1", "too_old": True}, "block", "refund.already_refunded"),
        ({"disputed": True, "wanted_minor": 4001}, "block", "payment.disputed"),
        ({"today_minor": 49_500}, "review", "refund.always"),
        ({"today_minor": 49_501}, "block", "refund.daily_limit"),
        ({"wanted_minor": 50_000, "left_minor": 90_000}, "review", "refund.always"),
        ({"wanted_minor": 50_001, "left_minor": 90_000}, "block", "refund.daily_limit"),
        ({"wanted_minor": 90_001, "left_minor": 90_000}, "block", "refund.above_left"),
        ({"today_minor": 10**9, "daily_limit_minor": None}, "review", "refund.always"),
        ({"today_minor": 0, "daily_limit_minor": 0}, "block", "refund.daily_limit"),
        # On its way already: a replay needs its approval, a repeat sends nothing new.
        ({"begun": True, "left_minor": 0}, "review", "refund.always"),
        ({"attaches": True, "left_minor": 0}, "allow", "refund.attaches"),
        ({"attaches": True, "begun": True}, "review", "refund.always"),
    ],
)
def test_a_refund_is_reviewed_or_blocked_at_each_boundary(
    facts: dict[str, Any], kind: str, rule: str
) -> None:
    verdict = refund(**facts)
    assert (verdict.kind, verdict.rule) == (kind, rule)


@pytest.mark.parametrize(
    ("facts", "kind", "rule"),
    [
        ({}, "allow", "charge.named"),
        ({"named": False}, "review", "charge.unnamed"),
        ({"amount_minor": 200_000}, "allow", "charge.named"),
        ({"amount_minor": 200_001}, "review", "charge.above"),
        ({"amount_minor": 200_001, "named": False}, "review", "charge.above"),
        ({"review_above_minor": None}, "review", "charge.above"),
        ({"review_above_minor": 0}, "review", "charge.above"),
        ({"open": False, "named": False}, "allow", "charge.not_open"),
        ({"attaches": True, "amount_minor": 200_001}, "allow", "charge.attaches"),
        ({"begun": True, "amount_minor": 200_001}, "allow", "charge.attaches"),
    ],
)
def test_a_charge_is_allowed_or_reviewed_at_each_boundary(
    facts: dict[str, Any], kind: str, rule: str
) -> None:
    verdict = charge(**facts)
    assert (verdict.kind, verdict.rule) == (kind, rule)


@pytest.mark.parametrize("facts", [{}, {"attaches": True}, {"disputed": True}])
def test_without_the_right_nothing_else_is_looked_at(facts: dict[str, Any]) -> None:
    other = frozenset({"payments.view_customer", "payments.request_charge"})
    assert refund(other, **facts).rule == "right.missing"
    assert charge(frozenset({"payments.request_refund"}), attaches=True).rule == "right.missing"


def test_what_has_begun_passes_without_the_right_and_still_shows_its_approval() -> None:
    begun = {"begun": True, "disputed": True, "left_minor": 0, "today_minor": 10**9}
    verdict = refund(frozenset(), **begun)
    assert (verdict.kind, verdict.rule) == ("review", "refund.always")
    verdict = charge(frozenset(), begun=True, open=False, amount_minor=200_001)
    assert (verdict.kind, verdict.rule) == ("allow", "charge.attaches")


def test_a_block_names_the_sum_that_is_still_possible() -> None:
    above = refund(wanted_minor=4001)
    assert above.text == (
        "40.01 EUR is more than is left on PAY-1: 40.00 EUR can still be refunded. "
        "Nothing was refunded."
    )
    assert above.data == {"left_minor": 4000, "wanted_minor": 4001}
    waits = refund(wanted_minor=2000, left_minor=1500, waiting_minor=2500)
    assert waits.text == (
        "25.00 EUR of PAY-1 already waits for a decision; beside it 15.00 EUR can still be "
        "refunded. Nothing was refunded now."
    )
    limit = refund(today_minor=49_600)
    assert limit.text == (
        "With 5.00 EUR more, your refunds today would be above your daily limit of 500.00 EUR. "
        "4.00 EUR is still free today. Nothing was refunded."
    )
    assert limit.data == {"limit_minor": 50_000, "today_minor": 49_600, "room_minor": 400}
