"""Let the model rewrite a finished answer, and keep the rewrite only if its facts are the same."""

from __future__ import annotations

import logging
import re
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

from agent_core.chat_models.reading import storable, text_of
from agent_core.host import ModelUsage

logger = logging.getLogger(__name__)

_INSTRUCTION: Final = (
    "Rewrite the text for a colleague in plain, friendly words. Keep every amount, date, "
    "reference and name exactly as written, and every negation. Keep each in its own sentence, and "
    "the sentences apart. Add nothing."
)


def _words(listed: str) -> frozenset[str]:
    return frozenset(listed.split())


OPENERS: Final = _words(
    "a all also both charge done export file good great here i in invoice it its of okay on payment"
    " please receipt refund thanks that the their there these they this those ticket we you your"
    " das der die es ich wir"
)
"""Ordinary words that may begin a sentence with a capital; any other word with a capital is a name.
"Will", "Mark" and "An" must not be added: people are called so."""

_DENIALS: Final = _words(
    "not no never nothing none nobody neither nor without refused rejected declined failed unable"
    " nicht nie nichts niemand weder noch ohne kein keine keinen keinem keiner keines"
    " abgelehnt fehlgeschlagen verweigert"
)
_DEEDS: Final = _words(
    "refunded charged paid sent opened closed created cancelled checked settled approved booked"
    " disputed exported pending already erstattet belastet bezahlt gesendet bereits"
)
_MODES: Final = _words("will would may might could should must soon wird werden kann soll")
"""Small letters only: "Will" and "May" are names."""
_COUNTED: Final = _words(
    "one two three four five six seven eight nine ten eleven twelve hundred thousand million half"
    " twice double triple today tomorrow yesterday tonight heute morgen gestern"
)
_SENTENCE_END: Final = re.compile(r"(?<=[.!?;\u2026])\s+|\n+")
_EDGES: Final = "\"'\u201c\u201d\u201e\u2018\u2019\u00ab\u00bb()[]{}*_`~#,.:;!?\u2026\u2022"
_DASHES: Final = frozenset({"", "-", "\u2013", "\u2014"})
_NEGATED: Final = re.compile(r"(?:n['\u2019]t|cannot)$")
_OWNED: Final = re.compile(r"['\u2019](?:s|ve|m|ll|d|re)$")
_CURRENCY: Final = re.compile(r"[A-Z]{3}|[$\u00a3\u20ac\u00a5]")
_PLAIN: Final = re.compile(r"[^\W\d_]+(?:['\u2019-][^\W\d_]+)*")

NOTES: Final = ("kept", "facts lost", "model failed", "no budget")
"""What the record of a finished run in this mode says became of the rewrite."""

Fact = tuple[str, str]
"""What kind of fact it is, and how it is written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Rewrite:
    """The text to show; "kept", or why it is the text as it was; and what the call used."""

    text: str
    note: str
    usage: ModelUsage


def polished(model: BaseChatModel, text: str, *, number: int) -> Rewrite:
    """Let the model, in its call of this number, rewrite the text; in any doubt keep the text."""
    began = time.monotonic()
    try:
        answer = model.invoke([SystemMessage(_INSTRUCTION), HumanMessage(text)])
    except Exception:  # The answer exists already; a model that fails here must not lose it.
        logger.warning("polish.failed", exc_info=True)
        return Rewrite(text=text, note="model failed", usage=_usage(None, number, began))
    usage = _usage(answer, number, began)
    rewritten = storable(text_of(answer)).strip()
    if not rewritten or not facts_survive(text, rewritten):
        return Rewrite(text=text, note="facts lost", usage=usage)
    return Rewrite(text=rewritten, note="kept", usage=usage)


def facts_survive(before: str, after: str) -> bool:
    """Tell whether both texts state the same facts, sentence by sentence.

    Facts are amounts with their currency, references, dates and other numbers, names, negations,
    and what was done. None may be lost, added or moved to another sentence. Within a sentence facts
    of a kind keep their order, and where something is denied, all of them do. A rewrite that is
    right but built otherwise counts as wrong: the text as it was is always at hand.
    """
    return Counter(_sentences(before)) == Counter(_sentences(after))


def _sentences(text: str) -> Iterator[tuple[tuple[Fact, ...], ...]]:
    """Yield the facts of each sentence or item that has any, in a form that can be compared."""
    for sentence in _SENTENCE_END.split(text):
        facts = tuple(_facts(sentence.split()))
        if any(kind == "denial" for kind, _written in facts):
            yield (facts,)
        elif facts:
            yield tuple(
                tuple(fact for fact in facts if fact[0] == kind)
                for kind in sorted({kind for kind, _written in facts})
            )


def _facts(words: list[str]) -> Iterator[Fact]:
    first = True
    at = 0
    while at < len(words):
        word, at = words[at], at + 1
        bare = word.strip(_EDGES)
        if bare in _DASHES:
            continue
        following = words[at].strip(_EDGES) if at < len(words) else ""
        if bare.isdecimal() or _is_amount(bare):
            joined = _CURRENCY.fullmatch(following) is not None and word.endswith(bare)
            yield ("amount", f"{bare} {following}") if joined else ("number", bare)
            at += joined
        elif fact := _fact(bare, first=first):
            yield fact
        first = word.endswith(":")


def _is_amount(bare: str) -> bool:
    return any(sign.isdecimal() for sign in bare) and not any(sign.isalpha() for sign in bare)


def _fact(bare: str, *, first: bool) -> Fact | None:
    """Return the fact that a word states, or nothing for an ordinary one."""
    if _NEGATED.search(bare.lower()):
        return "denial", "not"
    name = _OWNED.sub("", bare)
    small = name.lower()
    for kind, known in (("denial", _DENIALS), ("deed", _DEEDS), ("number", _COUNTED)):
        if small in known:
            return kind, small
    if not _PLAIN.fullmatch(name):
        return "reference", bare
    if name in _MODES:
        return "deed", name
    # Letters without capitals (as in Chinese) may be a name anywhere.
    named = any(sign.isupper() or sign.lower() == sign.upper() for sign in name if sign.isalpha())
    if not named or name == "I" or (first and small in OPENERS):
        return None
    return "name", name


def _usage(answer: AIMessage | None, number: int, began: float) -> ModelUsage:
    metadata = answer.response_metadata if answer else {}
    used = answer.usage_metadata if answer else None
    finish = metadata.get("finish_reason") or metadata.get("stop_reason") or ""
    return ModelUsage(
        number=number,
        model=str(metadata.get("model_name", "")),
        input_tokens=used["input_tokens"] if used else 0,
        output_tokens=used["output_tokens"] if used else 0,
        milliseconds=int((time.monotonic() - began) * 1000),
        finish_reason=str(finish) if answer else "error",
    )
