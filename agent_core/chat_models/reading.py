"""Read the calls of a model's message strictly, whatever the stream made of them.

LangChain repairs a streamed call that breaks off: ``{"amount": "50`` becomes an amount of 50, and
the 500.00 that was meant is lost. What is not one complete JSON object here counts as malformed.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Final

from langchain_core.messages import AIMessage, AIMessageChunk

NAMELESS: Final = "unknown"


@dataclass(frozen=True, slots=True)
class AskedCall:
    """One call as the model asked for it, in its place; a malformed one has no arguments."""

    tool: str
    arguments: dict[str, Any] = field(default_factory=dict)
    malformed: bool = False


def calls_read(message: AIMessage) -> list[AskedCall]:
    """Return the calls of a message, whole or joined from pieces, in call order."""
    if isinstance(message, AIMessageChunk) and message.tool_call_chunks:
        return [_strict(each["name"], each["args"]) for each in message.tool_call_chunks]
    asked = [AskedCall(call["name"], dict(call["args"])) for call in message.tool_calls]
    broken = [call["name"] or NAMELESS for call in message.invalid_tool_calls]
    return asked + [AskedCall(name, malformed=True) for name in broken]


def _strict(name: str | None, written: str | None) -> AskedCall:
    try:
        arguments = json.loads(written) if written else {}
    except ValueError:
        arguments = None
    if not name or not isinstance(arguments, dict):
        return AskedCall(name or NAMELESS, malformed=True)
    return AskedCall(name, arguments)
