"""What a currency is: ISO 4217 for its decimals, CLDR for its signs."""

from __future__ import annotations

import pytest
from babel import Locale
from babel.numbers import get_currency_precision

from payments.currencies import (
    EXPONENTS,
    counts_in_lakhs,
    currency_code,
    decimal_mark,
    locale_of,
    symbol_fits,
)

# CLDR counts the decimals that shops still use; banks move what ISO 4217 says.
ONE_DINAR = {"IQD": (3, 0)}
WHOLE_IN_SHOPS = "AFN ALL COP HUF IDR IRR KPW LAK LBP MGA MMK SOS SYP YER"
IN_SHOPS = dict.fromkeys(WHOLE_IN_SHOPS.split(), (2, 0)) | ONE_DINAR


def test_decimals_are_those_of_cldr_but_for_the_known_differences() -> None:
    found = {code: (minor, get_currency_precision(code)) for code, minor in EXPONENTS.items()}
    assert {code: both for code, both in found.items() if both[0] != both[1]} == IN_SHOPS


def test_every_currency_has_a_name_in_every_language_of_the_desk() -> None:
    for language in ("en", "de", "ru"):
        assert set(EXPONENTS) <= set(Locale.parse(language).currencies)


@pytest.mark.parametrize(
    ("mark", "currency", "fits"),
    [
        ("€", "EUR", True),
        ("eur", "EUR", True),
        ("$", "USD", True),
        ("$", "TWD", True),
        ("CA$", "CAD", True),
        ("CA$", "USD", False),
        ("US$", "CAD", False),
        ("$", "EUR", False),
        ("¥", "JPY", True),
        ("￥", "CNY", True),
        ("£", "EUR", False),
        ("kr", "NOK", True),
        ("kr", "EUR", False),
        ("₽", "RUB", True),
        ("", "EUR", False),
        ("-", "EUR", False),
    ],
)
def test_a_sign_stands_for_the_currencies_that_use_it(mark: str, currency: str, fits: bool) -> None:
    assert symbol_fits(mark, currency) is fits


@pytest.mark.parametrize(
    ("text", "code"),
    [("€", "EUR"), ("£", "GBP"), ("eur", "EUR"), ("₹", "INR"), ("$", ""), ("¥", ""), ("euro", "")],
)
def test_a_sign_names_a_currency_when_it_is_that_ones_alone(text: str, code: str) -> None:
    assert currency_code(text) == code


def test_languages_are_found_by_code_and_unknown_ones_are_english() -> None:
    assert [decimal_mark(each) for each in ("en", "de", "ru", "pt-br", "de-ch")] == [*".,,,."]
    assert decimal_mark("ar") == decimal_mark("fa") == "."
    for odd in ("", "xx-yy", "../etc", "zz-zz", "e" * 300):
        assert locale_of(odd).language == "en"


def test_lakhs_are_counted_where_they_are_at_home() -> None:
    lakhs = {code for code in EXPONENTS if counts_in_lakhs(code)}
    assert {"INR", "BDT", "NPR", "BTN"} <= lakhs
    assert not lakhs & {"EUR", "USD", "GBP", "JPY", "KWD", "CNY"}
