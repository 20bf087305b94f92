"""Amounts: minor units and an ISO currency, from text and back to text. Pure, and no floats.

Every amount that a person or a model writes is read here, and every one that is shown is written
here in its reader's language, so that all of them look the same.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from typing import Final

from django.utils.translation import get_language
from django.utils.translation import gettext as _

from agent_core.errors import CountersignError
from payments.currencies import (
    DEFAULT_LANGUAGE,
    EXPONENTS,
    counts_in_lakhs,
    decimal_mark,
    sign_known,
    symbol_fits,
)

# More than anyone pays, far below what the database holds.
LARGEST_MINOR: Final = 10**13
LONGEST_TEXT: Final = 60

_POINT, _GROUP = "\u066b", "\u066c"
"""The Arabic marks: the one before decimals, the one between groups; each means nothing else."""
_MARKED: Final = re.compile(
    rf"(?P<before>\D*?)\s*(?P<number>[0-9][0-9.,' {_POINT}{_GROUP}]*?)\s*(?P<after>\D*)", re.ASCII
)
_GROUPED: Final = re.compile(
    rf"[1-9][0-9]{{0,2}}(?:(?P<mark>[.,' {_GROUP}])[0-9]{{3}})(?:(?P=mark)[0-9]{{3}})*"
)
_IN_LAKHS: Final = re.compile(r"[1-9][0-9]?(?:,[0-9]{2})+,[0-9]{3}")
_GROUPS_BESIDE: Final = {".": f",' {_GROUP}", ",": f".' {_GROUP}", _POINT: f".,' {_GROUP}"}
"""The mark before the decimals, and which may then stand between groups."""
_ALIKE: Final = str.maketrans(
    dict.fromkeys("\u00a0\u202f\u2007\u2009\u3000", " ")
    | dict.fromkeys("\u2019\u2018\u02bc", "'")
    # Marks of direction, which come along when an amount is copied from a page.
    | dict.fromkeys("\u200e\u200f\u061c")
)
_MINUS: Final = frozenset("-\u2212\u2013()")


class MoneyInvalid(CountersignError):
    """This is not an amount."""

    code = "money.invalid"


class MoneyAmbiguous(MoneyInvalid):
    """This amount can be read in more than one way."""

    code = "money.ambiguous"

    def __init__(self, message: str | None = None, *, readings: tuple[int, ...] = ()) -> None:
        """Keep the readings that the currency allows, in minor units."""
        super().__init__(message)
        self.readings = readings


@dataclass(frozen=True, slots=True)
class Money:
    """An amount in the currency's smallest unit: 5.00 EUR is 500, 500 JPY is 500."""

    amount_minor: int
    currency: str


def currency_exponent(currency: str) -> int:
    """Return how many decimals the currency has.

    Raises:
        MoneyInvalid: there is no such currency.
    """
    exponent = EXPONENTS.get(currency)
    if exponent is None:
        raise MoneyInvalid(_("We do not know the currency “%(code)s”.") % {"code": currency[:12]})
    return exponent


def money_format(money: Money, language: str | None = None) -> str:
    """Write an amount for a reader: "5.00 EUR" in English, "5,00 EUR" in German, "500 JPY".

    `language` is the reader's; left out, it is the one that the sentence around is written in.
    The code stands behind a plain blank in every language: a sign may be another country's, and
    people search for what they see. The digits are 0 to 9 for the same reason. There are no marks
    between groups: "25,000" is what nobody can read for sure.
    """
    return f"{money_figure(money, language)} {money.currency}"


def money_figure(money: Money, language: str | None = None) -> str:
    """Write the number alone, for a field whose currency stands elsewhere."""
    return _figure(money, decimal_mark(language or get_language() or DEFAULT_LANGUAGE))


def money_plain(money: Money) -> str:
    """Write the number for a program, with a point whoever reads it: "5.00"."""
    return _figure(money, ".")


def money_in(text: str, money: Money, language: str | None = None) -> str:
    """Return a stored sentence of ours with this one amount written for its reader of now.

    Its words stay as they were written. Other amounts do too: a person may have written them.
    """
    wanted = money_format(money, language)
    for mark in ".,":
        stored = re.escape(f"{_figure(money, mark)} {money.currency}")
        text = re.sub(rf"(?<![0-9.,-]){stored}(?!\w)", wanted, text)
    return text


def _figure(money: Money, mark: str) -> str:
    exponent = currency_exponent(money.currency)
    sign = "-" if money.amount_minor < 0 else ""
    digits = str(abs(money.amount_minor)).rjust(exponent + 1, "0")
    return f"{sign}{digits[:-exponent]}{mark}{digits[-exponent:]}" if exponent else sign + digits


def money_parse(text: str, currency: str, language: str | None = None) -> int:
    """Read an amount that a person or a model wrote, as minor units of `currency`.

    A point before exactly the currency's decimals is read as one: so programs write. The rest must
    be clear by its form alone. `language` is for a field of a form that showed its amounts in this
    language: its own mark before exactly the currency's decimals is then clear, too ("25,005" of
    KWD in German), and a point before three is not. Text that passed a model is read without:
    nobody knows whose habits it follows.

    Raises:
        MoneyInvalid: it is no amount of this currency.
        MoneyAmbiguous: it can be read in more than one way, so someone has to be asked.
    """
    exponent = currency_exponent(currency)
    plain = _alike(str(text)) if len(str(text)) <= LONGEST_TEXT else None
    found = _MARKED.fullmatch(plain) if plain else None
    if found is None:
        raise _invalid(text, currency)
    for mark in (found["before"].strip(), found["after"].strip()):
        _mark_check(mark, text, currency, language)
    mark = decimal_mark(language) if language else "."
    # Who writes a comma before decimals may mean thousands by a point before three digits.
    marks = {mark} if (mark, exponent) == (",", 3) else {".", mark}
    whole, decimals = _split(found["number"], marks, text, currency)
    minor = int(whole + decimals.ljust(exponent, "0"))
    if minor > LARGEST_MINOR:
        raise MoneyInvalid(_("“%(text)s” is too large an amount.") % {"text": _short(text)})
    return minor


def _alike(text: str) -> str | None:
    """Return the text with digits 0 to 9 and one kind of blank; None for digits of two scripts."""
    wide = (
        unicodedata.normalize("NFKC", sign) if "\uff00" <= sign <= "\uffef" else sign
        for sign in text.translate(_ALIKE)
    )
    signs = "".join(wide).strip()
    figures = {sign: unicodedata.decimal(sign) for sign in signs if sign.isdecimal()}
    if len({ord(sign) - value for sign, value in figures.items()}) > 1:
        return None
    return "".join(str(figures.get(sign, sign)) for sign in signs)


def _mark_check(mark: str, text: str, currency: str, language: str | None) -> None:
    """Let pass what names this very currency, or nothing.

    Raises:
        MoneyInvalid: another currency, a sign of less than nothing, a share, or no currency at all.
    """
    if not mark or symbol_fits(mark, currency, language):
        return
    values = {"text": _short(text), "currency": currency, "example": _example(currency)}
    if sign_known(mark):
        said = _("“%(text)s” is in another currency; this is in %(currency)s.")
    elif "%" in mark:
        said = _("“%(text)s” is a share, not an amount. Write it like %(example)s.")
    elif _MINUS & set(mark):
        said = _("“%(text)s” is below zero or in brackets. Write it like %(example)s.")
    else:
        raise _invalid(text, currency)
    raise MoneyInvalid(said % values)


def _split(number: str, marks: set[str], text: str, currency: str) -> tuple[str, str]:
    """Part a number into its whole digits and its decimals, or say why it cannot be told."""
    exponent = currency_exponent(currency)
    if number.isdecimal():
        return number, ""
    whole, point, decimals = _at_last(number, f".,{_POINT}")
    clean = decimals.isdecimal() and _whole(whole, _GROUPS_BESIDE.get(point, ""), currency)
    if clean and point in {*marks, _POINT} and len(decimals) == exponent:
        return _digits(whole), decimals
    grouped = _GROUPED.fullmatch(number)
    if grouped is not None:
        # One group of three after a comma or a point may as well be decimals.
        unclear = number.count(grouped["mark"]) == 1 and grouped["mark"] in ".,"
        if unclear and (exponent or grouped["mark"] == "."):
            raise _ambiguous(text, currency, whole, decimals)
        return _digits(number), ""
    if _lakhs(number, currency):
        return _digits(number), ""
    if clean and len(decimals) <= exponent:
        return _digits(whole), decimals
    if clean and exponent == 0:
        raise MoneyInvalid(
            _("%(currency)s has no decimals, so “%(text)s” is not an amount.")
            % {"text": _short(text), "currency": currency}
        )
    raise _invalid(text, currency)


def _at_last(number: str, marks: str) -> tuple[str, str, str]:
    at = max(number.rfind(mark) for mark in marks)
    return (number, "", "") if at < 0 else (number[:at], number[at], number[at + 1 :])


def _whole(whole: str, marks: str, currency: str) -> bool:
    """Tell whether these are plain digits, or groups with one of the given marks."""
    grouped = _GROUPED.fullmatch(whole)
    in_threes = grouped is not None and grouped["mark"] in marks
    return whole.isdecimal() or in_threes or ("," in marks and _lakhs(whole, currency))


def _lakhs(number: str, currency: str) -> bool:
    return _IN_LAKHS.fullmatch(number) is not None and counts_in_lakhs(currency)


def _digits(number: str) -> str:
    return re.sub(r"[^0-9]", "", number)


def _short(text: str) -> str:
    """Return what somebody wrote, fit to be repeated inside a sentence."""
    return " ".join("".join(sign if sign.isprintable() else " " for sign in str(text)).split())[:40]


def _told(amount_minor: int, currency: str) -> str:
    """Write an amount inside a sentence that asks for one, so that it can be written just so.

    Three decimals after a comma are what is asked about; they have a point here in every language.
    """
    money = Money(amount_minor, currency)
    if currency_exponent(currency) == 3:
        return f"{money_plain(money)} {currency}"
    return money_format(money)


def _example(currency: str) -> str:
    return _told(25 * 10 ** EXPONENTS[currency], currency)


def _ambiguous(text: str, currency: str, whole: str, decimals: str) -> MoneyAmbiguous:
    """Return the question, with each reading that the currency allows."""
    exponent = EXPONENTS[currency]
    grouped = int(whole + decimals) * 10**exponent
    values = {"text": _short(text), "currency": currency, "one": _told(grouped, currency)}
    beyond = decimals[exponent:].strip("0")
    if exponent and not beyond:
        parted = int(whole + decimals[:exponent])
        said = _(
            "“%(text)s” can be read in two ways: as %(one)s or as %(other)s. Write one of them."
        )
        values["other"] = _told(parted, currency)
        return MoneyAmbiguous(said % values, readings=(grouped, parted))
    said = _(
        "“%(text)s” can be read in two ways: as %(one)s, or with decimals that %(currency)s does "
        "not have. Write it like %(example)s."
    )
    values["example"] = _example(currency)
    return MoneyAmbiguous(said % values, readings=(grouped,))


def _invalid(text: str, currency: str) -> MoneyInvalid:
    return MoneyInvalid(
        _("“%(text)s” is not an amount in %(currency)s. Write it like %(example)s.")
        % {"text": _short(text), "currency": currency, "example": _example(currency)}
    )
