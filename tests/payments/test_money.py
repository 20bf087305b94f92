"""Amounts come in as people and models write them, and go out alike everywhere."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable
from itertools import product

import pytest
from babel.localedata import locale_identifiers
from django.utils import translation
from hypothesis import example, given, settings
from hypothesis import strategies as st

from agent_core.polish import facts_survive
from payments.currencies import EXPONENTS
from payments.money import (
    LARGEST_MINOR,
    Money,
    MoneyAmbiguous,
    MoneyInvalid,
    money_figure,
    money_format,
    money_parse,
    money_plain,
)

LANGUAGES = sorted(locale_identifiers())
CODES = sorted(EXPONENTS)
currencies = st.sampled_from(CODES)
languages = st.sampled_from(["en", "de", "ru"]) | st.sampled_from(LANGUAGES)
amounts = st.integers(min_value=0, max_value=LARGEST_MINOR)


@settings(max_examples=500)
@given(amount=amounts, currency=currencies, language=languages)
@example(amount=25_005, currency="KWD", language="de")
def test_what_is_written_is_read_back(amount: int, currency: str, language: str) -> None:
    money = Money(amount, currency)
    text = money_format(money, language)
    assert money_parse(text, currency, language) == amount
    assert money_parse(money_figure(money, language), currency, language) == amount
    # The other way about: what was read is written as it was.
    assert money_format(Money(money_parse(text, currency, language), currency), language) == text


def _all_read_back(codes: Iterable[str], languages: Iterable[str], minors: Iterable[int]) -> None:
    for currency, language, minor in product(codes, languages, minors):
        text = money_format(Money(minor, currency), language)
        assert money_parse(text, currency, language) == minor, (text, language)


SIZES = (0, 5, 500, 25_005, 1_234_567, LARGEST_MINOR)


def test_every_currency_and_every_language_is_read_back() -> None:
    assert len(CODES) == 156
    assert len(LANGUAGES) > 1000
    _all_read_back(CODES, ("en", "de", "ru", "ar", "hi"), SIZES)
    _all_read_back(("JPY", "EUR", "KWD"), LANGUAGES, (5, 25_005))


@pytest.mark.full
def test_every_currency_is_read_back_in_every_language() -> None:
    _all_read_back(CODES, LANGUAGES, SIZES[1:4])


@given(amount=amounts, currency=currencies, language=languages)
def test_a_reader_of_no_language_takes_what_is_shown_for_nothing_else(
    amount: int, currency: str, language: str
) -> None:
    text = money_format(Money(amount, currency), language)
    try:
        readings: tuple[int, ...] = (money_parse(text, currency),)
    except MoneyAmbiguous as question:
        readings = question.readings
    assert amount in readings
    # Three decimals after a comma are asked about, and nothing but these.
    assert len(readings) == 1 or EXPONENTS[currency] == 3


@given(amount=amounts, currency=currencies)
def test_what_a_program_is_given_is_read_by_everyone(amount: int, currency: str) -> None:
    plain = money_plain(Money(amount, currency))
    assert plain.replace(".", "").isdecimal()
    for language in (None, "en", "ar"):
        assert money_parse(plain, currency, language) == amount
    for language in ("de", "ru"):
        # In a form of theirs, a point before three digits may mean thousands.
        assert EXPONENTS[currency] == 3 or money_parse(plain, currency, language) == amount


@given(amount=amounts, other=amounts, currency=currencies, language=languages)
def test_a_rewrite_keeps_every_amount_in_every_language(
    amount: int, other: int, currency: str, language: str
) -> None:
    one, two = (money_format(Money(minor, currency), language) for minor in (amount, other))
    assert facts_survive(f"{one} was refunded.", f"Good news: **{one}** was refunded.")
    assert facts_survive(f"{one} was refunded.", f"{two} was refunded.") is (one == two)


@settings(max_examples=1000)
@given(
    text=st.text(alphabet="0123456789.,' -+eE€$¥%()٣٫٬۵५５\u00a0", max_size=20), currency=currencies
)
def test_no_reading_changes_a_digit(text: str, currency: str) -> None:
    try:
        amount = money_parse(text, currency)
    except MoneyInvalid:
        return
    assert 0 <= amount <= LARGEST_MINOR
    # No reading adds or drops a digit: but for zeros at both ends they are the text's.
    shown = "".join(str(unicodedata.decimal(sign)) for sign in text if sign.isdecimal())
    assert str(amount).strip("0") == shown.strip("0")


def test_every_number_of_decimals_is_among_the_currencies() -> None:
    assert {EXPONENTS["JPY"], EXPONENTS["EUR"], EXPONENTS["KWD"]} == {0, 2, 3}
    assert len(EXPONENTS) == 156


@pytest.mark.parametrize(
    ("text", "currency", "minor"),
    [
        ("9899", "JPY", 9899),
        ("9,899", "JPY", 9899),
        ("500", "JPY", 500),
        ("19.99", "USD", 1999),
        ("8.29", "USD", 829),
        ("0.29", "USD", 29),
        ("$8.29", "USD", 829),
        ("25", "EUR", 2500),
        ("25.00", "EUR", 2500),
        ("25,00", "EUR", 2500),
        ("25.5", "EUR", 2550),
        ("€25", "EUR", 2500),
        ("25 €", "EUR", 2500),
        ("EUR 25", "EUR", 2500),
        ("25 eur", "EUR", 2500),
        ("1,234.56", "EUR", 123456),
        ("1.234,56", "EUR", 123456),
        ("1 234,56", "EUR", 123456),
        ("1'234.56", "CHF", 123456),
        ("1,234,567", "EUR", 123456700),
        ("1.005", "KWD", 1005),
        ("25.000", "KWD", 25000),
        ("25,000", "JPY", 25000),
        ("25,00", "KWD", 25000),
        ("٢٥", "EUR", 2500),
        ("١٢٣٫٤٥", "EUR", 12345),
        ("١٬٢٣٤٫٥٦", "EUR", 123456),
        ("١٬٢٣٤", "EUR", 123400),
        ("۱۲۳٫۴۵", "EUR", 12345),
        ("\u200f١٢٣٫٤٥ €", "EUR", 12345),
        ("١٫٠٠٥", "KWD", 1005),
        ("१,२३,४५६.००", "INR", 12345600),
        ("1,23,456.00", "INR", 12345600),
        ("1,23,456", "INR", 12345600),
        ("12,34,567.5", "BDT", 123456750),
        ("₹ 99.50", "INR", 9950),
        ("２５．００", "EUR", 2500),
        ("￥９，８９９", "JPY", 9899),
        ("1’234.50", "CHF", 123450),
        ("CHF 25", "CHF", 2500),
        ("1 234,56 ₽", "RUB", 123456),
        ("1\u202f234,56\u00a0€", "EUR", 123456),
        ("25 zł", "PLN", 2500),
        ("25 kr.", "DKK", 2500),
        ("25 kr", "SEK", 2500),
        ("CA$25", "CAD", 2500),
        ("$25", "SGD", 2500),
        ("$25", "MXN", 2500),
        ("¥25", "CNY", 2500),
    ],
)
def test_a_clear_amount_is_read_exactly(text: str, currency: str, minor: int) -> None:
    assert money_parse(text, currency) == minor


@pytest.mark.parametrize(
    ("text", "currency"),
    [
        ("500.50", "JPY"),
        ("500.00", "JPY"),
        ("1e2", "EUR"),
        ("-5", "EUR"),
        ("+5", "EUR"),
        (".5", "EUR"),
        ("5.", "EUR"),
        ("5.123456", "EUR"),
        ("0.'0", "EUR"),
        ("5. 5", "EUR"),
        ("5.'55", "KWD"),
        ("1,23,456", "EUR"),
        ("5 0", "EUR"),
        ("nan", "EUR"),
        ("abc", "EUR"),
        ("", "EUR"),
        ("None", "EUR"),
        ("٢5", "EUR"),
        ("٢۵", "EUR"),
        ("٫٥", "EUR"),
        ("١٫٢٣٤", "EUR"),
        ("25²", "EUR"),
        ("½", "EUR"),
        ("25.00-", "EUR"),
        ("\u221225", "EUR"),
        ("(25.00)", "EUR"),
        ("5%", "EUR"),
        ("5 %", "EUR"),
        ("1,23,456.00", "EUR"),
        ("12,3,456.00", "INR"),
        ("25 or 30", "EUR"),
        ("£25", "EUR"),
        ("$25", "EUR"),
        ("25 USD", "EUR"),
        ("9" * 30, "EUR"),
        ("9" * 5000, "EUR"),
        ("5", "XYZ"),
        ("5", "eur"),
    ],
)
def test_what_is_no_amount_is_refused_with_a_sentence(text: str, currency: str) -> None:
    with pytest.raises(MoneyInvalid) as refusal:
        money_parse(text, currency)
    assert str(refusal.value).endswith(".")
    assert len(str(refusal.value)) < 160


@pytest.mark.parametrize(
    ("text", "currency", "said"),
    [
        ("-5", "EUR", "“-5” is below zero or in brackets. Write it like 25.00 EUR."),
        ("-€5", "EUR", "“-€5” is below zero or in brackets. Write it like 25.00 EUR."),
        ("(5)", "EUR", "“(5)” is below zero or in brackets. Write it like 25.00 EUR."),
        ("5%", "EUR", "“5%” is a share, not an amount. Write it like 25.00 EUR."),
        ("1e2", "EUR", "“1e2” is not an amount in EUR. Write it like 25.00 EUR."),
        ("+5", "KWD", "“+5” is not an amount in KWD. Write it like 25.000 KWD."),
        ("$5", "EUR", "“$5” is in another currency; this is in EUR."),
    ],
)
def test_a_refusal_says_what_is_wrong(text: str, currency: str, said: str) -> None:
    with pytest.raises(MoneyInvalid) as refusal:
        money_parse(text, currency)
    assert str(refusal.value) == said


@pytest.mark.parametrize(
    ("text", "currency", "readings"),
    [
        ("25,000", "EUR", (2_500_000, 2500)),
        ("25.000", "EUR", (2_500_000, 2500)),
        ("٢٥,٠٠٠", "EUR", (2_500_000, 2500)),
        ("1.005", "USD", (100_500,)),
        ("9.899", "JPY", (9899,)),
        ("25,000", "KWD", (25_000_000, 25_000)),
    ],
)
def test_what_can_be_read_in_two_ways_is_asked_back(
    text: str, currency: str, readings: tuple[int, ...]
) -> None:
    with pytest.raises(MoneyAmbiguous, match="can be read in two ways") as question:
        money_parse(text, currency)
    assert question.value.readings == readings


@pytest.mark.parametrize(
    ("text", "currency", "language", "said"),
    [
        ("25,000", "EUR", "en", "as 25000.00 EUR or as 25.00 EUR. Write one of them."),
        ("25,000", "EUR", "de", "as 25000,00 EUR or as 25,00 EUR. Write one of them."),
        ("25,000", "KWD", "de", "as 25000.000 KWD or as 25.000 KWD. Write one of them."),
        ("9.899", "JPY", "en", "as 9899 JPY, or with decimals that JPY does not have. "),
    ],
)
def test_a_question_shows_both_readings_and_each_can_be_the_answer(
    text: str, currency: str, language: str, said: str
) -> None:
    with translation.override(language), pytest.raises(MoneyAmbiguous) as question:
        money_parse(text, currency)
    assert said in str(question.value)
    shown = [part.split(f" {currency}")[0] for part in str(question.value).split("as ")[1:]]
    assert tuple(money_parse(each, currency) for each in shown) == question.value.readings


def test_the_language_of_a_form_settles_its_own_mark_and_nothing_else() -> None:
    assert money_parse("25,005", "KWD", "de") == 25_005
    # With a point it may as well be the thousands of that language.
    with pytest.raises(MoneyAmbiguous):
        money_parse("25.005", "KWD", "de")
    assert money_parse("0.005", "KWD", "de") == 5
    for text, currency in (("25.000", "EUR"), ("25,000", "EUR"), ("9.899", "JPY")):
        for language in ("en", "de", "ru"):
            with pytest.raises(MoneyAmbiguous):
                money_parse(text, currency, language)
    with pytest.raises(MoneyAmbiguous):
        money_parse("25,005", "KWD", "en")


@pytest.mark.parametrize(
    ("minor", "currency", "text"),
    [
        (500, "EUR", "5.00 EUR"),
        (5, "EUR", "0.05 EUR"),
        (500, "JPY", "500 JPY"),
        (0, "JPY", "0 JPY"),
        (5, "KWD", "0.005 KWD"),
        (-1250, "EUR", "-12.50 EUR"),
    ],
)
def test_an_amount_is_written_with_the_readers_own_mark(
    minor: int, currency: str, text: str
) -> None:
    money = Money(minor, currency)
    for language in ("en", "ar", "ja", "de-ch", "zz-zz", ""):
        assert money_format(money, language) == text
    for language in ("de", "ru", "fr", "pt-br", "de_AT"):
        assert money_format(money, language) == text.replace(".", ",")


def test_the_sentence_and_its_amount_are_in_one_language() -> None:
    money = Money(500, "EUR")
    assert money_format(money) == "5.00 EUR"
    with translation.override("de"):
        assert money_format(money) == "5,00 EUR"
        assert money_plain(money) == "5.00"
    with translation.override(None):
        assert money_format(money) == "5.00 EUR"
