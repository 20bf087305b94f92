"""Whether a clause is an order to act now. Pure text.

An order is recognised by what it may hold and not by what it may not: courtesies, the verb, what it
is about, and words of a short closed list. Anything left over means that somebody is asked.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Final, Literal

from agent_core.chat_models import phrases

# "order": it is not plainly one; "amount": it is, but the amount cannot be read.
Doubt = Literal["", "order", "amount"]
LONGEST: Final = 600

_HEAD: Final = (
    r"(?:(?:please|kindly|hi|hello|hey|there|good (?:morning|afternoon|evening)|thanks|thank you|"
    r"now|then|also|and|ok(?:ay)?|just|first|finally|yes|(?:can|could|would|will) you|"
    r"i(?:['\u2019]d| would) like(?: you)? to|i (?:want|need)(?: you)? to|let(?:['\u2019]s| us)|"
    r"go ahead(?: and)?)\b[\s,:!.]*)*"
)
_LEAD: Final = re.compile(
    rf"{_HEAD}(?P<for>(?:for|of|from|on)\s+)?(?:the\s+)?(?:payment|invoice|order|customer)?\s*"
    rf"(?:{phrases.REFERENCE.pattern}|{phrases.ADDRESS.pattern}|{phrases.ORDER.pattern})"
    r"(?P<mark>\s*[:,])?\s+",
    re.IGNORECASE,
)
_ASKED: Final = re.compile(rf"{_HEAD}", re.IGNORECASE)
_CAN_YOU: Final = re.compile(r"\b(?:can|could|would|will) you\b", re.IGNORECASE)
_MONEY_VERB: Final = re.compile(
    r"(?P<plain>refund|reimburse|charge|collect|bill)\b(?![-'\u2019])"
    r"|(?:give|pay|send)\b(?=.{0,60}\bback\b)|return the money\b"
    r"|(?:make|issue|do|request|start|take)\s+(?:an?|the|another)\s+(?:full\s+)?"
    r"(?:refund|charge|payment)\b",
    re.IGNORECASE,
)
_WISH: Final = re.compile(
    rf"{_HEAD}(?:(?P<own>i (?:want|need)|i(?:['\u2019]d| would) like)\s+)?(?:an?\s+)?(?:full\s+)?"
    r"refund\b",
    re.IGNORECASE,
)
_PLEASE: Final = re.compile(r"\b(?:please|kindly)\b", re.IGNORECASE)
_NOUN: Final = re.compile(r"\s*(?:of|for|on)\b", re.IGNORECASE)
_TELL: Final = re.compile(
    r"[,;]?\s*\b(?:and\s+)?(?:then\s+)?(?:tell|inform|notify)\s+(?:the\s+customer|him|her|them)\b"
    r"(?=\W*$)",
    re.IGNORECASE,
)
_TICKET_VERB: Final = re.compile(
    r"(?:(?:open|create|raise|file|log|make|add|write|start)\s+(?:me\s+)?(?P<between>[^.?!]{0,24}?)"
    r"\b|(?:an?\s+)?(?:new\s+)?)ticket\b",
    re.IGNORECASE,
)
_EXPORT_VERB: Final = re.compile(
    r"(?:export|download|(?:give|send|make|create|get)\s+(?:me\s+)?(?:an?|the)\s+"
    r"(?:csv|export|list|spreadsheet|xlsx|excel)(?:\s+(?:file|list|export))?)\b",
    re.IGNORECASE,
)
_SUBJECT: Final = re.compile(
    r"\b(?:about|regarding|concerning|re|saying|titled|called|that|because|"
    r"on the subject of)\b|:|[\"“]",
    re.IGNORECASE,
)


def _set(words: str) -> frozenset[str]:
    return frozenset(words.split())


_COMMON: Final = _set(
    "the a an of for to from in please kindly thanks thank you now it this that and also "
    "immediately asap"
)
_MONEY_WORDS: Final = _COMMON | _set(
    "on with by his her their its my our 's ’s s customer client payment invoice order "
    "purchase open unpaid outstanding due full whole entire all everything amount total "
    "completely fully entirely back money him them me today rest remaining left"
)
_TICKET_WORDS: Final = _COMMON | _set(
    "on with new another support ticket payment refund charge invoice order customer them me "
    "his her their 's ’s"
)
_EXPORT_WORDS: Final = _COMMON | _set(
    "as payments payment refunds refund all csv xlsx excel json pdf file list spreadsheet "
    "export format me my our between"
)
_FULL: Final = re.compile(r"\b(?:full|whole|entire|all|everything|fully|rest)\b", re.IGNORECASE)

# What makes an order none where free words may stand: in a name, a reason, a clause beside it.
_STOP_WORDS: Final = (
    r"if|unless|until|till|before|after|afterwards|once|when|whenever|while|wait|hold|pause|later|"
    r"soon|tomorrow|tonight|next|nobody|no one|noone|none|never|not|no|nope|nothing|cannot|\w+n't|"
    r"\w+n\u2019t|dont|refuses?|refused|avoid|stop|cancel|forget|undo|ignore|instead|without|only|"
    r"except|excluding|minus|less|but|however|whether|why|provided|assuming|suppose|should|"
    r"maybe|perhaps|might|mondays?|tuesdays?|wednesdays?|thursdays?|fridays?|saturdays?|sundays?"
)
STOP: Final = re.compile(rf"\b(?:{_STOP_WORDS})\b", re.IGNORECASE)
_PAST: Final = re.compile(
    r"\b(?:failed|fails|wrong|already|yesterday|is|was|are|were|has|have|had|did|does|be|been|"
    r"says?|said|wants?|asks?|asked|complains?|complained|thinks?|\w+ly)\b",
    re.IGNORECASE,
)
# A reason is free text, so a comma in it must be followed by more than a "not" to turn it.
_TAIL: Final = re.compile(
    rf"[.;!?\n\u2013\u2014]\s*(?:and\s+|so\s+|please\s+|but\s+)*(?:{_STOP_WORDS})\b"
    r"|,\s*(?:and\s+|so\s+|please\s+|but\s+)*(?:if|unless|until|till|wait|hold|stop|cancel|forget|"
    r"no(?=\W*$|\W+wait)|nobody|don['\u2019]?t|do not|provided|later|tomorrow|next|maybe|"
    r"(?:only|not)\s+(?:if|when|after|once|now|yet|today|before|until|tomorrow))\b"
    rf"|\bbut\b[\s,]*(?:please\s+)?(?:{_STOP_WORDS})\b"
    r"|\b(?:unless|only (?:if|when|after|once)|provided)\b|\bif (?:and only|he|she|they|that)\b",
    re.IGNORECASE,
)
_NUMBER_WORDS: Final = re.compile(
    r"\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|\w+teen|twenty|thirty|"
    r"fort?y|fifty|sixty|seventy|eighty|ninety|hundred|thousand|million|dozen|couple|few|half|"
    r"third|quarter|amount|sum|price|fees?|total|value|rest|cost|difference|"
    r"euros?|dollars?|yen|pounds?|cents?|pence|kr|kronor|francs?|bucks?)\b|\d",
    re.IGNORECASE,
)
_SMALL: Final = _set("van von der den de da dos di del la le el bin al y e")
_EDGES: Final = ' .,;:!?()[]"“”…'


def is_asked_of_us(text: str) -> bool:
    """Tell whether a question mark is a courtesy: "could you refund PAY-1?"."""
    head = _ASKED.match(_LEAD.sub("", text, count=1) if _LEAD.match(text) else text)
    return head is not None and _CAN_YOU.search(head.group()) is not None


def money_doubt(text: str, given: Sequence[str], *, name: str, why: str) -> Doubt:
    """Tell why a refund or charge is not plainly ordered, or nothing when it is.

    `text` is the clause without its reason; `given` are the parts of it that were read (a way to
    pay, an ordinal), `name` the customer's, `why` the reason of the form "for a late parcel".
    """
    if len(text) > LONGEST or ("?" in text and not is_asked_of_us(text)):
        return "order"
    rest = _after_money_verb(text)
    if rest is None or not name_is_plain(name) or STOP.search(why):
        return "order"
    if _NUMBER_WORDS.search(phrases.without_keys(why)):
        return "amount"
    for part in (*given, why, f" {name}"):
        rest = rest.replace(part, " ", 1) if part.strip() else rest
    amounts = phrases.amounts_in(rest)
    left = phrases.AMOUNT.sub(" ", phrases.without_keys(_TELL.sub(" ", rest)))
    doubt = _left_over(left, _MONEY_WORDS | _plural(text))
    if doubt or not amounts:
        return doubt
    several = len(phrases.references_in(text, "PAY", "INV")) > 1
    unclear = len(amounts) > 1 or "" in amounts or several or _FULL.search(left)
    return "amount" if unclear else ""


def _plural(text: str) -> frozenset[str]:
    several = len(phrases.references_in(text, "PAY", "INV")) > 1
    return frozenset({"payments", "invoices"}) if several else frozenset()


def _after_money_verb(text: str) -> str | None:
    """Return what stands after the verb, or nothing when no verb begins the clause."""
    lead = _LEAD.match(text)
    bare = text[lead.end() :] if lead else text
    head = _ASKED.match(bare)
    start = head.end() if head else 0
    verb = _MONEY_VERB.match(bare, start)
    wish = _WISH.match(bare)
    if verb is None and wish is None:
        return None
    rest = bare[verb.end() if verb else wish.end() if wish else 0 :]
    noun = verb is None or (verb["plain"] and _NOUN.match(rest))
    if noun and not ((wish and wish["own"]) or _PLEASE.search(text) or phrases.amounts_in(rest)):
        return None
    # "INV-1 charge" is a heading; "INV-1: charge" and "for INV-1 charge it" are orders.
    if lead and not rest.strip(_EDGES) and not (lead["for"] or lead["mark"] or (head and start)):
        return None
    return rest


def ticket_doubt(text: str) -> Doubt:
    """Tell why a ticket is not plainly ordered; what it is about is free text."""
    lead = _LEAD.match(text)
    bare = text[lead.end() :] if lead else text
    head = _ASKED.match(bare)
    verb = _TICKET_VERB.match(bare, head.end() if head else 0)
    if verb is None or _left_over(verb["between"] or "", _TICKET_WORDS):
        return "order"
    rest = bare[verb.end() :]
    subject = _SUBJECT.search(rest)
    before = rest[: subject.start()] if subject else rest
    asks = text.rstrip().endswith("?") and not is_asked_of_us(text)
    if asks and (subject is None or verb["between"] is None):
        return "order"
    free = re.match(r"\s+(?:for|on|to|with)\b", before, re.IGNORECASE)
    if free:
        return "order" if STOP.search(before) or phrases.PERIOD.search(before) else ""
    return "order" if _left_over(phrases.without_keys(before), _TICKET_WORDS) else ""


def export_doubt(text: str) -> Doubt:
    """Tell why an export is not plainly ordered."""
    head = _ASKED.match(text)
    verb = _EXPORT_VERB.match(text, head.end() if head else 0)
    if verb is None or len(text) > LONGEST or ("?" in text and not is_asked_of_us(text)):
        return "order"
    rest = phrases.CURRENCY.sub(" ", phrases.PERIOD.sub(" ", text[verb.end() :]))
    return "order" if _left_over(rest, _EXPORT_WORDS) else ""


def reason_turns(reason: str) -> bool:
    """Tell whether a reason goes on to a condition: "because it broke, but only if he agrees"."""
    return _TAIL.search(reason) is not None


def name_is_plain(name: str) -> bool:
    """Tell whether this can be a name and nothing else."""
    words = name.split()
    if not words:
        return True
    if len(words) > 4 or STOP.search(name) or _PAST.search(name):
        return False
    capital = [word[0].isupper() for word in words if word.lower() not in _SMALL]
    return all(capital) or not any(capital)


def _left_over(text: str, allowed: frozenset[str]) -> Doubt:
    """Tell what the words mean that nothing accounts for."""
    left = [word.strip(_EDGES).lower() for word in text.split()]
    left = [word for word in left if word and word not in allowed]
    if not left:
        return ""
    rest = " ".join(left)
    numbers = _NUMBER_WORDS.search(rest) or any(sign.isnumeric() for sign in rest)
    return "amount" if numbers and not STOP.search(rest) else "order"
