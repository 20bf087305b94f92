"""Let the model rewrite a finished answer, and keep the rewrite only if its facts are the same."""

from __future__ import annotations

import logging
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage

from agent_core.chat_models.reading import OUT_OF_ROOM, calls_read, finish_of, storable, text_of
from agent_core.host import ModelUsage

logger = logging.getLogger(__name__)

_INSTRUCTION: Final = (
    "Rewrite the text for a colleague so that it reads friendlier. You may begin a sentence with "
    '"Here is", "Here are", "Good news:", "Good to know:", "Sorry," or "I\'m sorry,", begin the '
    'text with "Hello." or "Here you go.", end it with "Thank you.", add or leave out "the", and '
    "lay sentences out as a list. Keep every other word as it is written and where it stands, and "
    "the sentences apart. Add nothing else."
)

_SENTENCE_END: Final = re.compile(r"(?<=[.!?;])\s+|\n+")
_BULLET: Final = re.compile(r"^[-\u2022*]\s+(?!\d)")
"""A hyphen before a figure may be a minus."""
_COURTESY: Final = re.compile(
    r"^(?:(?:good news|good to know|sorry|i'm sorry)[,:]\s+|(?:here is|here are|here's)\s+"
    r"|(?:here you go|good news|hello|hi|thanks|thank you)[.!]?$)+",
    re.IGNORECASE,
)
_FREE: Final = frozenset({"the", "The"})
"""Words that may come and go. Nearly all others carry meaning in some sentence: "a" and "an" may be
names, "is" turns who did something round, and every preposition says which way."""

NOTES: Final = ("kept", "facts lost", "model failed", "no budget")
"""What the record of a finished run in this mode says became of the rewrite."""


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
    if not _finished(answer) or not rewritten:
        return Rewrite(text=text, note="model failed", usage=usage)
    if not facts_survive(text, rewritten):
        return Rewrite(text=text, note="facts lost", usage=usage)
    return Rewrite(text=rewritten, note="kept", usage=usage)


def facts_survive(before: str, after: str) -> bool:
    """Tell whether both texts state the same facts.

    Every word counts as one, because no list of the words that matter could be complete. The same
    words stand in the same order in the same sentences, as they are written. What may differ is a
    closed list of courtesies and of words that carry nothing, bullets, bold type, line breaks, and
    the capital that begins a sentence. A rewrite that is right but built otherwise counts as wrong:
    the text as it was is always at hand.
    """
    return list(_sentences(before)) == list(_sentences(after))


def _sentences(text: str) -> Iterator[list[str]]:
    """Yield the words that count of each sentence or item that has any."""
    for sentence in _SENTENCE_END.split(text.replace("**", "").replace("\u2019", "'")):
        bare = _COURTESY.sub("", _BULLET.sub("", sentence.strip()))
        words = [word for word in bare.rstrip(".!;").split() if word not in _FREE]
        if words:
            yield [_uncapitalised(words[0]), *words[1:]]


def _uncapitalised(word: str) -> str:
    """Return the first word of a sentence without the capital that its place may give it."""
    plain = word[1:].islower() and not any(sign.isdigit() for sign in word)
    return word[:1].lower() + word[1:] if plain else word


def _finished(answer: AIMessage) -> bool:
    """Tell whether the model has said all it wanted to, and in words alone."""
    return finish_of(answer).lower() not in OUT_OF_ROOM and not calls_read(answer)


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
