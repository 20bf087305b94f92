"""What a staff member asks for: one message, in free word order, to needs. Pure text."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Final

from agent_core.chat_models import phrases
from agent_core.chat_models.clauses import ACTION, clauses_of, without_polite
from agent_core.chat_models.kinds import Kind, core_of, kind_of, reason_of
from agent_core.chat_models.phrases import NAME


@dataclass(frozen=True, slots=True, kw_only=True)
class Need:
    """One thing that is asked for. `words` is the clause as it was written.

    `key` leads to a customer (address, name, CUS-…, #W…), `reference` is the payment or invoice
    itself, `newest` says that the last one is meant, `part` that only an unnamed part is.
    """

    kind: Kind
    words: str
    key: str = ""
    reference: str = ""
    newest: bool = False
    part: bool = False
    amount: str = ""
    reason: str = ""
    period: str = ""
    about: str = ""
    method: str = ""
    what: str = "payments"
    currency: str = ""
    format: str = "csv"


_OWN: Final = (
    r"(?:^|\b(?:refund|charge|collect|bill|of|show|list|for|find|me|up|are|were|and)\s+)"
    r"(?P<name>[^\W\d_][\w.-]*(?:\s+[^\W\d_][\w.-]*){0,3}?)['\u2019]s\s+"
)
_PERSON: Final = (
    _OWN,
    rf"\b(?:payments?|invoices?|orders?|purchase)\s+(?:of|by|from|for)\s+{NAME}",
    rf"\bdid\s+{NAME}\s+(?:pay|spend)\b",
    rf"\b(?:has|have)\s+{NAME}\s+(?:paid|spent)\b",
    rf"\b(?:of|to|from|for|by)\s+{NAME}",
    rf"\b(?:{ACTION}|reimburse)\s+{NAME}",
)
_NEWEST: Final = re.compile(
    r"\b(?:last|latest|most recent|newest)\s+(?:\w+\s+)?(?:payment|charge|order|one|purchase)\b",
    re.IGNORECASE,
)
_PART: Final = re.compile(
    r"\b(?:half|third|quarter|part(?:ial(?:ly)?)?|some|percent|both|all (?:the )?payments|"
    r"every payment)\b|\d\s?%",
    re.IGNORECASE,
)
_FOR_REASON: Final = re.compile(
    r"\bfor\s+(?P<reason>(?:an?|the|being|late|wrong|missing|damaged|broken)\b(?!.*\b(?:payment|"
    r"order|invoice|customer)\b).+)",
    re.IGNORECASE,
)
_METHOD: Final = re.compile(
    r"\b(?:on|with|by|using|via|to|from)\s+(?:the|his|her|their|a|saved)?\s*"
    r"(?P<method>paypal|gift\s?card|visa|mastercard|amex|american express|"
    r"(?:card\s+)?(?:ending(?:\s+in)?|number)\s+\d{4}|[•*x]*\d{4})\b",
    re.IGNORECASE,
)
_ABOUT: Final = re.compile(
    r"(?:\b(?:about|regarding|concerning|re|saying(?:\s+that)?|titled|called|that|because|"
    r"on the subject of)\b:?\s+|:\s*)(?P<about>.+)",
    re.IGNORECASE | re.DOTALL,
)
_TICKET_FOR: Final = re.compile(r"\bticket\s+(?:for|on|to)\s+(?P<about>.+)", re.IGNORECASE)
_POINTER: Final = re.compile(
    r"\b(?:it|this|that|them|both|the|for|on|of|payments?|refunds?|invoices?|customers?|too)\b",
    re.IGNORECASE,
)
_FIND_START: Final = re.compile(
    r"(?:find|look(?:ing)?\s*up|look for|search(?:\s+for)?|show(?:\s+me)?|who\s+is|get|pull\s+up|"
    r"check|tell me about|do we know|and)\s+",
    re.IGNORECASE,
)
_THING: Final = re.compile(
    r"(?:the\s+|an?\s+|our\s+)?(?:(?:customer|client|person|account|buyer|details of|record of)"
    r"\s+)?(?:(?:named|called|with(?:\s+the)?\s+(?:name|e-?mail(?:\s+address)?|address))\s+)?",
    re.IGNORECASE,
)
_SEARCH_START: Final = re.compile(
    r"(?:(?:search|look|find|check|show)\b\s*(?:me\b\s*)?(?:in\b\s*|up\b\s*)?)?"
    r"(?:(?:the|our|an?)\s+)?(?:(?:help\s+)?articles?\b\s*|knowledge(?:\s+base)?\b\s*|help\b\s*)?"
    r"(?:me\b\s*)?(?:(?:for|about|on|with)\s+)?",
    re.IGNORECASE,
)
_FORMATS: Final = {"xlsx": "xlsx", "excel": "xlsx", "json": "json", "pdf": "pdf", "csv": "csv"}


def needs_read(text: str) -> list[Need]:
    """Return what the message asks for, in its order, without exact repeats."""
    needs = [need for clause in clauses_of(text) for need in _needs_of(clause)]
    if len(needs) > 1:
        needs = [need for need in needs if need.kind != "greeting"] or needs[:1]
    return list(dict.fromkeys(needs))


def _needs_of(clause: str) -> list[Need]:
    kind = kind_of(clause)
    read = _READERS.get(kind)
    return read(clause) if read else [Need(kind=kind, words=clause)]


def key_in(text: str) -> str:
    """Return the key that leads to a customer: address, reference, order or name."""
    exact = [
        *phrases.addresses_in(text),
        *phrases.references_in(text, "CUS", "INV", "PAY"),
        *phrases.orders_in(text),
    ]
    if exact:
        return exact[0]
    names = (phrases.name_in(text, pattern) for pattern in _PERSON)
    return next((name for name in names if name), "")


def _finds(clause: str) -> list[Need]:
    keys = [
        *phrases.addresses_in(clause),
        *phrases.orders_in(clause),
        *phrases.references_in(clause, "CUS", "INV", "PAY", "REF"),
    ]
    if not keys:
        rest = _FIND_START.sub("", without_polite(clause), count=1)
        keys = [_THING.sub("", rest, count=1).strip(" '\"“”.")]
    return [Need(kind="find", words=clause, key=key) for key in keys]


def _paid(clause: str) -> list[Need]:
    key = key_in(clause)
    period = phrases.period_in(clause.replace(key, " ") if key else clause)
    return [Need(kind="paid", words=clause, key=key, period=period)]


def _refund(clause: str) -> list[Need]:
    return _moves(clause, "refund", "PAY")


def _charge(clause: str) -> list[Need]:
    return _moves(clause, "charge", "INV")


def _moves(clause: str, kind: Kind, prefix: str) -> list[Need]:
    """Return one need for each payment or invoice the clause names, one when it names none."""
    core = core_of(clause)
    why = _FOR_REASON.search(phrases.without_keys(core))
    if why is not None:
        core = core.replace(why.group(), " ")
    method = _METHOD.search(core) if kind == "charge" else None
    base = Need(
        kind=kind,
        words=clause,
        amount=phrases.amount_in(core.replace(method.group(), " ") if method else core),
        newest=_NEWEST.search(core) is not None,
        part=_PART.search(core) is not None,
        reason=reason_of(clause) or (why["reason"].strip().rstrip(".!") if why else ""),
        method=" ".join(method["method"].split()) if method else "",
    )
    named = phrases.references_in(core, prefix)
    if named:
        return [replace(base, reference=reference) for reference in named]
    return [replace(base, key=key_in(core))]


def _ticket(clause: str) -> list[Need]:
    payment = phrases.references_in(clause, "PAY")
    about = _subject_of(clause)
    return [Need(kind="ticket", words=clause, about=about, reference=(payment or [""])[0])]


def _subject_of(clause: str) -> str:
    """Return what the ticket is about, when the clause says more than "it" or a reference."""
    quoted = phrases.QUOTED.search(clause)
    match = _ABOUT.search(clause) or _TICKET_FOR.search(clause)
    about = quoted.group() if quoted else match["about"] if match else ""
    about = " ".join(about.split()).strip(" \"“”'.?!")
    says_more = _POINTER.sub("", phrases.without_keys(about)).strip(" .,")
    return about if says_more else ""


def _export(clause: str) -> list[Need]:
    words = clause.lower()
    format_ = next((value for word, value in _FORMATS.items() if word in words), "csv")
    currency = phrases.CURRENCY.search(clause)
    need = Need(
        kind="export",
        words=clause,
        what="refunds" if re.search(r"\brefunds?\b", words) else "payments",
        period=phrases.period_in(clause),
        currency=currency.group() if currency else "",
        format=format_,
    )
    return [need]


def _search(clause: str) -> list[Need]:
    return [Need(kind="search", words=clause, about=_question_of(clause))]


def _question_of(clause: str) -> str:
    bare = without_polite(clause)
    rest = _SEARCH_START.sub("", bare, count=1).strip(' "“”:.')
    return rest or bare


_READERS: Final[Mapping[str, Callable[[str], list[Need]]]] = {
    "find": _finds,
    "paid": _paid,
    "refund": _refund,
    "charge": _charge,
    "ticket": _ticket,
    "export": _export,
    "search": _search,
}
