"""What stands in a piece of text: references, keys, amounts, periods, names. Pure patterns."""

from __future__ import annotations

import re
from typing import Final

REFERENCE: Final = re.compile(
    r"(?<![\w-])(?:CUS|INV|PAY|REF|TCK|EXP)-[A-Z0-9]+(?:-[A-Z0-9]+)*(?!\w)", re.IGNORECASE
)
ADDRESS: Final = re.compile(r"[\w.+'-]+@[\w-]+(?:\.[\w-]+)+")
ORDER: Final = re.compile(r"(?<![\w-])#?W\d{5,12}(?![\w-])", re.IGNORECASE)

_MONTHS: Final = (
    r"jan(?:uary)?|feb(?:ruary)?|mar(?:ch)?|apr(?:il)?|may(?!\s+(?:i|we|you)\b)|june?|july?"
    r"|aug(?:ust)?|sept?(?:ember)?|oct(?:ober)?|nov(?:ember)?|dec(?:ember)?"
)
_DAY: Final = r"\d{4}-\d\d?-\d\d?|\d{4}-\d\d?"
_POINT: Final = (
    rf"{_DAY}|\d\d?[/.]\d{{4}}"
    rf"|\d\d?(?:st|nd|rd|th)?\s+(?:of\s+)?(?:{_MONTHS})(?:\s+\d{{4}})?"
    rf"|(?:{_MONTHS})\s+\d\d?(?:st|nd|rd|th)?(?:,?\s+\d{{4}})?(?![\d.])"
    rf"|(?:(?:this|last)\s+)?(?:{_MONTHS})(?:\s+(?:of\s+)?(?:\d{{4}}|(?:this|last)\s+year))?"
    r"|(?:this|last|previous|past)\s+(?:week|month|quarter|year)|today|yesterday"
    r"|(?:last|past)\s+\d{1,4}\s+days|q[1-4](?:\s+\d{4})?|\d{4}[\s-]q[1-4]"
)
PERIOD: Final = re.compile(
    rf"(?<![\w-])(?:since\s+)?(?:{_POINT}|(?<=in\s)\d{{4}}|(?<=of\s)\d{{4}}|(?<=for\s)\d{{4}})"
    rf"(?:\s*(?:\bto\b|\buntil\b|\btill\b|\bthrough\b|\band\b|\.\.+|[\u2013—])\s*(?:{_POINT}|today))?"
    r"(?![\w-])",
    re.IGNORECASE,
)

_CODES: Final = r"EUR|USD|GBP|JPY|CHF|SEK|KWD"
_UNITS: Final = {"euro": "EUR", "dollar": "USD", "yen": "JPY", "pound": "GBP"}
AMOUNT: Final = re.compile(
    rf"(?<![\w#@/:.,$€£¥-])(?:(?P<sign>[€$£¥])\s?|(?P<before>{_CODES})\s?)?"
    r"(?P<number>[0-9][0-9.,]*(?:e[0-9]+)?)"
    rf"(?:\s?(?P<after>{_CODES}|[€$£¥]|euros?|dollars?|yen|pounds?)(?!\w))?(?![\w#@/:%])",
    re.IGNORECASE,
)
CURRENCY: Final = re.compile(rf"\b(?:{_CODES})\b")
QUOTED: Final = re.compile(r"\"[^\"]*\"|“[^”]*”")

# A name is words up to the first that cannot belong to one.
_NAME_END: Final = (
    r"(?=\s*(?:$|[,;:.!?]|\d|[€$£¥]|#"
    r"|\b(?:because|last|in|for|from|please|with|on|as|and|this|since|during|to|of|by|"
    r"between|paid|the|now|about|at|today|yesterday|due|pay)\b))"
)
ORDINAL: Final = re.compile(
    r"\b(?:the\s+)?(?P<which>first|second|third|fourth|fifth|sixth|1st|2nd|3rd|4th|5th|6th)\s+"
    r"(?:one|payment|invoice)\b",
    re.IGNORECASE,
)
_ORDER_OF: Final = ("first", "second", "third", "fourth", "fifth", "sixth")
NAME: Final = rf"(?P<name>[^\W\d_][\w.'\u2019-]*(?:\s+[^\W\d_][\w.'\u2019-]*?)*?){_NAME_END}"
# Words that stand for someone or something named earlier, or for a thing and not a person.
NO_NAME: Final = re.compile(
    r"^(?:(?:the|this|that|my|our|all|any|an?|each|every|same|last|latest|open|your|whole)\b.*|"
    r"it|him|her|his|hers|them|their|they|me|us|customers?|payments?|refunds?|invoices?|orders?|"
    r"he|she|everyone|full|in|on|everything|please|half|money|about|to|for|of)$",
    re.IGNORECASE,
)


def references_in(text: str, *kinds: str) -> list[str]:
    """Return the references of these kinds (all when none is given), each once, in order."""
    found = (match.group().upper() for match in REFERENCE.finditer(text))
    return list(dict.fromkeys(each for each in found if not kinds or each[:3] in kinds))


def addresses_in(text: str) -> list[str]:
    """Return the e-mail addresses, each once, in order."""
    found = (match.group().strip(".'-") for match in ADDRESS.finditer(text))
    return list(dict.fromkeys(found))


def orders_in(text: str) -> list[str]:
    """Return the order numbers as #W…, each once, in order."""
    found = (f"#{match.group().lstrip('#').upper()}" for match in ORDER.finditer(text))
    return list(dict.fromkeys(found))


def without_keys(text: str) -> str:
    """Return the text without references, addresses and order numbers."""
    for pattern in (REFERENCE, ADDRESS, ORDER):
        text = pattern.sub(" ", text)
    return text


def period_in(text: str) -> str:
    """Return the first period as it is written, or nothing."""
    match = PERIOD.search(without_keys(text))
    return " ".join(match.group().split()) if match else ""


def amount_in(text: str) -> str:
    """Return the first amount as text, with its currency when one is written."""
    match = AMOUNT.search(without_keys(text))
    return _written(match) if match else ""


def amounts_in(text: str) -> list[str]:
    """Return every amount as text; one with two currencies ("USD 5 EUR") is empty."""
    return [
        "" if match["after"] and (match["sign"] or match["before"]) else _written(match)
        for match in AMOUNT.finditer(without_keys(text))
    ]


def _written(match: re.Match[str]) -> str:
    number = match["number"].rstrip(".,")
    unit = (match["before"] or match["after"] or "").lower()
    if match["sign"]:
        return f"{match['sign']}{number}"
    if unit in {"€", "$", "£", "¥"}:
        return f"{unit}{number}"
    code = _UNITS.get(unit.rstrip("s"), unit.upper())
    return f"{number} {code}".strip()


def ordinal_in(text: str) -> int:
    """Return which of a list is meant, from 1 on; 0 when none is."""
    match = ORDINAL.search(text)
    which = match["which"].lower() if match else ""
    return int(which[0]) if which[:1].isdigit() else (*("",), *_ORDER_OF).index(which)


def currency_of(unit: str) -> str:
    """Return the code of a currency's sign, name or code; of a sign with many codes the sign."""
    signs = {"€": "EUR", "£": "GBP"}
    return signs.get(unit) or _UNITS.get(unit.lower().rstrip("s"), unit.upper())


def name_in(text: str, pattern: str) -> str:
    """Return the person's name that `pattern` (with NAME in it) finds, or nothing."""
    match = re.search(pattern, without_keys(text), re.IGNORECASE)
    name = match["name"].strip(" '\u2019.-") if match else ""
    return "" if not name or NO_NAME.match(name) else name


def sentence_of(text: str) -> str:
    """Return the first sentence of a text, in one line."""
    line = next((each.strip() for each in text.splitlines() if each.strip()), "")
    match = re.match(r".+?[.!?](?=\s+[A-Z“\"]|$)", line)
    return match.group() if match else line
