"""Read the calls of a model's message strictly, whatever the stream made of them.

LangChain repairs a streamed call that breaks off: ``{"amount": "50`` becomes an amount of 50, and
the 500.00 that was meant is lost. What is not one complete JSON object here counts as malformed.
The same goes for what only looks like JSON (``NaN``, one name given twice) and for numbers and
nesting that nothing can store. Signs that no database can hold are replaced here, before anything
is looked up or stored.
"""

from __future__ import annotations

import json
import math
from dataclasses import dataclass, field
from typing import Any, Final

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage

from agent_core.contract import DEEPEST, integer_storable, text_storable

NAMELESS: Final = "unknown"
OUT_OF_ROOM: Final = frozenset({"length", "max_tokens"})
"""Why a model stopped, in providers' words, when it had more to write than room."""


@dataclass(frozen=True, slots=True)
class AskedCall:
    """One call as the model asked for it, in its place; a malformed one has no arguments."""

    tool: str
    arguments: dict[str, Any] = field(default_factory=dict)
    malformed: bool = False


def text_of(message: BaseMessage) -> str:
    """Return the text of a message; of content in blocks, its text blocks joined.

    LangChain gives the text by a method in core 0.3 and by an attribute in core 1; the content
    reads the same in both.
    """
    if isinstance(message.content, str):
        return message.content
    texts = (_block_text(block) for block in message.content)
    return "".join(text for text in texts if text)


def _block_text(block: str | dict[str, Any]) -> str:
    if isinstance(block, str):
        return block
    text = block.get("text") if block.get("type") == "text" else ""
    return text if isinstance(text, str) else ""


def finish_of(message: AIMessage) -> str:
    """Return why the model stopped, in the provider's word; nothing when it did not say."""
    metadata = message.response_metadata
    return str(metadata.get("finish_reason") or metadata.get("stop_reason") or "")


def cut_off(message: AIMessage) -> bool:
    """Tell whether the stream broke: neither usage nor a reason for stopping came."""
    return not finish_of(message) and message.usage_metadata is None


def calls_read(message: AIMessage) -> list[AskedCall]:
    """Return the calls of a message, whole or joined from pieces, in call order.

    Of a model that ran out of room no call counts as whole: what reads well may have been cut.
    """
    asked = _asked(message)
    if finish_of(message).lower() not in OUT_OF_ROOM:
        return asked
    return [AskedCall(call.tool, malformed=True) for call in asked]


def _asked(message: AIMessage) -> list[AskedCall]:
    if isinstance(message, AIMessageChunk) and message.tool_call_chunks:
        return [_strict(each["name"], each["args"]) for each in message.tool_call_chunks]
    asked = [_call(call["name"], call["args"]) for call in message.tool_calls]
    return asked + [_call(call["name"], None) for call in message.invalid_tool_calls]


def _strict(name: str | None, written: str | None) -> AskedCall:
    try:
        return _call(name, json.loads(written, object_pairs_hook=_once) if written else {})
    except (ValueError, RecursionError):
        return _call(name, None)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Refuse an object that gives one name two values: readers disagree about which one holds."""
    given = dict(pairs)
    if len(given) < len(pairs):
        raise ValueError("a name is given twice")
    return given


def _call(name: str | None, arguments: object) -> AskedCall:
    if not name or not isinstance(arguments, dict) or not _holdable(arguments):
        return AskedCall(storable(name or NAMELESS), malformed=True)
    return AskedCall(storable(name), storable(arguments))


def _holdable(value: object, depth: int = 0) -> bool:
    """Tell whether a number is one that JSON has and that can be stored, and nothing too deep."""
    if isinstance(value, int):
        return integer_storable(value)
    if isinstance(value, float):
        return math.isfinite(value)
    if not isinstance(value, list | dict):
        return True
    inner = value.values() if isinstance(value, dict) else value
    return depth <= DEEPEST and all(_holdable(item, depth + 1) for item in inner)


def storable(value: Any) -> Any:
    """Return what a model wrote as it can be stored: every text in it as `text_storable` has it."""
    if isinstance(value, str):
        return text_storable(value)
    if isinstance(value, list):
        return [storable(item) for item in value]
    if isinstance(value, dict):
        return {storable(key): storable(item) for key, item in value.items()}
    return value
