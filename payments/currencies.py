"""What a currency is: its minor units by ISO 4217, and what CLDR (Babel) says of signs and marks.

The decimals are kept here because CLDR counts what is used in shops, not what banks move: it gives
the forint and the Iraqi dinar none. Names, signs, marks and groups come from CLDR alone. Pure.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import Final

from babel import Locale, UnknownLocaleError
from babel.languages import get_official_languages
from babel.numbers import (
    UnsupportedNumberingSystemError,
    get_currency_symbol,
    get_decimal_symbol,
)

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
DEFAULT_LANGUAGE: Final = "en"
_LATIN: Final = "latn"
_LAKHS: Final = (3, 2)


@lru_cache(maxsize=256)
def locale_of(language: str) -> Locale:
    """Return the CLDR locale of a language code ("de", "pt-br"); English for an unknown one."""
    try:
        return Locale.parse(language.replace("_", "-"), sep="-")
    except (UnknownLocaleError, ValueError):
        return Locale.parse(DEFAULT_LANGUAGE)


@lru_cache(maxsize=256)
def decimal_mark(language: str) -> str:
    """Return the sign before the decimals in this language, for 0 to 9: a point or a comma."""
    try:
        mark = get_decimal_symbol(locale_of(language), numbering_system=_LATIN)
    except UnsupportedNumberingSystemError:
        return "."
    return mark if mark in (".", ",") else "."


def symbol_fits(mark: str, currency: str, language: str | None = None) -> bool:
    """Tell whether a code or sign that somebody wrote may stand for this currency.

    A sign without letters, such as "$" or "¥", fits every currency whose sign in English has it.
    """
    wanted = _sign(mark)
    languages = (DEFAULT_LANGUAGE, language or DEFAULT_LANGUAGE)
    english = {_sign(get_currency_symbol(currency, locale_of(each))) for each in languages}
    if wanted in english | {_sign(currency)} | {_bare(sign) for sign in english}:
        return bool(wanted)
    return wanted in {_sign(get_currency_symbol(currency, home)) for home in _homes(currency)}


def currency_code(text: str) -> str:
    """Return the code of a code or of a sign that is one currency's alone; empty for any other."""
    wanted = _sign(text)
    if wanted.upper() in EXPONENTS:
        return wanted.upper()
    found = _signs().get(wanted, ())
    return found[0] if len(found) == 1 else ""


def sign_known(mark: str) -> bool:
    """Tell whether this is a code or sign of some currency."""
    return _sign(mark).upper() in EXPONENTS or _sign(mark) in _signs()


def counts_in_lakhs(currency: str) -> bool:
    """Tell whether amounts are grouped 1,23,456 where the currency is at home."""
    groupings = {home.decimal_formats[None].grouping for home in _homes(currency)}
    return _LAKHS in groupings


@lru_cache(maxsize=1)
def _signs() -> dict[str, tuple[str, ...]]:
    """Return the signs that English has, each with the currencies that it may stand for."""
    found: dict[str, tuple[str, ...]] = {}
    for code in EXPONENTS:
        sign = _sign(get_currency_symbol(code, locale_of(DEFAULT_LANGUAGE)))
        for each in dict.fromkeys((sign, _bare(sign))):
            if each:
                found[each] = (*found.get(each, ()), code)
    return found


@lru_cache(maxsize=256)
def _homes(currency: str) -> tuple[Locale, ...]:
    """Return the locales of the country whose code begins the currency's, as ISO 4217 has it."""
    country, homes = currency[:2], []
    for language in get_official_languages(country, de_facto=True):
        try:
            homes.append(Locale.parse(f"{language}_{country}"))
        except (UnknownLocaleError, ValueError):
            continue
    return tuple(homes)


def _sign(text: str) -> str:
    return unicodedata.normalize("NFKC", text).strip().rstrip(".").casefold()


def _bare(sign: str) -> str:
    return "".join(each for each in sign if not each.isalpha())
