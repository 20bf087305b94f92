"""A bare answer to the assistant's question completes the earlier request; nothing else does.

A bare answer is only a reference, an address, a name, an amount, a period or which one of a list.
A text with a verb, a denial or a question mark stands alone.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from agent_core.chat_models import phrases
from agent_core.chat_models.listed import has_amount, lines_of, newest_of
from agent_core.chat_models.needs import Need
from agent_core.chat_models.orders import STOP, name_is_plain
from agent_core.chat_models.requests import needs_read
from agent_core.chat_models.scope import EFFECTS
from agent_core.chat_models.window import Asked, Window

LONGEST: Final = 80
LAST: Final = -1

_BEFORE: Final = re.compile(
    r"(?:(?:yes|yeah|ok(?:ay)?|please|thanks|hi|hello|it is|it['\u2019]s|that is|i mean|the|for|of|"
    r"from|order|payment|invoice|customer|amount)\b[\s,:.!]*)*",
    re.IGNORECASE,
)
_AFTER: Final = re.compile(
    r"(?:[\s,]*\b(?:please|thanks|thank you|one|payment|invoice))*[\s.!]*$", re.IGNORECASE
)
_COMMON: Final = re.compile(
    r"\b(?:show|find|look|list|tell|charge|refund|open|export|search|get|give|make|send|do|go|"
    r"help|hello|both|all|any|some|half|everything|it|this|that|them|he|she|they|i|we|you|paid|"
    r"wrong|sorry|done|ready|yes|please|what|who|how|where|which)\b",
    re.IGNORECASE,
)
_CUSTOMER: Final = re.compile(r"\bWhich (?:one|customer)\b|\bWhom\b")


@dataclass(frozen=True, slots=True)
class Given:
    """What a bare answer names; exactly one of these, or an amount with a reference."""

    reference: str = ""
    key: str = ""
    amount: str = ""
    ordinal: int = 0
    period: str = ""
    about: str = ""


def needs_of(window: Window) -> list[Need]:
    """Return what is asked for by the last message, completed from the one before if it answers."""
    return _completed(window) or needs_read(window.words)


def _completed(window: Window) -> list[Need]:
    """Return the requests that are still open, with what the answers gave; none without answers."""
    replies = [*(asked.words for asked in window.asked[1:]), window.words]
    given = [
        answer_read(reply, asked.text) for reply, asked in zip(replies, window.asked, strict=False)
    ]
    # The newest question that was not itself an answer is where the request begins.
    start = max((at + 1 for at, each in enumerate(given) if each is None), default=0)
    if start >= len(given):
        return []
    needs = needs_read(window.asked[start].words)
    for asked, each in zip(window.asked[start:], given[start:], strict=True):
        if each is not None:
            needs = [_filled(need, each, asked) for need in needs]
    acted = frozenset[str]().union(*(asked.acted for asked in window.asked[start:]))
    kinds = (*EFFECTS, "paid")
    return [need for need in needs if need.kind in kinds and TOOL_OF[need.kind] not in acted]


TOOL_OF: Final = {
    "refund": "refund_request",
    "charge": "charge_invoice",
    "ticket": "ticket_create",
    "search": "articles_search",
    "export": "export_payments",
    "find": "customer_find",
    "paid": "payments_list",
}


def answer_read(text: str, question: str) -> Given | None:
    """Return what a bare answer to `question` names, or nothing when the text stands alone."""
    if len(text) > LONGEST or "?" in text or STOP.search(phrases.ORDINAL.sub(" ", text)):
        return None
    if "What is the ticket about" in question:
        plain = all(need.kind in ("find", "unknown", "search") for need in needs_read(text))
        return Given(about=text.strip(" .!")) if plain and not _COMMON.match(text) else None
    bare = text.strip()[_end_of(_BEFORE, text.strip()) :]
    if "For which period" in question:
        period = re.sub(r"^in\s+", "", bare.strip(" .!"))
        return Given(period=period) if phrases.PERIOD.fullmatch(period) else None
    bare = _AFTER.sub("", bare, count=1)
    return _named(bare) or _counted(bare) or _called(bare, question)


def _end_of(pattern: re.Pattern[str], text: str) -> int:
    match = pattern.match(text)
    return match.end() if match else 0


def _named(bare: str) -> Given | None:
    if phrases.REFERENCE.fullmatch(bare):
        reference = bare.upper()
        return Given(key=reference) if reference[:3] == "CUS" else Given(reference=reference)
    if phrases.ADDRESS.fullmatch(bare):
        return Given(key=bare)
    if phrases.ORDER.fullmatch(bare):
        return Given(key=phrases.orders_in(bare)[0])
    return None


def _counted(bare: str) -> Given | None:
    if re.fullmatch(r"last|latest|newest", bare, re.IGNORECASE):
        return Given(ordinal=LAST)
    if ordinal := phrases.ordinal_in(f"{bare} one" if bare else ""):
        return Given(ordinal=ordinal) if " " not in bare else None
    amounts = phrases.amounts_in(bare)
    if len(amounts) != 1 or not amounts[0]:
        return None
    rest = phrases.AMOUNT.sub(" ", bare).split()
    named = phrases.references_in(bare, "PAY")
    if not rest:
        return Given(amount=amounts[0])
    joined = len(rest) == 2 and rest[0].lower() in ("of", "for", "from") and len(named) == 1
    return Given(amount=amounts[0], reference=named[0]) if joined else None


def _called(bare: str, question: str) -> Given | None:
    words = bare.split()
    letters = bool(words) and all(
        re.fullmatch(r"[^\W\d_][^\W\d_.'\u2019-]*(?:[.'\u2019-][^\W\d_]*)*", word) for word in words
    )
    if not letters or not name_is_plain(bare) or _COMMON.search(bare):
        return None
    capital = bare[0].isupper() or _CUSTOMER.search(question)
    return Given(key=bare) if capital else None


def _filled(need: Need, given: Given, asked: Asked) -> Need:
    fill = _FILLS.get(need.kind)
    return fill(need, given, asked) if fill else need


def _filled_move(need: Need, given: Given, asked: Asked) -> Need:
    prefix = "PAY" if need.kind == "refund" else "INV"
    of_amount = "Which amount" in asked.text
    if need.kind == "refund" and of_amount and given.amount:
        # Only the amount that was asked for: one that was read stands.
        need = replace(need, amount=given.amount, part=False) if need.part else need
        given = replace(given, amount="")
    whole = "whole open amount" in asked.text
    if whole and given.amount:
        return replace(need, amount=given.amount)
    if given.reference[:3] == prefix and (whole or need.part or not need.reference):
        # A charge is in full, which the question said, so the amount it named is dropped.
        amount = "" if whole else need.amount
        need = replace(need, part=need.part and need.kind == "refund", amount=amount)
        return replace(need, reference=given.reference, key="", ordinal=0)
    if need.reference:
        return need
    if given.key or given.reference:
        return replace(need, key=given.key or given.reference, ordinal=0)
    chosen = _chosen(prefix, given, asked.text)
    return replace(need, reference=chosen, key="", ordinal=0) if chosen else need


def _chosen(prefix: str, given: Given, text: str) -> str:
    """Return the reference in the one line of the list that an ordinal or an amount means."""
    lines = lines_of(prefix, text)
    if given.ordinal == LAST and lines:
        # Of payments the last one can be the newest or the last line; it is taken when both are.
        both = prefix != "PAY" or newest_of(lines) == lines[-1]
        lines = lines[-1:] if both else []
    elif given.ordinal:
        lines = lines[given.ordinal - 1 : given.ordinal]
    elif given.amount:
        lines = [line for line in lines if has_amount(line, given.amount)]
    else:
        lines = []
    return phrases.references_in(lines[0], prefix)[0] if len(lines) == 1 else ""


def _filled_customer(need: Need, given: Given, asked: Asked) -> Need:
    return replace(need, key=given.key or given.reference or need.key)


def _filled_export(need: Need, given: Given, asked: Asked) -> Need:
    return replace(need, period=need.period or given.period)


def _filled_ticket(need: Need, given: Given, asked: Asked) -> Need:
    return replace(need, about=need.about or given.about)


_FILLS: Final[Mapping[str, Callable[[Need, Given, Asked], Need]]] = {
    "refund": _filled_move,
    "charge": _filled_move,
    "paid": _filled_customer,
    "export": _filled_export,
    "ticket": _filled_ticket,
}
