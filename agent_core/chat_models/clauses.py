"""Cut a message into requests: where another one begins, and nowhere else. Pure text."""

from __future__ import annotations

import re
from typing import Final

from agent_core.chat_models import phrases

POLITE: Final = (
    r"(?:(?:please|kindly|also|then|now|and|but|next|finally|first|after(?:wards| that)|hi|hello|"
    r"hey|ok(?:ay)?|thanks|so|just|could you|can you|would you|will you|you (?:can|should)|"
    r"i(?:'d| would) like(?: you)? to|i (?:want|need)(?: you)? to|let(?:'s| us)|go ahead and|"
    r"help me)\b[\s,:!.]*)*"
)
ACTION: Final = r"(?:refund|reimburse|charge|collect|bill)"
DENY: Final = r"(?:do not|don't|don\u2019t|dont|never)"
_TICKET: Final = r"(?:open|create|raise|file|log|make|add|write|start)\b.{0,24}\bticket\b|ticket\b"
_VERB: Final = (
    rf"(?:{ACTION}\b|(?:give|pay|send)\b.{{0,40}}\bback\b|return the money"
    r"|(?:make|issue|do|request|start|take)\s+(?:an?|the|another)\s+(?:\w+\s+)?"
    r"(?:refund|charge|payment)\b"
    r"|find\b|look(?:ing)?\s*up\b|look for\b|search\b|export\b|download\b|show\b|list\b|tell me\b"
    rf"|{_TICKET}|(?:what|how|who|help|why|when|where|which)\b|{DENY}\b"
    r"|(?:send|give|get|make|create)\s+(?:me\s+)?(?:an?|the)\s+(?:csv|export|list)\b)"
)
GREETING: Final = re.compile(
    r"\W*(?:hi|hello|hey|good (?:morning|afternoon|evening)|thanks?(?: you)?|thank you|"
    r"what can you do|help|start)(?:\s+(?:there|all|so much|a lot|very much))?\W*$",
    re.IGNORECASE,
)
_STARTS: Final = re.compile(rf"{POLITE}{_VERB}", re.IGNORECASE)
_HOLDS: Final = re.compile(rf"\b{_VERB}", re.IGNORECASE)
_IN_TICKET: Final = re.compile(rf"\b(?:{_TICKET})", re.IGNORECASE)
# What may follow "and" in place of a verb: "refund 5.00 of PAY-1 and 500.00 of PAY-2".
_CARRIES_ON: Final = re.compile(
    r"(?:also\s+)?(?:(?:the\s+)?(?:payment|invoice|order|customer)\s+)?"
    r"(?:(?:PAY|INV|CUS)-\w|#W\d|[\w.+-]+@[\w-]+\."
    r"|[€$£¥]?\d[\d.,]*\s*(?:EUR|USD|GBP|JPY|€|euros?|dollars?|yen)?\s+(?:of|for|on|from|to)\b"
    r"|(?:the\s+)?(?:last|latest)\s+payment\b)",
    re.IGNORECASE,
)
_VERB_CARRIED: Final = re.compile(rf"\b(?P<verb>{ACTION}|find|look\s*up)\b", re.IGNORECASE)
# More than anyone asks for in one message; it bounds the work.
MOST: Final = 24
SENTENCE: Final = 400
_HARD: Final = r"\s*(?:\n+|;|[.!?](?=\s))\s*(?:and\s+)?"
_SOFT: Final = (
    r"\s*,?\s+(?:and\s+then|and\s+also|and|but|then|plus|as\s+well\s+as|also)\s+|\s*,(?!\d)\s*"
)
_SEPARATOR: Final = re.compile(rf"(?P<hard>{_HARD})|(?P<soft>{_SOFT})", re.IGNORECASE)


def clauses_of(text: str) -> list[str]:
    """Return the requests of a message, each as it was written; past `MOST` it is not cut."""
    parts: list[str] = []
    rest = text.strip()
    while rest and len(parts) <= MOST:
        left, rest = _cut(rest)
        parts.append(left)
    # The rest stays, so that a condition at the very end is still read.
    return _joined([*parts, rest] if rest else parts)


def without_polite(clause: str) -> str:
    """Return the clause without its courtesies and its final mark."""
    bare = re.sub(rf"^{POLITE}", "", clause, flags=re.IGNORECASE).strip().rstrip("?!. ")
    return re.sub(r"[\s,]+(?:please|thanks|thank you)$", "", bare, flags=re.IGNORECASE)


def _cut(text: str) -> tuple[str, str]:
    """Return the first request and the text after it."""
    quoted = [match.span() for match in phrases.QUOTED.finditer(text)]
    for number, mark in enumerate(_SEPARATOR.finditer(text)):
        left, right = text[: mark.start()].strip(), text[mark.end() :]
        if number > MOST * 8:
            break
        if not left or not right.strip() or any(a < mark.start() < b for a, b in quoted):
            continue
        if _begins(left, right, mark.group().strip(), hard=mark["hard"] is not None):
            return left, right.strip()
        verb = _VERB_CARRIED.search(left)
        if verb and _carries(left, right, mark.group()) and not _IN_TICKET.search(left):
            return left, f"{verb['verb']} {right.strip()}"
    return text.strip(), ""


def _carries(left: str, right: str, mark: str) -> bool:
    """Tell whether `right` has the verb of `left`; an amount before it could be meant for both."""
    following = _CARRIES_ON.match(right)
    if following is None or "but" in mark.lower().split():
        return False
    return not phrases.amounts_in(left) or bool(phrases.amounts_in(following.group()))


def _begins(left: str, right: str, mark: str, *, hard: bool) -> bool:
    """Tell whether `right` begins a request of its own."""
    if _STARTS.match(right):
        # In what a ticket is about a comma parts words, not requests.
        return mark != "," or _IN_TICKET.search(left) is None
    sentence = re.split(r"[\n;]|[.!?]\s", right.strip()[:SENTENCE], maxsplit=1)[0]
    # What follows the subject of a ticket is its text, unless it begins like an order.
    return hard and _HOLDS.search(sentence) is not None and not _IN_TICKET.search(left)


def _joined(parts: list[str]) -> list[str]:
    """Join a part that asks for nothing ("for PAY-1,") to the request that follows it."""
    clauses: list[str] = []
    waiting = ""
    for number, part in enumerate(parts, 1):
        clause = f"{waiting} {part}".strip()
        waiting = ""
        if number < len(parts) and not _HOLDS.search(part) and not GREETING.match(part):
            waiting = clause
        else:
            clauses.append(clause)
    return clauses
