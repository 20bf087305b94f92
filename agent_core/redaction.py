"""Mask card numbers and secrets in text before it is stored or shown to the model."""

from __future__ import annotations

import re
from itertools import accumulate
from typing import Final

CARD_MASK: Final = "[card number removed]"
SECRET_MASK: Final = "[secret removed]"  # noqa: S105 - words, not a secret

# Blanks of every kind (line breaks, no-break and zero-width ones too), hyphens, dots, strokes.
_BETWEEN = r"[\s\u200b\u2060\ufeff\-\u2010-\u2015\u2212\uff0d._/\u00b7\uff0e]"
# Every decimal digit of Unicode; up to three signs between two groups, as in "4242 - 4242".
_RUN = re.compile(rf"\d+(?:{_BETWEEN}{{1,3}}\d+)*")
_GROUP = re.compile(r"\d+")
# Digits that say what they are: amounts, dates, references such as PAY-7KX2M9QD, and UUIDs.
_ORDINARY = re.compile(
    r"(?<![\w-])[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}(?![\w-])"
    r"|(?<![A-Za-z0-9])[A-Z]{2,5}-[A-Z0-9]{1,8}(?![A-Za-z0-9])"
    r"|(?<!\d)(?:19|20)\d\d([-./])(?:0[1-9]|1[0-2])\1(?:0[1-9]|[12]\d|3[01])(?!\d)"
    r"|(?<!\d)(?:0[1-9]|[12]\d|3[01])([-./])(?:0[1-9]|[12]\d|3[01])\2(?:19|20)\d\d(?!\d)"
    r"|(?<!\d)(?<!\d[.,])\d{1,6}[.,]\d\d(?![.,]?\d)"
)
_SHORTEST: Final = 13
_LONGEST: Final = 19
_LONGEST_PHONE: Final = 15
_SECRET = re.compile(
    r"\b(?:sk|rk|pk)_(?:live|test)_\w{8,}|\bgsk_\w{16,}|\bsk-[\w-]{16,}|\bghp_\w{20,}"
    r"|\bAKIA[0-9A-Z]{16}\b|\bBearer\s+[\w.~+/-]{16,}=*|\bwhsec_\w{8,}",
    re.IGNORECASE,
)

Span = tuple[int, int]


def redacted(text: str) -> str:
    """Return the text with full card numbers and secrets masked.

    A card number is any number of neighbouring digit groups with 13 to 19 digits together and a
    right check digit (ISO/IEC 7812-1), whatever stands before and after it. Groups of which more
    than half the digits are amounts, dates, references or a UUID are left alone, and so is a whole
    phone number with its country code ("+49 …", "0049 …").
    """
    # Secrets first: a card number inside a token must not cut the token in two.
    return _cards_masked(_SECRET.sub(SECRET_MASK, text))


def _cards_masked(text: str) -> str:
    ordinary = {place for found in _ORDINARY.finditer(text) for place in range(*found.span())}
    pieces, at = [], 0
    for run in _RUN.finditer(text):
        for begin, end in _card_spans(text, run.span(), ordinary):
            pieces += [text[at:begin], CARD_MASK]
            at = end
    return "".join([*pieces, text[at:]])


def _card_spans(text: str, run: Span, ordinary: set[int]) -> list[Span]:
    """Return where card numbers stand in one run of digit groups.

    All of them count, those that overlap too, so that no reading of the run leaves one whole.
    """
    groups = [found.span() for found in _GROUP.finditer(text, *run)]
    ends = [0, *accumulate(end - begin for begin, end in groups)]
    if ends[-1] < _SHORTEST or (ends[-1] <= _LONGEST_PHONE and _is_phone(text, run[0])):
        return []
    free = [0, *accumulate(0 if _inside(g, ordinary) else g[1] - g[0] for g in groups)]
    sums = _luhn_sums([int(text[place]) for group in groups for place in range(*group)])
    spans: list[Span] = []
    for first in range(len(groups)):
        for last in range(first + 1, len(groups) + 1):
            length = ends[last] - ends[first]
            if length > _LONGEST:
                break
            known = (free[last] - free[first]) * 2 < length
            total = sums[ends[last] % 2]
            if length < _SHORTEST or known or (total[ends[last]] - total[ends[first]]) % 10:
                continue
            begin, end = groups[first][0], groups[last - 1][1]
            if spans and begin < spans[-1][1]:
                begin, end = spans[-1][0], max(spans.pop()[1], end)
            spans.append((begin, end))
    return spans


def _inside(group: Span, ordinary: set[int]) -> bool:
    return group[0] in ordinary and group[1] - 1 in ordinary


def _is_phone(text: str, begin: int) -> bool:
    """Tell whether a run of digits starts with a country code."""
    plus = text[begin - 1 : begin] == "+" and not text[max(begin - 2, 0) : begin - 1].isalnum()
    return plus or text.startswith("00", begin)


def _luhn_sums(digits: list[int]) -> tuple[list[int], list[int]]:
    """Return running sums of Luhn's method, for numbers that end at an even and at an odd place.

    With them any part of the digits is checked in one step.
    """
    twice = [digit * 2 - 9 if digit > 4 else digit * 2 for digit in digits]
    even = [double if at % 2 == 0 else digit for at, (digit, double) in _pairs(digits, twice)]
    odd = [double if at % 2 else digit for at, (digit, double) in _pairs(digits, twice)]
    return [0, *accumulate(even)], [0, *accumulate(odd)]


def _pairs(digits: list[int], twice: list[int]) -> enumerate[tuple[int, int]]:
    return enumerate(zip(digits, twice, strict=True))


def shortened(text: str, limit: int = 8_000) -> str:
    """Cut text that is longer than `limit` characters and say so."""
    if len(text) <= limit:
        return text
    return f"{text[:limit].rstrip()}\n(shortened: {len(text) - limit} more characters)"
