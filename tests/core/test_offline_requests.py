"""What the offline model understands, and what it must never take for an order."""

from __future__ import annotations

from typing import Any

import pytest

from agent_core.chat_models.needs import Need
from agent_core.chat_models.requests import needs_read

DEFAULTS = Need(kind="unknown", words="")


def _read(text: str) -> list[dict[str, Any]]:
    """Return what differs from an empty need, without the words."""
    fields = [name for name in Need.__slots__ if name not in ("kind", "words")]
    return [
        {"kind": need.kind}
        | {
            name: getattr(need, name)
            for name in fields
            if getattr(need, name) != getattr(DEFAULTS, name)
        }
        for need in needs_read(text)
    ]


ONE = [
    ("find good-card@example.com", {"kind": "find", "key": "good-card@example.com"}),
    ("good-card@example.com", {"kind": "find", "key": "good-card@example.com"}),
    ("Could you look up Maria Lopez, please?", {"kind": "find", "key": "Maria Lopez"}),
    ("who is Maria Lopez?", {"kind": "find", "key": "Maria Lopez"}),
    ("find the customer named José Núñez", {"kind": "find", "key": "José Núñez"}),
    ("find #W2378156", {"kind": "find", "key": "#W2378156"}),
    ("find CUS-ab12", {"kind": "find", "key": "CUS-AB12"}),
    ("what did a@b.com pay last month", {"kind": "paid", "key": "a@b.com", "period": "last month"}),
    (
        "What did Maria Lopez pay in March?",
        {"kind": "paid", "key": "Maria Lopez", "period": "March"},
    ),
    (
        "payments of a@b.com in March 2026",
        {"kind": "paid", "key": "a@b.com", "period": "March 2026"},
    ),
    ("what did April May pay?", {"kind": "paid", "key": "April May"}),
    ("Maria Lopez's payments", {"kind": "paid", "key": "Maria Lopez"}),
    ("charge the open invoice of a@b.com", {"kind": "charge", "key": "a@b.com"}),
    ("for a@b.com, please charge the invoice", {"kind": "charge", "key": "a@b.com"}),
    ("charge INV-7K on the visa", {"kind": "charge", "reference": "INV-7K", "method": "visa"}),
    ("charge a@b.com 25.00", {"kind": "charge", "key": "a@b.com", "amount": "25.00"}),
    ("refund PAY-1", {"kind": "refund", "reference": "PAY-1"}),
    ("PAY-1: refund €5,00", {"kind": "refund", "reference": "PAY-1", "amount": "€5,00"}),
    ("refund 1e2 of PAY-1", {"kind": "refund", "reference": "PAY-1", "amount": "1e2"}),
    ("refund 25,000 of PAY-1", {"kind": "refund", "reference": "PAY-1", "amount": "25,000"}),
    (
        "refund 5 euros of a@b.com's last payment because it came late and broken",
        {
            "kind": "refund",
            "key": "a@b.com",
            "newest": True,
            "amount": "5 EUR",
            "reason": "it came late and broken",
        },
    ),
    (
        "please give 500 yen back for the last payment of Yuki Sato",
        {"kind": "refund", "key": "Yuki Sato", "newest": True, "amount": "500 JPY"},
    ),
    ("refund order #W2378156", {"kind": "refund", "key": "#W2378156"}),
    (
        "refund PAY-1 for a late parcel",
        {"kind": "refund", "reference": "PAY-1", "reason": "a late parcel"},
    ),
    ("refund half of PAY-1", {"kind": "refund", "reference": "PAY-1", "part": True}),
    ("refund it", {"kind": "refund"}),
    ("open a ticket", {"kind": "ticket"}),
    (
        "open a ticket about a lost parcel for PAY-1",
        {"kind": "ticket", "about": "a lost parcel for PAY-1", "reference": "PAY-1"},
    ),
    (
        'create a ticket "wrong size; and then the wrong colour"',
        {"kind": "ticket", "about": "wrong size; and then the wrong colour"},
    ),
    (
        "open a ticket: charged twice. He wants a refund.",
        {"kind": "ticket", "about": "charged twice. He wants a refund"},
    ),
    ("search for lost parcels", {"kind": "search", "about": "lost parcels"}),
    ("help with chargebacks", {"kind": "search", "about": "chargebacks"}),
    (
        "export payments of last month as CSV",
        {"kind": "export", "period": "last month"},
    ),
    (
        "please download the refunds from 2026-01-01 to 2026-03-31 in USD",
        {
            "kind": "export",
            "what": "refunds",
            "period": "2026-01-01 to 2026-03-31",
            "currency": "USD",
        },
    ),
    (
        "export payments for Q1 2026 as xlsx",
        {"kind": "export", "period": "Q1 2026", "format": "xlsx"},
    ),
    ("hello", {"kind": "greeting"}),
    ("What is the status?", {"kind": "status"}),
    ("did the refund go through?", {"kind": "status"}),
    ("sing me a song", {"kind": "unknown"}),
]


@pytest.mark.parametrize(("text", "need"), ONE, ids=[text for text, _need in ONE])
def test_one_request_is_read(text: str, need: dict[str, Any]) -> None:
    assert _read(text) == [need]


SEVERAL = [
    (
        "refund 5.00 of PAY-1 and 500.00 of PAY-2",
        [
            {"kind": "refund", "reference": "PAY-1", "amount": "5.00"},
            {"kind": "refund", "reference": "PAY-2", "amount": "500.00"},
        ],
    ),
    (
        "refund PAY-1, PAY-2 and PAY-3",
        [{"kind": "refund", "reference": f"PAY-{number}"} for number in (1, 2, 3)],
    ),
    (
        "charge the invoice and open a ticket",
        [{"kind": "charge"}, {"kind": "ticket"}],
    ),
    (
        "charge INV-1; then refund PAY-1\nexport payments of March as CSV",
        [
            {"kind": "charge", "reference": "INV-1"},
            {"kind": "refund", "reference": "PAY-1"},
            {"kind": "export", "period": "March"},
        ],
    ),
    (
        "Refund 5.00 of PAY-1. Also export the payments of last month as CSV, please.",
        [
            {"kind": "refund", "reference": "PAY-1", "amount": "5.00"},
            {"kind": "export", "period": "last month"},
        ],
    ),
    (
        "do not charge the invoice, but refund PAY-1",
        [{"kind": "denied"}, {"kind": "refund", "reference": "PAY-1"}],
    ),
    (
        "hi, find a@b.com and c@d.com",
        [{"kind": "find", "key": key} for key in ("a@b.com", "c@d.com")],
    ),
    ("refund PAY-1 and refund PAY-1", [{"kind": "refund", "reference": "PAY-1"}]),
]


@pytest.mark.parametrize(("text", "needs"), SEVERAL, ids=[text for text, _needs in SEVERAL])
def test_several_requests_in_one_message_are_told_apart(
    text: str, needs: list[dict[str, Any]]
) -> None:
    assert _read(text) == needs


@pytest.mark.parametrize(
    "text",
    [
        "don't refund PAY-1",
        "please do not charge INV-1",
        "never refund PAY-1 again",
        "cancel the refund of PAY-1",
        "the customer does not want a refund",
        "can I refund PAY-1?",
        "was PAY-1 refunded?",
        "should we refund PAY-1",
        "how do I refund a payment?",
        "what is the refund policy?",
        "did you charge INV-1?",
        "status of the refund PAY-1",
        "search the articles for a refund after 30 days",
        "the charge of a@b.com looks wrong",
        "who is in charge of refunds?",
        "why was INV-1 charged?",
        "what happens if I refund PAY-1?",
        "is a refund of PAY-1 possible?",
        "are there fees when we charge a card?",
        "I refunded PAY-1 yesterday",
        "refund of PAY-1 possible?",
        "PAY-1: the customer wants a refund, do they?",
        "open a ticket about the refund of PAY-1 and the double charge",
    ],
)
def test_a_question_or_a_denial_never_moves_money(text: str) -> None:
    assert not {need.kind for need in needs_read(text)} & {"refund", "charge"}
