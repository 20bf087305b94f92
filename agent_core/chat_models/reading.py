"""Read the calls of a model's message strictly, whatever the stream made of them.

LangChain repairs a streamed call that breaks off: ``{"amount": "50`` becomes an amount of 50, and
the 500.00 that was meant is lost. What is not one complete JSON object here counts as malformed.
Signs that no database can hold are replaced here, before anything is looked up or stored.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any, Final

from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage

NAMELESS: Final = "unknown"
OUT_OF_ROOM: Final = frozenset({"length", "max_tokens"})
"""Why a model stopped, in providers' words, when it had more to write than room."""

# A zero byte and half of a surrogate pair: valid in JSON, refused by Postgres and by UTF-8.
_UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")


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
    asked = [
        AskedCall(storable(call["name"]), storable(dict(call["args"])))
        for call in message.tool_calls
    ]
    broken = [storable(call["name"] or NAMELESS) for call in message.invalid_tool_calls]
    return asked + [AskedCall(name, malformed=True) for name in broken]


def _strict(name: str | None, written: str | None) -> AskedCall:
    try:
        arguments = json.loads(written) if written else {}
    except ValueError:
        arguments = None
    if not name or not isinstance(arguments, dict):
        return AskedCall(storable(name or NAMELESS), malformed=True)
    return AskedCall(storable(name), storable(arguments))


def storable(value: Any) -> Any:
    """Return what a model wrote with the mark of an unreadable sign for each that no row holds.

    A sign that was only left out could turn one amount or reference into another.
    """
    if isinstance(value, str):
        return _UNSTORABLE.sub("\ufffd", value)
    if isinstance(value, list):
        return [storable(item) for item in value]
    if isinstance(value, dict):
        return {storable(key): storable(item) for key, item in value.items()}
    return value
