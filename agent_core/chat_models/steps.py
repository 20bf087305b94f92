"""The next step towards one need: look something up, act, or say something. Pure.

References come from the staff member's words, from what the tools answered since, or from the
newest earlier text that names one; none is ever made up.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

from agent_core.chat_models import phrases
from agent_core.chat_models.requests import Need
from agent_core.chat_models.window import Reply, Window

LISTED: Final = 6
SHORT_TEXT: Final = 240


@dataclass(frozen=True, slots=True)
class Look:
    """Something must be looked up before the need can be met."""

    tool: str
    arguments: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Act:
    """The call that meets the need; `reads` when it changes nothing and cannot end the turn."""

    tool: str
    arguments: Mapping[str, str]
    reads: bool = False


@dataclass(frozen=True, slots=True)
class Say:
    """The need ends with words: an answer, a question, or why it cannot be met."""

    text: str
    replies: tuple[Reply, ...] = field(default=())


Step = Look | Act | Say


@dataclass(frozen=True, slots=True)
class _Found:
    """A customer's reference with the text it was read from, or the step that is due first."""

    reference: str = ""
    text: str = ""
    step: Step | None = None


def step_next(need: Need, window: Window, needs: list[Need]) -> Step:
    """Return the next step towards `need`; `needs` are all of the message, for what "it" means."""
    toward = _TOWARD.get(need.kind)
    return toward(need, window, needs) if toward else Say("")


def _act(
    window: Window,
    tool: str,
    arguments: Mapping[str, str],
    *,
    reads: bool = False,
    whole: bool = False,
) -> Step:
    """Call the tool once; what it answered is the last word on this need."""
    given = {name: value for name, value in arguments.items() if value}
    reply = window.reply(tool, given)
    if reply is None:
        return Act(tool, given, reads)
    return Say(reply.text.strip() if whole else _told(reply.text), (reply,))


def _told(text: str) -> str:
    """Return a short text as it is, so that "nothing was charged" is never lost; else its start."""
    plain = " ".join(text.split())
    return plain if len(plain) <= SHORT_TEXT else phrases.sentence_of(text)


def _find(need: Need, window: Window, needs: list[Need]) -> Step:
    if not need.key:
        return Say("Whom shall I look up? Give me a name, an e-mail address or a reference.")
    return _act(window, "customer_find", {"key": need.key}, reads=True, whole=True)


def _paid(need: Need, window: Window, needs: list[Need]) -> Step:
    arguments = {"customer": need.key or _key_of_another(needs), "period": need.period}
    return _act(window, "payments_list", arguments, reads=True, whole=True)


def _refund(need: Need, window: Window, needs: list[Need]) -> Step:
    if need.part and not need.amount:
        return Say("Which amount of which payment shall I refund? Please write it like 5.00.")
    # An order stands for its payment, so it needs no look-up.
    named = [need.reference] if need.reference else phrases.orders_in(need.key)
    if not named and not need.key and not need.newest:
        named = _pointed_at("PAY", window, needs)
    if len(named) == 1:
        return _refund_of(named[0], need, window)
    found = _customer(need.key, window, needs)
    if named and not found.reference:
        return Say(f"Which payment shall I refund: {', '.join(named[:LISTED])}?")
    return found.step or _refund_listed(need, window, found)


def _refund_listed(need: Need, window: Window, found: _Found) -> Step:
    """Choose the payment from the list: the newest when that was asked, else the only one."""
    text = found.text
    if not text:
        looked = {"customer": found.reference} if found.reference else {}
        reply = window.reply("payments_list", looked)
        if reply is None:
            return Look("payments_list", looked)
        text = reply.text
    lines = _lines_of("PAY", text)
    paid = [line for line in lines if not re.search(r"\bfailed\b", line)] or lines
    if not paid:
        return Say(f"I see no payment to refund.\n{text.strip()}")
    if need.newest or len(paid) == 1:
        return _refund_of(phrases.references_in(_newest(paid), "PAY")[0], need, window)
    listed = "\n".join(paid[:LISTED])
    return Say(f"Which payment shall I refund?\n{listed}")


def _newest(lines: list[str]) -> str:
    """Return the line with the latest date; the first one when none has a date."""
    dated = [(max(re.findall(r"\d{4}-\d\d-\d\d", line), default=""), line) for line in lines]
    latest = max(date for date, _line in dated)
    return next(line for date, line in dated if date == latest)


def _refund_of(payment: str, need: Need, window: Window) -> Step:
    arguments = {"payment": payment, "amount": need.amount, "reason": need.reason}
    return _act(window, "refund_request", arguments)


def _charge(need: Need, window: Window, needs: list[Need]) -> Step:
    if need.part:
        return Say("An open invoice can only be charged as a whole. Which invoice shall I charge?")
    named = [need.reference] if need.reference else []
    if not named and not need.key:
        named = _pointed_at("INV", window, needs)
    # An amount is held against the open one, so it needs a look at the invoice.
    if len(named) == 1 and not need.amount:
        return _charge_of(named[0], need, window)
    found = _customer(need.reference or need.key, window, needs)
    return found.step or _charge_listed(need, window, found)


def _charge_listed(need: Need, window: Window, found: _Found) -> Step:
    """Choose the invoice from what the look-up says; the amount must be the whole open one."""
    text = found.text
    if not text:
        # Without a name the conversation's own customer is meant, whom only the tool knows.
        tool = "customer_find" if found.reference else "payments_list"
        looked = {"key": found.reference} if found.reference else {}
        reply = window.reply(tool, looked)
        if reply is None:
            return Look(tool, looked)
        text = reply.text
    lines = _lines_of("INV", text)
    if need.reference:
        lines = [line for line in lines if _names(line, need.reference)]
    fitting = [line for line in lines if _has_amount(line, need.amount)]
    named = [each for line in fitting for each in phrases.references_in(line, "INV")]
    if len(named) == 1:
        return _charge_of(named[0], need, window)
    return Say(_unchosen(named, fitting or lines, text))


def _unchosen(named: list[str], lines: list[str], text: str) -> str:
    listed = "\n".join(lines[:LISTED])
    if named:
        return f"Which invoice shall I charge?\n{listed}"
    if lines:
        return f"I can only charge the whole open amount. Shall I charge this?\n{listed}"
    return text.strip() if "?" in text else "There is no open invoice to charge."


def _charge_of(invoice: str, need: Need, window: Window) -> Step:
    return _act(window, "charge_invoice", {"invoice": invoice, "method": need.method})


def _ticket(need: Need, window: Window, needs: list[Need]) -> Step:
    payment = need.reference
    points = re.search(r"\b(?:it|this|that|(?:the|this|that) (?:payment|refund))\b", need.words)
    if not payment and points:
        named = _pointed_at("PAY", window, needs)
        payment = named[0] if len(named) == 1 else ""
    others = "; ".join(other.words for other in needs if other.kind in ("charge", "refund"))
    subject = need.about or (f"Follow-up: {others}" if others else "")
    if not subject and payment:
        subject = f"Payment {payment}"
    if not subject:
        return Say("What is the ticket about?")
    subject = _cut(" ".join(subject.split()), 100)
    return _act(
        window,
        "ticket_create",
        {"subject": subject[:1].upper() + subject[1:], "body": need.words, "payment": payment},
    )


def _export(need: Need, window: Window, needs: list[Need]) -> Step:
    if not need.period:
        return Say("For which period shall I export? For example last month, or March 2026.")
    arguments = {
        "kind": need.what,
        "period": need.period,
        "currency": need.currency,
        "format": need.format,
    }
    return _act(window, "export_payments", arguments)


def _search(need: Need, window: Window, needs: list[Need]) -> Step:
    return _act(window, "articles_search", {"question": need.about}, whole=True)


def _customer(key: str, window: Window, needs: list[Need]) -> _Found:
    """Return the one customer that is meant, looking the key up first."""
    key = key or _key_of_another(needs) or (window.named_earlier("CUS") or [""])[0]
    if not key:
        return _Found()
    reply = window.reply("customer_find", {"key": key})
    if reply is None:
        if re.fullmatch(r"CUS-[\w-]+", key):
            return _Found(reference=key)
        return _Found(step=Look("customer_find", {"key": key}))
    named = phrases.references_in(reply.text, "CUS")
    if len(named) == 1:
        return _Found(reference=named[0], text=reply.text)
    return _Found(step=Say(reply.text.strip(), (reply,)))


def _key_of_another(needs: list[Need]) -> str:
    """Return the customer that another part of the same message names."""
    keys = dict.fromkeys(need.key for need in needs if need.key)
    return next(iter(keys)) if len(keys) == 1 else ""


def _pointed_at(kind: str, window: Window, needs: list[Need]) -> list[str]:
    """Return what "it" can mean: named in this message, or in the newest text that names one."""
    here = [each for need in needs for each in phrases.references_in(need.words, kind)]
    return list(dict.fromkeys(here)) or window.meant_earlier(kind)


def _names(line: str, key: str) -> bool:
    return key.lstrip("#").lower() in line.lower()


def _has_amount(line: str, amount: str) -> bool:
    if not amount:
        return True
    wanted = _digits(amount)
    offered = [_digits(match["number"]) for match in phrases.AMOUNT.finditer(line)]
    return wanted in offered or f"{wanted}00" in offered


def _digits(amount: str) -> str:
    return re.sub(r"[^0-9]", "", amount)


def _lines_of(kind: str, text: str) -> list[str]:
    """Return the lines that are about one reference of this kind: it stands first in them."""
    return [
        line.strip()
        for line in text.splitlines()
        if [each[:3] for each in phrases.references_in(line)][:1] == [kind]
    ]


def _cut(text: str, length: int) -> str:
    if len(text) <= length:
        return text
    return (
        text[: text.rfind(" ", 0, length) if " " in text[:length] else length].rstrip(" ,;") + "…"
    )


_TOWARD: Final[Mapping[str, Callable[[Need, Window, list[Need]], Step]]] = {
    "find": _find,
    "paid": _paid,
    "refund": _refund,
    "charge": _charge,
    "ticket": _ticket,
    "export": _export,
    "search": _search,
}
