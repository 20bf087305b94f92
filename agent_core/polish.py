"""Let the model rewrite a finished answer, and keep the rewrite only if every fact survives."""

from __future__ import annotations

import logging
import re
from typing import Final

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import HumanMessage, SystemMessage

logger = logging.getLogger(__name__)

_INSTRUCTION: Final = (
    "Rewrite the text for a colleague in plain, friendly words. Keep every amount, date, "
    "reference and name exactly as written, and every negation. Add nothing."
)
_FACT = re.compile(r"[A-Z]{2,4}-[\w-]+|\d[\d.,:/-]*|\b[A-Z]{3}\b|\b[A-Z][\w'-]+")
_NEGATIONS: Final = ("not", "no", "never", "nothing", "refused", "rejected", "failed")


def polished(model: BaseChatModel, text: str) -> tuple[str, str]:
    """Return the rewritten text and "kept", or the text as it was and why it was not rewritten."""
    try:
        answer = model.invoke([SystemMessage(_INSTRUCTION), HumanMessage(text)])
    except Exception:  # The answer exists already; a model that fails here must not lose it.
        logger.warning("polish.failed", exc_info=True)
        return text, "model failed"
    rewritten = str(answer.text).strip()
    if not rewritten or not facts_survive(text, rewritten):
        return text, "facts lost"
    return rewritten, "kept"


def facts_survive(before: str, after: str) -> bool:
    """Tell whether every amount, date, reference, name and negation of `before` is in `after`."""
    facts = {fact.rstrip(".,:;") for fact in _FACT.findall(before)} - _sentence_starts(before)
    words = set(re.findall(r"\w+", after.lower()))
    negated = [word for word in _NEGATIONS if re.search(rf"\b{word}\b", before.lower())]
    return all(fact in after for fact in facts) and all(word in words for word in negated)


def _sentence_starts(text: str) -> set[str]:
    """Words that are capital only because a sentence begins are no names."""
    return set(re.findall(r"(?:^|[.!?]\s+|\n)([A-Z][a-z]+)", text))
