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
from agent_core.chat_models.listed import has_amount, lines_of, newest_of
from agent_core.chat_models.needs import Need
from agent_core.chat_models.window import Reply, Window

LISTED: Final = 6
SHORT_TEXT: Final = 240
SUBJECT: Final = 100


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
    if need.part:
        return Say("Which amount of which payment shall I refund? Please write it like 5.00.")
    if need.ordinal and not need.key:
        return _refund_shown(need, window)
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


def _refund_shown(need: Need, window: Window) -> Step:
    """Refund the one that an ordinal means in the newest list of payments that was shown."""
    shown = lines_of("PAY", window.shown("PAY"))
    if len(shown) < need.ordinal:
        return Say("Which payment shall I refund?")
    return _refund_of(phrases.references_in(shown[need.ordinal - 1], "PAY")[0], need, window)


def _refund_listed(need: Need, window: Window, found: _Found) -> Step:
    """Choose the payment from the list: the newest when that was asked, else the only one."""
    text = found.text
    if not text:
        looked = {"customer": found.reference} if found.reference else {}
        reply = window.reply("payments_list", looked)
        if reply is None:
            return Look("payments_list", looked)
        text = reply.text
    lines = lines_of("PAY", text)
    paid = [line for line in lines if not re.search(r"\bfailed\b", line)] or lines
    if not paid:
        return Say(f"I see no payment to refund.\n{text.strip()}")
    if need.newest or (len(paid) == 1 and not need.ordinal):
        return _refund_of(phrases.references_in(newest_of(paid), "PAY")[0], need, window)
    listed = "\n".join(paid[:LISTED])
    return Say(f"Which payment shall I refund?\n{listed}")


def _refund_of(payment: str, need: Need, window: Window) -> Step:
    arguments = {"payment": payment, "amount": need.amount, "reason": need.reason}
    return _act(window, "refund_request", arguments)


def _charge(need: Need, window: Window, needs: list[Need]) -> Step:
    if need.part:
        return Say("An open invoice can only be charged as a whole. Which invoice shall I charge?")
    named = [need.reference] if need.reference else []
    if need.ordinal and not need.key:
        shown = lines_of("INV", window.shown("INV"))[need.ordinal - 1 : need.ordinal]
        named = phrases.references_in("".join(shown), "INV")[:1]
        if not named:
            return Say("Which invoice shall I charge?")
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
    lines = lines_of("INV", text)
    if need.reference:
        lines = [line for line in lines if _names(line, need.reference)]
    fitting = [line for line in lines if has_amount(line, need.amount)]
    named = [each for line in fitting for each in phrases.references_in(line, "INV")]
    if len(named) == 1 and not need.ordinal:
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
    others = [other for other in needs if other.kind in ("charge", "refund")]
    if not need.about and others and (first := _undone(others, window, needs)):
        return first
    followed = "; ".join(other.words for other in others)
    subject = need.about or (f"Follow-up: {followed}" if followed else "")
    if not subject and payment:
        subject = f"Payment {payment}"
    if not subject:
        return Say("What is the ticket about?")
    subject = shortened(subject)
    return _act(
        window,
        "ticket_create",
        {"subject": subject[:1].upper() + subject[1:], "body": need.words, "payment": payment},
    )


def _undone(others: list[Need], window: Window, needs: list[Need]) -> Step | None:
    """Return what comes before a ticket that only follows up on others: no ticket is about
    something that was asked back, so it waits for the answer."""
    steps = [step_next(other, window, needs) for other in others]
    look = next((step for step in steps if isinstance(step, Look)), None)
    asked = any(isinstance(step, Say) and not _was_tried(step) for step in steps)
    return look or (Say("") if asked else None)


def _was_tried(step: Say) -> bool:
    return any(reply.tool in ("charge_invoice", "refund_request") for reply in step.replies)


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


def shortened(text: str, length: int = SUBJECT) -> str:
    """Return the text in one line, cut after a word when it is longer than a line of a list."""
    line = " ".join(text.split())
    if len(line) <= length:
        return line
    end = line.rfind(" ", 0, length)
    return line[: end if end > 0 else length].rstrip(" ,;") + "…"


_TOWARD: Final[Mapping[str, Callable[[Need, Window, list[Need]], Step]]] = {
    "find": _find,
    "paid": _paid,
    "refund": _refund,
    "charge": _charge,
    "ticket": _ticket,
    "export": _export,
    "search": _search,
}
