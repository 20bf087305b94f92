"""How far a condition reaches: beyond its own clause to every effect of the message. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from typing import Final

from agent_core.chat_models import phrases
from agent_core.chat_models.needs import Need
from agent_core.chat_models.orders import STOP

EFFECTS: Final = ("charge", "refund", "ticket", "export")
_CAUSES: Final = ("doubt", "unknown")
_DENIAL: Final = re.compile(
    r"\b(?:do not|don['\u2019]?t|never|not|no need to|without|stop|cancel)\b", re.IGNORECASE
)
_BESIDE: Final = re.compile(
    r"(?:(?:and|but|also|please|then)\b[\s,]*)*(?:which|when|why|where|whose|who(?!\s+is\b)|"
    r"what(?!\s+(?:is|are|did|has|have)\b)|(?:is|was|are|were|has|have|did|does|can|should|may)\b)",
    re.IGNORECASE,
)
_POINTS: Final = re.compile(r"\b(?:it|this|that|them|anything|so)\b", re.IGNORECASE)


def held_back(needs: Sequence[Need]) -> list[Need]:
    """Turn every effect into a question when another clause leaves in doubt whether it is meant."""
    doubtful = any(_casts_doubt(need) for need in needs)
    return [_held(need, needs, doubtful=doubtful) for need in needs]


def _casts_doubt(need: Need) -> bool:
    if need.kind in EFFECTS or need.kind == "greeting":
        return False
    words = phrases.PERIOD.sub(" ", need.words)
    if need.kind == "denied":
        return STOP.search(_DENIAL.sub(" ", words)) is not None
    return (
        need.kind in _CAUSES or STOP.search(words) is not None or _BESIDE.match(words) is not None
    )


def _held(need: Need, needs: Sequence[Need], *, doubtful: bool) -> Need:
    if need.kind not in EFFECTS:
        return need
    denied = [other for other in needs if other.kind == "denied" and _is_denied(need, other)]
    return replace(need, kind="doubt") if doubtful or denied else need


def _is_denied(need: Need, denial: Need) -> bool:
    """Tell whether a denial beside an order may be about the same thing."""
    others = phrases.references_in(denial.words)
    if others:
        return not need.reference or need.reference in others
    return need.kind in denial.words.lower() or _POINTS.search(denial.words) is not None
