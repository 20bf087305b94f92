"""What a staff member asks for: one message, in free word order, to needs. Pure text."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from agent_core.chat_models import phrases
from agent_core.chat_models.clauses import ACTION, clauses_of, without_polite
from agent_core.chat_models.kinds import Kind, core_of, is_inquiry, kind_of, reason_of
from agent_core.chat_models.languages import is_foreign
from agent_core.chat_models.needs import Need
from agent_core.chat_models.orders import (
    LONGEST,
    Doubt,
    export_doubt,
    is_asked_of_us,
    money_doubt,
    reason_turns,
    ticket_doubt,
)
from agent_core.chat_models.phrases import NAME
from agent_core.chat_models.scope import held_back

_OWN: Final = (
    r"(?:^|\b(?:refund|charge|collect|bill|of|show|list|for|find|me|up|are|were|and)\s+)"
    r"(?P<name>[^\W\d_][\w.-]*(?:\s+[^\W\d_][\w.-]*){0,3}?)['\u2019]s\s+"
)
_LETS: Final = re.compile(r"\blet['\u2019]s\b", re.IGNORECASE)
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
_FOR: Final = re.compile(r"^for\s+", re.IGNORECASE)
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
    if is_foreign(text):
        return [Need(kind="foreign", words=text)]
    needs = held_back([need for clause in clauses_of(text) for need in _needs_of(clause)])
    if len(needs) > 1:
        needs = [need for need in needs if need.kind != "greeting"] or needs[:1]
    return list(dict.fromkeys(needs))


def _needs_of(clause: str) -> list[Need]:
    kind = kind_of(clause)
    read = _READERS.get(kind)
    needs = read(clause) if read else [Need(kind=kind, words=clause)]
    if kind == "charge" and phrases.references_in(core_of(clause), "PAY", "REF", "TCK", "EXP"):
        return [Need(kind="doubt", words=clause)]
    return _asked_instead(clause) if any(each.kind == "doubt" for each in needs) else needs


def _asked_instead(clause: str) -> list[Need]:
    """Look up what the clause names when it asks about it; else someone has to be asked."""
    found = _finds(clause) if is_inquiry(clause) and len(clause) <= LONGEST else []
    keyed = [need for need in found if phrases.without_keys(need.key).strip(" #") == ""]
    return keyed or [Need(kind="doubt", words=clause)]


def key_in(text: str) -> str:
    """Return the key that leads to a customer: address, reference, order or name."""
    text = _LETS.sub(" ", text[:LONGEST])
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
    core, why = _parted(clause)
    method = _METHOD.search(core) if kind == "charge" else None
    newest, ordinal = _NEWEST.search(core), phrases.ORDINAL.search(core)
    named = phrases.references_in(core, prefix)
    key = "" if named else key_in(core)
    given = [match.group() for match in (method, newest, ordinal) if match]
    part = _PART.search(core)
    given += [part.group()] if part else []
    name = "" if phrases.without_keys(key).strip(" #") == "" else key
    doubt = _doubt_of(clause, given, name, why)
    if doubt == "order":
        return [Need(kind="doubt", words=clause)]
    base = Need(
        kind=kind,
        words=clause,
        amount="" if doubt or part else phrases.amount_in(_without(core, given)),
        newest=newest is not None,
        ordinal=phrases.ordinal_in(core),
        part=part is not None or doubt == "amount",
        reason=reason_of(clause) or _FOR.sub("", why).strip().rstrip(".!"),
        method=" ".join(method["method"].split()) if method else "",
    )
    if named:
        return [replace(base, reference=reference) for reference in named]
    return [replace(base, key=key)]


def _parted(clause: str) -> tuple[str, str]:
    """Return the clause without its reasons, and the one of the form "for a late parcel"."""
    core = core_of(clause)
    why = _FOR_REASON.search(phrases.without_keys(core[:LONGEST]))
    written = why.group().rstrip() if why else ""
    return (core.replace(written, " "), written) if written else (core, "")


def _doubt_of(clause: str, given: list[str], name: str, why: str) -> Doubt:
    core, reason = _parted(clause)[0], reason_of(clause)
    if reason_turns(reason) or ("?" in clause and not is_asked_of_us(clause)):
        return "order"
    keys = (phrases.addresses_in(core), phrases.orders_in(core), phrases.references_in(core, "CUS"))
    if any(len(each) > 1 for each in keys):
        return "order"
    return money_doubt(core, given, name=name, why=why)


def _without(text: str, parts: list[str]) -> str:
    for part in parts:
        text = text.replace(part, " ", 1)
    return text


def _ticket(clause: str) -> list[Need]:
    if ticket_doubt(clause):
        return [Need(kind="doubt", words=clause)]
    payment = phrases.references_in(clause, "PAY")
    about = _subject_of(clause)
    return [Need(kind="ticket", words=clause, about=about, reference=(payment or [""])[0])]


def _subject_of(clause: str) -> str:
    """Return what the ticket is about, when the clause says more than "it" or a reference."""
    quoted = phrases.QUOTED.search(clause)
    match = _ABOUT.search(clause) or _TICKET_FOR.search(clause)
    # Quotes are the subject only when nothing introduces a longer one around them.
    if quoted and not (match and match.start("about") <= quoted.start()):
        return " ".join(quoted.group().split()).strip(" \"“”'.?!")
    about = " ".join(match["about"].split()).strip(" .?!'") if match else ""
    if phrases.QUOTED.fullmatch(about):
        about = about.strip(" \"“”'.?!")
    says_more = _POINTER.sub("", phrases.without_keys(about)).strip(" .,")
    return about if says_more else ""


def _export(clause: str) -> list[Need]:
    if export_doubt(clause):
        return [Need(kind="doubt", words=clause)]
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
