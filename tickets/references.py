"""Mint the references of tickets, that people read and say: "TCK-7KX2M9QD"."""

import secrets
from typing import Final

# Without letters and digits that are taken for one another.
_SIGNS: Final = "23456789ABCDEFGHJKMNPQRSTUVWXYZ"
_LENGTH: Final = 8


def ticket_reference() -> str:
    """Mint a reference; that it is unique, the database holds."""
    return "TCK-" + "".join(secrets.choice(_SIGNS) for _ in range(_LENGTH))
