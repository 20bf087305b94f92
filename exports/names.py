"""File names that people see: made of what was exported, cleaned of what a system could misread.

The stored name is another one, made from the export's own id alone.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final
from uuid import UUID

LONGEST: Final = 120
_FORBIDDEN: Final = re.compile(r'[/\\:*?"<>|;%\x00-\x1f\x7f]+')
_RESERVED: Final = re.compile(r"(?:con|prn|aux|nul|(?:com|lpt)[0-9¹²³])(?:\..*)?", re.IGNORECASE)


def name_clean(text: str, fallback: str = "export") -> str:
    """Return the text as one harmless file name, without its ending; letters of any script stay."""
    composed = unicodedata.normalize("NFC", text)
    # Controls, and marks that turn the direction of writing, could hide the real ending.
    printable = "".join(" " if unicodedata.category(sign)[0] == "C" else sign for sign in composed)
    plain = " ".join(_FORBIDDEN.sub(" ", printable).split())
    while ".." in plain:
        plain = plain.replace("..", ".")
    plain = plain.strip(" .'")[:LONGEST].rstrip(" .")
    if not plain:
        return fallback
    return f"{fallback} {plain}" if _RESERVED.fullmatch(plain) else plain


def name_shown(title: str, reference: str, extension: str) -> str:
    """Return the name under which the browser saves the file."""
    return f"{name_clean(title)} {reference}.{extension}"


def name_stored(export_id: UUID, attempt: int, extension: str) -> str:
    """Return the name in the storage; each attempt has its own, so two never share a file."""
    return f"exports/{export_id.hex}-{attempt}.{extension}"
