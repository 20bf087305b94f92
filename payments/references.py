"""Mint the references that people read, write and say: "REF-7KX2M9QD". Unique by constraint."""

from __future__ import annotations

import secrets
from typing import Final

# Without letters and digits that are taken for one another.
_SIGNS: Final = "23456789ABCDEFGHJKMNPQRSTUVWXYZ"
_LENGTH: Final = 8


def payment_reference() -> str:
    """Mint the reference of a payment."""
    return _minted("PAY")


def refund_reference() -> str:
    """Mint the reference of a refund."""
    return _minted("REF")


def _minted(kind: str) -> str:
    return f"{kind}-" + "".join(secrets.choice(_SIGNS) for _ in range(_LENGTH))
