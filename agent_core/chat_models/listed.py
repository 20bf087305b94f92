"""What a list shows that a tool or the assistant wrote: one thing a line. Pure text."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation

from agent_core.chat_models import phrases


def lines_of(kind: str, text: str) -> list[str]:
    """Return the lines that are about one reference of this kind: it stands first in them."""
    return [
        line.strip()
        for line in text.splitlines()
        if [each[:3] for each in phrases.references_in(line)][:1] == [kind]
    ]


def newest_of(lines: list[str]) -> str:
    """Return the line with the latest date; the first one when none has a date."""
    dated = [(max(re.findall(r"\d{4}-\d\d-\d\d", line), default=""), line) for line in lines]
    latest = max(date for date, _line in dated)
    return next(line for date, line in dated if date == latest)


def has_amount(line: str, amount: str) -> bool:
    """Tell whether the line shows this amount; any line does when none is given."""
    if not amount:
        return True
    shown = [_value(match) for match in phrases.AMOUNT.finditer(phrases.without_keys(line))]
    wanted = [_value(match) for match in phrases.AMOUNT.finditer(amount)]
    return bool(wanted) and any(_alike(wanted[0], each) for each in shown)


def _alike(wanted: tuple[Decimal | None, str], shown: tuple[Decimal | None, str]) -> bool:
    same = wanted[0] is not None and wanted[0] == shown[0]
    return same and (not wanted[1] or not shown[1] or wanted[1] == shown[1])


def _value(match: re.Match[str]) -> tuple[Decimal | None, str]:
    """Return the number with its currency; a comma before two digits at the end is a point."""
    number = re.sub(r",(?=\d\d$)", ".", match["number"].rstrip(".,"))
    unit = match["sign"] or match["before"] or match["after"] or ""
    try:
        return Decimal(number.replace(",", "")), phrases.currency_of(unit)
    except InvalidOperation:
        return None, ""
