"""Which kind of request a clause is. Pure text.

This tells what a clause speaks of; whether it orders that is for `orders` to say. A question never
becomes an action, and a denied action is none.
"""

from __future__ import annotations

import re
from typing import Final, Literal

from agent_core.chat_models import phrases
from agent_core.chat_models.clauses import ACTION, DENY, GREETING, POLITE, without_polite

Kind = Literal[
    "find", "paid", "charge", "refund", "ticket", "search", "export", "status", "greeting",
    "denied", "doubt", "foreign", "unknown",
]  # fmt: skip


def _words(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE)


_BECAUSE: Final = _words(
    r"\s*,?\s*\b(?:because|since|due to(?! be\b)|as (?=(?:the|he|she|it|they|we)\b)|"
    r"(?:the\s+)?reason(?:\s+is|\s*:)?)\s+"
)
_DENIED: Final = _words(
    rf"\b(?:{DENY}|not|no need to|without|cancel|stop|undo|withdraw)\b"
    rf".{{0,25}}\b(?:{ACTION}(?:ing)?|open|create|export|find|search)\b"
)
_QUESTION: Final = _words(
    rf"{POLITE}(?:how\b(?!\s+(?:much|many)\b)|why\b|when\b|where\b|which\b|"
    r"what\s+(?:is|are|was|were|happens|if|about|should|kind|can|may|must|do|does)\b|"
    r"(?:can|may|could|should|must)\s+(?:i|we|one|an?|the|they|customers?)\b|"
    r"(?:is|are|was|were|has|have|had|did|does|am)\s|do\s+(?:i|we|they|customers?|you)\b|"
    r"help\s+(?:me\s+)?(?:with|on|about)\b|explain\b)"
)
_RULES: Final = _words(r"\brefund\s+(?:policy|rules?|deadline|process|articles?|times?)\b")
_DOUBT: Final = _words(r"\b(?:im)?possible\b|\b(?:allowed|right|correct|okay)\s*\?+\s*$")
_REQUEST: Final = _words(
    rf"{POLITE}(?:{ACTION}|find|look|search|export|download|open|create|show|list|tell|who|"
    r"what did|what has|give|make|issue|ticket)\b|.*\b(?:can|could|would|will) you\b"
)
_STATUS: Final = _words(
    r"\bstatus (?:of|for)\b|\bwhat\b.*\bstatus\b|\bany (?:news|update)|\bwhat happened\b|"
    r"\bdid (?:it|that|the \w+) (?:work|go|succeed|arrive)|\bhow far\b|"
    r"\b(?:is|was|has|have) (?:it|that|this|the|my) ?(?:charge|refund|export|ticket|payment)?s?\s?"
    r"(?:been |gone |now |already )*(?:done|through|finished|refunded|charged|ready|made)\b"
)
_STATUS_WORD: Final = _words(r"\bstatus\b")
_PAID: Final = _words(
    r"\bdid\s+.*\b(?:pay|spend)\b|\b(?:has|have)\s+.*\b(?:paid|spent)\b|"
    r"\bpayments?\s+(?:of|by|from|in)\b|\bpayments\b|\bwhat\b.*\bpaid\b"
)
_EXPORT: Final = _words(r"\bexport\b|\bdownload\b|\bcsv\b|\bspreadsheet\b|\bxlsx\b|\bexcel\b")
_TICKET: Final = _words(
    r"\b(?:open|create|raise|file|log|make|add|write|start|new)\b.{0,24}\bticket\b|"
    rf"^{POLITE}ticket\b"
)
_REFUND: Final = _words(
    r"\brefund\b(?!\s+(?:policy|rules?|status|deadline|process|articles?|times?))|\breimburse\b|"
    r"\b(?:give|pay|send)\b.{0,40}\bback\b|\breturn the money\b|\bmoney back\b"
)
_CHARGE: Final = _words(
    r"(?<!\bin )(?<!\bof )(?<!\bno )\b(?:charge|collect|bill)\b|"
    r"\b(?:make|take|do)\s+(?:an?|the)\s+(?:\w+\s+)?(?:charge|payment)\b"
)
_A_CHARGE: Final = _words(
    r"(?<!\bmake )(?<!\bdo )\b(?:the|an?|this|that|any|double|extra|last|wrong|his|her|their|my)"
    r"\s+(?:charge|bill)\b"
)
_INQUIRY: Final = _words(r"\b(?:check|why|whether|status|look|show|find|tell me|know)\b|\?\s*$")
_FIND: Final = _words(
    rf"{POLITE}(?:find|look(?:ing)?\s*up|look for|search(?:\s+for)?|show(?:\s+me)?|who\s+is|get|"
    r"pull\s+up|check|tell me about|do we know)\s+"
)
_SEARCH_FIRST: Final = _words(rf"{POLITE}(?:search|articles?\b|help\b|look\s+(?:for|in))")
_SEARCH: Final = _words(r"\bsearch\b|\barticles?\b|\bhelp\b|\bguide\b|\bpolicy\b|\bhow\b")


def core_of(clause: str) -> str:
    """Return the clause without the reason it gives."""
    return _BECAUSE.split(clause, maxsplit=1)[0]


def reason_of(clause: str) -> str:
    """Return the reason the clause gives, or nothing."""
    parts = _BECAUSE.split(clause, maxsplit=1)
    return parts[1].strip().rstrip(".!; ") if len(parts) > 1 else ""


def kind_of(clause: str) -> Kind:
    """Return the kind of a clause; the order matters, and questions come before actions."""
    if _TICKET.search(clause) and not _question(clause):
        return "ticket" if not _DENIED.match(without_polite(clause)) else "denied"
    core = core_of(clause)
    keyed = has_key(core)
    acts = _REFUND.search(core) is not None
    question = _question(core)
    asks_status = _STATUS.search(core) or (_STATUS_WORD.search(core) and not acts)
    rules: tuple[tuple[Kind, bool], ...] = (
        ("greeting", GREETING.match(core) is not None),
        ("denied", _DENIED.search(core) is not None and not question),
        ("paid", _PAID.search(core) is not None and not acts and not _EXPORT.search(core)),
        ("find", keyed and (question or asks_status is not None)),
        ("status", bool(asks_status)),
        ("search", question or (_SEARCH_FIRST.match(core) is not None and not keyed)),
        ("export", _EXPORT.search(core) is not None),
        ("refund", acts),
        ("charge", _CHARGE.search(core) is not None and not _A_CHARGE.search(core)),
        ("find", keyed or (_FIND.match(core) is not None and not _SEARCH.search(core))),
        ("search", _SEARCH.search(core) is not None),
    )
    return next((kind for kind, matches in rules if matches), "unknown")


def is_inquiry(clause: str) -> bool:
    """Tell whether the clause asks about something that is there, so that looking it up helps."""
    return _question(core_of(clause)) or _INQUIRY.search(clause) is not None


def has_key(text: str) -> bool:
    """Tell whether the text names a customer, payment, invoice, refund or order."""
    return bool(
        phrases.addresses_in(text)
        or phrases.references_in(text, "CUS", "INV", "PAY", "REF")
        or phrases.orders_in(text)
    )


def _question(clause: str) -> bool:
    if _QUESTION.match(clause) or _RULES.search(clause) or _DOUBT.search(clause):
        return True
    return clause.rstrip().endswith("?") and not _REQUEST.match(clause)
