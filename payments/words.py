"""Tell what stands in the staff member's own words: keys, amounts. Pure text, no database.

Binding a customer and charging without a card both rest on this, never on what a model says.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from typing import Final

from payments.money import MoneyInvalid, money_parse

_KEYS: Final = re.compile(
    r"(?P<mail>[\w.+'-]+@[\w-]+(?:\.[\w-]+)+)"
    r"|(?<![\w-])(?P<reference>(?:CUS|INV|PAY|REF)-[A-Z0-9]+(?:-[A-Z0-9]+)*)"
    r"|(?<![\w-])#?(?P<order>W[0-9]{5,12})(?![\w-])",
    re.IGNORECASE | re.ASCII,
)
_DIGIT: Final = "0-9\u0660-\u0669\u06f0-\u06f9"
_MARKS: Final = ".,\u066b\u066c"
# No part of a reference, a date, a time or a longer number counts as an amount.
_AMOUNTS: Final = re.compile(
    rf"(?<![\w{_DIGIT}{_MARKS}#@/:-])"
    rf"(?P<number>[{_DIGIT}]{{1,3}}(?: [{_DIGIT}]{{3}}(?![{_DIGIT}]))+(?:[{_MARKS}][{_DIGIT}]+)?"
    rf"|[{_DIGIT}][{_DIGIT}{_MARKS}]*)(?![\w{_DIGIT}#@/:]|-[0-9])",
    re.ASCII,
)
# These scripts put no blank between words, so a name has no edge to look for.
_RUNS_ON: Final = ("CJK", "HIRAGANA", "KATAKANA", "HANGUL", "THAI", "LAO", "KHMER", "MYANMAR")
SHORTEST_KEY: Final = 2


def plain(text: str) -> str:
    """Return `text` in one spelling: composed, without case, single blanks."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def key_in_words(key: str, words: Sequence[str]) -> bool:
    """Tell whether `key` stands in one of the messages as a word of its own."""
    wanted = plain(key)
    if len(wanted) < SHORTEST_KEY:
        return False
    before = "" if _runs_on(wanted[0]) else r"(?<![\w@#-])"
    after = "" if _runs_on(wanted[-1]) else r"(?![\w@]|[-.][^\W_])"
    pattern = re.compile(before + re.escape(wanted) + after)
    return any(pattern.search(plain(message)) for message in words)


def keys_in(words: Sequence[str]) -> tuple[str, ...]:
    """Return the addresses, references and order numbers that the messages name, each once."""
    found: dict[str, None] = {}
    for message in words:
        for match in _KEYS.finditer(unicodedata.normalize("NFKC", message)):
            key = match["mail"] or match["reference"] or match["order"]
            found.setdefault(key.strip(".'-").casefold() if match["mail"] else key.upper())
    return tuple(found)


def amount_in_words(amount_minor: int, currency: str, words: Sequence[str]) -> bool:
    """Tell whether one of the messages names exactly this amount."""
    for message in words:
        for match in _AMOUNTS.finditer(unicodedata.normalize("NFKC", message)):
            try:
                if money_parse(match["number"].rstrip(_MARKS), currency) == amount_minor:
                    return True
            except MoneyInvalid:
                continue
    return False


def _runs_on(sign: str) -> bool:
    return unicodedata.name(sign, "").startswith(_RUNS_ON)
