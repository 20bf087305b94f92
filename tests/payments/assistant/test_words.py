"""What counts as standing in the staff member's own words. Pure text."""

import pytest

from payments.words import amount_in_words, key_in_words, keys_in


@pytest.mark.parametrize(
    ("key", "message", "stands"),
    [
        ("INV-1001", "please charge inv-1001.", True),
        ("INV-1001", "please charge INV-10011", False),
        ("INV-1001", "please charge INV-1001-2", False),
        ("PAY-1", "refund XPAY-1", False),
        ("good-card@example.com", "Find Good-Card@Example.com, please", True),
        ("card@example.com", "find good-card@example.com", False),
        ("good-card@example.co", "find good-card@example.com", False),
        ("Ana Silva", "what about ana   silva's last order?", True),
        ("Ana", "we talked about bananas", False),
        ("田中さくら", "田中さくらの支払いを見て", True),
        ("Ольга", "найди Ольга Иванова", True),
        ("Ольга", "найди Ольгану", False),
        ("#W2611340", "refund order #W2611340", True),
        ("", "anything", False),
        ("a", "a", False),
    ],
)
def test_a_key_stands_as_a_word_of_its_own(key: str, message: str, stands: bool) -> None:
    assert key_in_words(key, [message]) is stands


@pytest.mark.parametrize(
    ("message", "stands"),
    [
        ("charge the 25.00 EUR", True),
        ("charge 25", True),
        ("charge €25,00 please.", True),
        ("charge 25.00.", True),
        ("charge 250", False),
        ("charge 125.00", False),
        ("invoice INV-25", False),
        ("on 2026-25-25", False),
        ("the card 25/27", False),
        ("at 25:00", False),
        ("2500", False),
        ("списать 25,00 €", True),
        ("خصم ٢٥٫٠٠ من فضلك", True),
        ("خصم ١٢٥٫٠٠", False),
        ("charge 1 025", False),
        ("charge 25 025,00 EUR", False),
        ("charge 1\u00a0025,00 EUR", False),
        ("charge -25", False),
    ],
)
def test_an_amount_stands_on_its_own_and_exactly(message: str, stands: bool) -> None:
    assert amount_in_words(2500, "EUR", [message]) is stands


def test_groups_of_three_are_one_amount() -> None:
    for text in ("списать 1\u00a0234,56 RUB", "charge 1 234,56", "charge 1,234.56", "1.234,56"):
        assert amount_in_words(123_456, "RUB", [text]) is True
        assert amount_in_words(100, "RUB", [text]) is False


def test_yen_are_read_without_decimals() -> None:
    assert amount_in_words(9899, "JPY", ["charge 9,899"]) is True
    assert amount_in_words(989_900, "JPY", ["charge 9,899"]) is False


def test_keys_are_found_once_each_and_in_one_spelling() -> None:
    words = ["Refund pay-10011 and #w2611340 of Good-Card@example.com.", "PAY-10011, W2611340!"]
    assert keys_in(words) == ("PAY-10011", "W2611340", "good-card@example.com")
