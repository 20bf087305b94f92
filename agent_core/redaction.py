"""Mask card numbers and secrets in text before it is stored or shown to the model."""

from __future__ import annotations

import re
from typing import Final

CARD_MASK: Final = "[card number removed]"
SECRET_MASK: Final = "[secret removed]"  # noqa: S105 - words, not a secret

_CARD = re.compile(r"(?<![\w-])\d(?:[ -]?\d){12,18}(?![\w-])")
_SECRET = re.compile(
    r"\b(?:sk|rk|pk)_(?:live|test)_\w{8,}|\bgsk_\w{16,}|\bsk-[\w-]{16,}|\bghp_\w{20,}"
    r"|\bAKIA[0-9A-Z]{16}\b|\bBearer\s+[\w.~+/-]{16,}=*|\bwhsec_\w{8,}",
    re.IGNORECASE,
)


def luhn_valid(digits: str) -> bool:
    """Tell whether the check digit of a card number is right (ISO/IEC 7812-1)."""
    total = 0
    for index, character in enumerate(reversed(digits)):
        value = int(character)
        if index % 2:
            value = value * 2 - 9 if value > 4 else value * 2
        total += value
    return total % 10 == 0


def redacted(text: str) -> str:
    """Return the text with full card numbers and secrets masked.

    Amounts, references and phone numbers are left alone: only runs of 13 to 19 digits with a
    right check digit count as card numbers.
    """
    return _SECRET.sub(SECRET_MASK, _CARD.sub(_card_masked, text))


def _card_masked(match: re.Match[str]) -> str:
    digits = re.sub(r"\D", "", match.group())
    return CARD_MASK if luhn_valid(digits) else match.group()


def shortened(text: str, limit: int = 8_000) -> str:
    """Cut text that is longer than `limit` characters and say so."""
    if len(text) <= limit:
        return text
    return f"{text[:limit].rstrip()}\n(shortened: {len(text) - limit} more characters)"
