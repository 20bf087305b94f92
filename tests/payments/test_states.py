"""The tables of the ledger's states, and what an approval covers."""

from __future__ import annotations

from uuid import UUID

import pytest
from django.utils import timezone

from payments.retries import KEY_LIFE, LONGEST_WAIT, key_outlived, next_try
from payments.states import (
    DISPUTE_MOVES,
    DISPUTE_TERMINAL,
    INTENT_MOVES,
    INTENT_TERMINAL,
    INVOICE_MOVES,
    INVOICE_TERMINAL,
    REFUND_COUNTS,
    REFUND_MOVES,
    REFUND_TERMINAL,
    DisputeState,
    IntentState,
    InvoiceState,
    RefundState,
    states_before,
    subject_hash,
)

PAYMENT = UUID("11111111-1111-4111-8111-111111111111")
OTHER = UUID("22222222-2222-4222-8222-222222222222")


def test_every_state_has_its_row_and_only_ends_have_none_after() -> None:
    for moves, states in (
        (INTENT_MOVES, IntentState),
        (REFUND_MOVES, RefundState),
        (INVOICE_MOVES, InvoiceState),
        (DISPUTE_MOVES, DisputeState),
    ):
        assert set(moves) == set(states)
    assert {"succeeded", "failed"} == INTENT_TERMINAL
    # A bank may send back days later what had arrived.
    assert {"failed"} == REFUND_TERMINAL
    assert {"won", "lost"} == DISPUTE_TERMINAL
    assert {"paid", "void"} == INVOICE_TERMINAL


def test_what_is_settled_never_moves_again() -> None:
    assert states_before(INTENT_MOVES, IntentState.SUCCEEDED) == ["open"]
    assert states_before(INTENT_MOVES, IntentState.OPEN) == []
    assert states_before(REFUND_MOVES, RefundState.SUCCEEDED) == ["sending", "unknown", "accepted"]
    assert states_before(REFUND_MOVES, RefundState.ACCEPTED) == ["sending", "unknown"]
    assert "succeeded" in states_before(REFUND_MOVES, RefundState.FAILED)
    assert states_before(REFUND_MOVES, RefundState.UNKNOWN) == ["sending"]


def test_money_on_its_way_counts_as_gone() -> None:
    assert {"sending", "unknown", "accepted", "succeeded"} == REFUND_COUNTS


def test_an_approval_covers_exactly_one_thing() -> None:
    this = ("refund", PAYMENT, 6000, "EUR", 1)
    others = [
        ("charge", PAYMENT, 6000, "EUR", 1),
        ("refund", OTHER, 6000, "EUR", 1),
        ("refund", PAYMENT, 6001, "EUR", 1),
        ("refund", PAYMENT, 6000, "USD", 1),
        ("refund", PAYMENT, 6000, "EUR", 2),
    ]
    assert len({subject_hash(*subject) for subject in [this, *others]}) == 6
    # Stored with reviews that wait over a deployment: the value is data.
    assert subject_hash(*this) == (
        "f05eebe6608673b1d3f174eb35559de424ce7280767fc14e306f53097d22b4cd"
    )


@pytest.mark.parametrize(
    ("tries", "seconds"), [(0, 2), (1, 2), (2, 4), (3, 8), (9, 300), (99, 300)]
)
def test_the_processor_is_asked_soon_at_first_and_rarely_later(tries: int, seconds: int) -> None:
    now = timezone.now()
    assert (next_try(tries, now, 2.0) - now).total_seconds() == seconds
    assert LONGEST_WAIT.total_seconds() == 300


def test_a_key_lives_for_a_day() -> None:
    now = timezone.now()
    assert KEY_LIFE.total_seconds() == 86_400
    assert not key_outlived(now - KEY_LIFE * 0.999, now)
    assert key_outlived(now - KEY_LIFE, now)
