"""Strict readers for environment variables; the only place that reads them for settings.

Every read is noted in `VARIABLES`, which a test compares with the table in the README.
"""

import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured


@dataclass(frozen=True)
class Variable:
    """One environment variable that the settings read, and what they take when it is unset."""

    name: str
    default: str


VARIABLES: dict[str, Variable] = {}

_TRUE = ("1", "true", "yes", "on")
_FALSE = ("0", "false", "no", "off")
_PAIR = re.compile(r"(?P<key>[A-Za-z_]+)=(?P<value>[0-9]{1,15})")


class SettingRefused(ImproperlyConfigured):
    """A variable holds a value that cannot be meant; the message is one sentence for a person."""


def _read(name: str, default: str | None) -> str | None:
    """Note the variable and return its stripped value; an empty one counts as unset."""
    VARIABLES.setdefault(name, Variable(name, "required" if default is None else default))
    raw = os.environ.get(name, "")
    value = raw.strip()
    if any(ord(sign) < 32 for sign in value):
        raise SettingRefused(f"{name} must not contain line breaks or control characters.")
    return value or None


def text(name: str, default: str | None = None) -> str:
    """Read a text; without a default the variable is required.

    Raises: SettingRefused when it is required and unset.
    """
    value = _read(name, default)
    if value is not None:
        return value
    if default is None:
        raise SettingRefused(f"{name} must be set; it has no default here.")
    return default


def flag(name: str, default: bool = False) -> bool:
    """Read a yes or no.

    Raises: SettingRefused when the value is neither.
    """
    value = _read(name, "1" if default else "0")
    if value is None:
        return default
    if value.lower() in _TRUE:
        return True
    if value.lower() in _FALSE:
        return False
    raise SettingRefused(f"{name} must be one of 1, 0, true, false, yes, no, on or off.")


def number(name: str, default: int, *, minimum: int = 0, maximum: int = 10**12) -> int:
    """Read a whole number within bounds.

    Raises: SettingRefused when it is no plain number or lies outside the bounds.
    """
    value = _read(name, str(default))
    if value is None:
        return default
    # int() alone would take "1_000", "+5" and digits of other scripts.
    if not re.fullmatch(r"-?[0-9]{1,15}", value):
        raise SettingRefused(f"{name} must be a whole number, not {value!r}.")
    if not minimum <= int(value) <= maximum:
        raise SettingRefused(f"{name} must be between {minimum} and {maximum}, not {value}.")
    return int(value)


def choice(name: str, default: str, choices: Sequence[str]) -> str:
    """Read one word of a closed list.

    Raises: SettingRefused when the word is not in the list.
    """
    value = _read(name, default) or default
    if value not in choices:
        raise SettingRefused(f"{name} must be one of {', '.join(choices)}, not {value!r}.")
    return value


def words(name: str, default: Sequence[str] | None = None) -> list[str]:
    """Read a comma-separated list; without a default at least one word is required.

    Raises: SettingRefused when it is required and empty.
    """
    value = _read(name, None if default is None else ",".join(default))
    if value is None:
        if default is None:
            raise SettingRefused(f"{name} must be set: a comma-separated list.")
        return list(default)
    found = [word.strip() for word in value.split(",")]
    if not all(found):
        raise SettingRefused(f"{name} has an empty place between its commas.")
    return found


def url(name: str, schemes: Sequence[str], default: str | None = None) -> str:
    """Read an address with one of the given schemes.

    Raises: SettingRefused when it is required and unset, or no such address. The message never
        repeats the value, which may hold a password.
    """
    value = _read(name, default)
    if value is None:
        if default is None:
            raise SettingRefused(f"{name} must be set: an address like {schemes[0]}://….")
        return default
    return url_checked(name, value, schemes)


def url_checked(name: str, value: str, schemes: Sequence[str]) -> str:
    """Return the address if it has one of the schemes and a place to connect to.

    Raises: SettingRefused otherwise; the message never repeats the value.
    """
    wanted = " or ".join(f"{scheme}://" for scheme in schemes)
    try:
        parts = urlsplit(value)
        _ = parts.port
    except ValueError:
        raise SettingRefused(f"{name} is not a readable address.") from None
    if parts.scheme not in schemes or not (parts.netloc or parts.path.strip("/")):
        raise SettingRefused(f"{name} must be an address that starts with {wanted}.")
    return value


def amounts(
    name: str,
    default: dict[str, int],
    *,
    closed: bool = False,
    minimum: int = 0,
    maximums: Mapping[str, int] | None = None,
) -> dict[str, int]:
    """Read `KEY=number` pairs that replace those of the default; a closed set takes no new key.

    A key that `maximums` does not name may be as large as anybody wants.

    Raises: SettingRefused when a pair is malformed, repeated, of an unknown key or out of bounds.
    """
    value = _read(name, ",".join(f"{key}={number}" for key, number in default.items()))
    found: dict[str, int] = {}
    for piece in (value or "").split(",") if value else []:
        match = _PAIR.fullmatch(piece.strip())
        if match is None:
            raise SettingRefused(f"{name} must look like KEY=123,KEY=456; {piece!r} does not.")
        key = match["key"]
        if key in found:
            raise SettingRefused(f"{name} names {key} twice.")
        if closed and key not in default:
            raise SettingRefused(f"{name} knows {', '.join(default)}, not {key}.")
        if not closed and not re.fullmatch(r"[A-Z]{3}", key):
            raise SettingRefused(f"{name} takes currencies of three capital letters, not {key}.")
        found[key] = _within(name, key, int(match["value"]), minimum, (maximums or {}).get(key))
    return {**default, **found}


def _within(name: str, key: str, value: int, low: int, high: int | None) -> int:
    if high is not None and not low <= value <= high:
        raise SettingRefused(f"In {name}, {key} must be between {low} and {high}.")
    if value < low:
        raise SettingRefused(f"In {name}, {key} must be at least {low}.")
    return value
