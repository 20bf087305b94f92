"""Names of files: made by the server, harmless whatever they are made of."""

from __future__ import annotations

import unicodedata
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exports.names import LONGEST, name_clean, name_shown, name_stored


@pytest.mark.parametrize(
    ("text", "clean"),
    [
        ("Payments March 2026", "Payments March 2026"),
        ("../../etc/passwd", "etc passwd"),
        ("/etc/passwd", "etc passwd"),
        (r"..\..\windows\system32", "windows system32"),
        ("C:\\secret", "C secret"),
        ("a\x00b", "a b"),
        ('say "hi"\r\nSet-Cookie: x=1', "say hi Set-Cookie x=1"),
        ("con", "export con"),
        ("NUL.txt", "export NUL.txt"),
        ("lpt1", "export lpt1"),
        ("....", "export"),
        ("", "export"),
        ("   ", "export"),
        ("Zahlungen März Žluťoučký", "Zahlungen März Žluťoučký"),
        ("付款 三月", "付款 三月"),
        ("payments\u202egpj.csv", "payments gpj.csv"),
        ("x" * 300, "x" * LONGEST),
        (".hidden", "hidden"),
        ("a;rm -rf|b", "a rm -rf b"),
        ("%2e%2e%2fpasswd", "2e 2e 2fpasswd"),
    ],
)
def test_a_name_is_cleaned_and_keeps_its_letters(text: str, clean: str) -> None:
    assert name_clean(text) == clean


@given(st.text(max_size=400))
def test_no_text_makes_a_dangerous_name(text: str) -> None:
    name = name_clean(text)
    assert name
    assert len(name) <= LONGEST
    assert not set(name) & set('/\\:*?"<>|;%')
    assert ".." not in name
    assert not any(unicodedata.category(sign)[0] == "C" for sign in name)
    assert name == name.strip(" .")


def test_the_shown_name_says_what_it_is() -> None:
    assert name_shown("Payments March 2026 EUR", "EXP-AB12CD34", "csv") == (
        "Payments March 2026 EUR EXP-AB12CD34.csv"
    )


def test_the_stored_name_is_made_of_the_id_alone_and_differs_by_attempt() -> None:
    one = UUID("12345678123456781234567812345678")
    assert name_stored(one, 2, "csv") == "exports/12345678123456781234567812345678-2.csv"
