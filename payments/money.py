"""Amounts: minor units and an ISO currency, from text and back to text. Pure, and no floats.

Every amount that a person or a model writes is read here, and every one that is shown, stored in
an export or printed on a receipt is written here, so that all of them look the same.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from django.utils.translation import gettext as _

from agent_core.errors import CountersignError

# ISO 4217, active currencies by number of decimals.
_NO_DECIMALS: Final = "BIF CLP DJF GNF ISK JPY KMF KRW PYG RWF UGX UYI VND VUV XAF XOF XPF"
_TWO_DECIMALS: Final = (
    "AED AFN ALL AMD ANG AOA ARS AUD AWG AZN BAM BBD BDT BGN BMD BND BOB BRL BSD BTN BWP BYN BZD "
    "CAD CDF CHF CNY COP CRC CUP CVE CZK DKK DOP DZD EGP ERN ETB EUR FJD FKP GBP GEL GHS GIP GMD "
    "GTQ GYD HKD HNL HTG HUF IDR ILS INR IRR JMD KES KGS KHR KPW KYD KZT LAK LBP LKR LRD LSL MAD "
    "MDL MGA MKD MMK MNT MOP MRU MUR MVR MWK MXN MYR MZN NAD NGN NIO NOK NPR NZD PAB PEN PGK PHP "
    "PKR PLN QAR RON RSD RUB SAR SBD SCR SDG SEK SGD SHP SLE SOS SRD SSP STN SVC SYP SZL THB TJS "
    "TMT TOP TRY TTD TWD TZS UAH USD UYU UZS VES WST XCD YER ZAR ZMW ZWG"
)
_THREE_DECIMALS: Final = "BHD IQD JOD KWD LYD OMR TND"
EXPONENTS: Final[dict[str, int]] = {
    code: exponent
    for exponent, codes in ((0, _NO_DECIMALS), (2, _TWO_DECIMALS), (3, _THREE_DECIMALS))
    for code in codes.split()
}
_SYMBOLS: Final[dict[str, frozenset[str]]] = {
    "€": frozenset({"EUR"}),
    "£": frozenset({"GBP"}),
    "¥": frozenset({"JPY", "CNY"}),
    "$": frozenset({"USD", "CAD", "AUD", "NZD", "HKD", "SGD", "MXN"}),
}
# More than anyone pays, far below what the database holds.
LARGEST_MINOR: Final = 10**13
LONGEST_TEXT: Final = 60

_MARKED: Final = re.compile(
    r"(?P<before>[A-Za-z]{3}|[€£¥$])?\s*(?P<number>[0-9][0-9.,'\u2019 \u00a0\u202f]*?)\s*"
    r"(?P<after>[A-Za-z]{3}|[€£¥$])?"
)
_GROUPED: Final = re.compile(r"[1-9][0-9]{0,2}(?:(?P<mark>[.,' ])[0-9]{3})(?:(?P=mark)[0-9]{3})*")
_SPACES: Final = str.maketrans({"\u00a0": " ", "\u202f": " ", "\u2019": "'"})


class MoneyInvalid(CountersignError):
    """This is not an amount."""

    code = "money.invalid"


class MoneyAmbiguous(MoneyInvalid):
    """This amount can be read in more than one way."""

    code = "money.ambiguous"


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


def money_format(money: Money, language: str = "en") -> str:
    """Write an amount as text, alike everywhere and in every language: "5.00 EUR", "500 JPY"."""
    exponent = currency_exponent(money.currency)
    sign = "-" if money.amount_minor < 0 else ""
    digits = str(abs(money.amount_minor)).rjust(exponent + 1, "0")
    if exponent:
        digits = f"{digits[:-exponent]}.{digits[-exponent:]}"
    return f"{sign}{digits} {money.currency}"


def money_parse(text: str, currency: str) -> int:
    """Read an amount that a person or a model wrote, as minor units of `currency`.

    Raises:
        MoneyInvalid: it is no amount of this currency.
        MoneyAmbiguous: it can be read in more than one way, so someone has to be asked.
    """
    exponent = currency_exponent(currency)
    found = _MARKED.fullmatch(str(text).strip()) if len(str(text)) <= LONGEST_TEXT else None
    if found is None:
        raise _invalid(text, currency)
    for mark in (found["before"], found["after"]):
        if mark and currency not in _SYMBOLS.get(mark, frozenset({mark.upper()})):
            raise MoneyInvalid(
                _("“%(text)s” is in another currency; this is in %(currency)s.")
                % {"text": _short(text), "currency": currency}
            )
    whole, decimals = _split(found["number"].translate(_SPACES), exponent, text, currency)
    minor = int(whole + decimals.ljust(exponent, "0"))
    if minor > LARGEST_MINOR:
        raise MoneyInvalid(_("“%(text)s” is too large an amount.") % {"text": _short(text)})
    return minor


def _split(number: str, exponent: int, text: str, currency: str) -> tuple[str, str]:
    """Part a number into its whole digits and its decimals, or say why it cannot be told."""
    if number.isdecimal():
        return number, ""
    whole, point, decimals = _at_last(number, ".,")
    written = point == "." and decimals.isdecimal() and len(decimals) == exponent
    if written and _whole(whole, ",' "):
        return _digits(whole), decimals
    grouped = _GROUPED.fullmatch(number)
    if grouped is not None:
        # One group of three after a comma or a point may as well be decimals.
        unclear = number.count(grouped["mark"]) == 1 and grouped["mark"] in ".,"
        if unclear and (exponent or grouped["mark"] == "."):
            raise MoneyAmbiguous(
                _("“%(text)s” can be read in two ways. Write it like %(example)s.")
                % {"text": _short(text), "example": _example(currency)}
            )
        return _digits(number), ""
    others = {".": ",' ", ",": ".' "}.get(point, "")
    if point and 0 < len(decimals) <= exponent and decimals.isdecimal() and _whole(whole, others):
        return _digits(whole), decimals
    if point and exponent == 0 and decimals.isdecimal() and _whole(whole, others):
        raise MoneyInvalid(
            _("%(currency)s has no decimals, so “%(text)s” is not an amount.")
            % {"text": _short(text), "currency": currency}
        )
    raise _invalid(text, currency)


def _at_last(number: str, marks: str) -> tuple[str, str, str]:
    at = max(number.rfind(mark) for mark in marks)
    return (number, "", "") if at < 0 else (number[:at], number[at], number[at + 1 :])


def _whole(whole: str, marks: str) -> bool:
    """Tell whether these are plain digits, or groups of three with one of the given marks."""
    grouped = _GROUPED.fullmatch(whole)
    return whole.isdecimal() or (grouped is not None and grouped["mark"] in marks)


def _digits(number: str) -> str:
    return re.sub(r"[^0-9]", "", number)


def _short(text: str) -> str:
    """Return what somebody wrote, fit to be repeated inside a sentence."""
    return " ".join("".join(sign if sign.isprintable() else " " for sign in str(text)).split())[:40]


def _example(currency: str) -> str:
    return money_format(Money(25 * 10 ** EXPONENTS[currency], currency))


def _invalid(text: str, currency: str) -> MoneyInvalid:
    return MoneyInvalid(
        _("“%(text)s” is not an amount in %(currency)s. Write it like %(example)s.")
        % {"text": _short(text), "currency": currency, "example": _example(currency)}
    )
