"""The durable events of a conversation: which kinds exist and which fields each carries.

Persisted names are data: a test pins them, and a reader may rely on every field being there. Only
fields newer than 0.1.0 may be missing: a worker of that version may have written the event.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from agent_core.errors import ContractBroken

EVENT_FIELDS: Final[Mapping[str, frozenset[str]]] = {
    # A line of the transcript: role is staff, assistant or notice.
    "message": frozenset({"message", "role", "text", "at"}),
    # A message that waited in line says something else now.
    "message_edited": frozenset({"message", "text", "at"}),
    # A message that waited in line was taken back; nobody has read it.
    "message_removed": frozenset({"message", "at"}),
    # The run's state changed.
    "run": frozenset({"state", "attempt"}),
    # A new attempt or a new model call begins: drop the half-written text.
    "reset": frozenset({"attempt"}),
    # A call changed: the words are for staff, never the tool's name.
    "call": frozenset({"call", "state", "label", "summary", "reason"}),
    # A review was asked for or decided; the page re-reads its card.
    "review": frozenset({"review", "state", "title"}),
    # An export moved on.
    "export": frozenset({"export", "state", "done", "total"}),
    # The run ended: rule, mode, in words, with model calls made, and calls and input tokens saved.
    "stop": frozenset(
        {
            "rule",
            "mode",
            "headline",
            "explanation",
            "notes",
            "made",
            "saved",
            "tokens_saved",
            "tokens_estimated",
        }
    ),
}


def event_checked(kind: str, payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return the payload as it is stored.

    Raises:
        ContractBroken: the kind is unknown, or a field is missing or unknown.
    """
    fields = EVENT_FIELDS.get(kind)
    if fields is None:
        raise ContractBroken(f"No event is called {kind!r}.")
    if set(payload) != fields:
        odd = ", ".join(sorted(set(payload) ^ fields))
        raise ContractBroken(f"A {kind} event has other fields: {odd}.")
    return dict(payload)
