"""Messages as the stack leaves them: every call named by us and replied to, text clean."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final, cast
from uuid import UUID, uuid5

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.types import Command

from agent_core.answer import STUB
from agent_core.chat_models.reading import calls_read, storable, text_of
from agent_core.contract import policy_block
from agent_core.redaction import redacted, shortened

logger = logging.getLogger(__name__)

RELAYED: Final = "countersign"
UNANSWERED_TEXT: Final = "This step gave no clear result."
WITHDRAWN_TEXT: Final = "This was not decided before the conversation went on, so it was not done."
TEXT_LIMIT: Final = 8_000
"""The most characters of text in one tool message."""

Answered = ToolMessage | Command[Any]

_SERIALIZER: Final = JsonPlusSerializer()


def calls_minted(message: AIMessage, run_id: UUID) -> list[dict[str, Any]]:
    """Name each call by the message and its place: providers repeat ids, and replays must not."""
    return [
        {
            "id": str(uuid5(run_id, f"{message.id}:{position}")),
            "position": position,
            "tool": call.tool,
            "arguments": call.arguments,
            "malformed": call.malformed,
        }
        for position, call in enumerate(calls_read(message))
    ]


def message_minted(message: AIMessage, calls: Sequence[Mapping[str, Any]]) -> AIMessage:
    """Return the model's message with our ids; a malformed call keeps its place."""
    return AIMessage(
        storable(text_of(message)),
        id=message.id,
        tool_calls=[
            {"id": call["id"], "name": call["tool"], "args": call["arguments"], "type": "tool_call"}
            for call in calls
        ],
        usage_metadata=message.usage_metadata,
        response_metadata=message.response_metadata,
    )


def told(
    call: Mapping[str, Any], content: str, artifact: object, *, refused: bool = False
) -> ToolMessage:
    """Return our reply to a call."""
    return ToolMessage(
        content=content,
        artifact=artifact,
        tool_call_id=str(call["id"]),
        name=str(call["name"]),
        status="error" if refused else "success",
    )


def stubbed(message: AnyMessage) -> AnyMessage:
    """Show the model a stub in place of an answer that was the tools' own text."""
    if isinstance(message, AIMessage) and RELAYED in message.response_metadata:
        return AIMessage(STUB, id=message.id)
    return message


def replies_completed(
    messages: Sequence[AnyMessage], batch: Sequence[Mapping[str, Any]]
) -> list[AnyMessage] | None:
    """Return the messages with a reply to every call behind it, or None when none is missing.

    `batch` is the last one the gate judged. Of a batch that still waits for a person nothing ran.
    """
    entries = {str(call["id"]): call for call in batch}
    waits = any(call["verdict"] == "review" for call in batch)
    completed: list[AnyMessage] = []
    open_calls: dict[str, str] = {}
    # The one end mark lets what the last message leaves open be replied to like the rest.
    for place, message in enumerate([*messages, None]):
        if isinstance(message, ToolMessage):
            open_calls.pop(message.tool_call_id, None)
        else:
            completed += [
                _late_reply(key, name, entries.get(key), waits=waits)
                for key, name in open_calls.items()
                if not _replied(key, messages[place:])
            ]
            open_calls = _calls_of(message) if isinstance(message, AIMessage) else {}
        if message is not None:
            completed.append(message)
    return completed if len(completed) > len(messages) else None


def _calls_of(message: AIMessage) -> dict[str, str]:
    every = (*message.tool_calls, *message.invalid_tool_calls)
    return {str(call["id"]): str(call["name"]) for call in every if call["id"]}


def _replied(call_id: str, later: Sequence[AnyMessage]) -> bool:
    """Tell whether a reply still comes, before another call of the same id does."""
    for message in later:
        if isinstance(message, AIMessage) and call_id in _calls_of(message):
            return False
        if isinstance(message, ToolMessage) and message.tool_call_id == call_id:
            return True
    return False


def _late_reply(
    call_id: str, name: str, entry: Mapping[str, Any] | None, *, waits: bool
) -> ToolMessage:
    call = {"id": call_id, "name": name}
    if entry is not None and entry["result"] is not None:
        return told(call, *entry["result"])
    if entry is not None and waits:
        return told(call, WITHDRAWN_TEXT, policy_block("review.withdrawn"))
    # It may have been executed before whatever ended the turn; nobody knows.
    return told(call, UNANSWERED_TEXT, None)


def replies_mapped(answer: Answered, change: Callable[[ToolMessage], ToolMessage]) -> Answered:
    """Change each tool message of what a tool call returned."""
    if isinstance(answer, ToolMessage):
        return change(answer)
    if isinstance(answer, list):  # LangGraph lets a tool return several of both.
        return cast("Answered", [replies_mapped(each, change) for each in answer])
    update = answer.update
    if not isinstance(update, Mapping) or not isinstance(update.get("messages"), list):
        return answer
    messages = [
        change(each) if isinstance(each, ToolMessage) else each for each in update["messages"]
    ]
    return replace(answer, update={**update, "messages": messages})


def masked(reply: ToolMessage) -> ToolMessage:
    """Mask card numbers, secrets and signs that nothing can store."""
    return _text_changed(reply, lambda text: redacted(storable(text)))


def sized(reply: ToolMessage) -> ToolMessage:
    """Cut what is longer than `TEXT_LIMIT`, over all blocks together."""
    if len(text_of(reply)) <= TEXT_LIMIT:
        return reply
    if isinstance(reply.content, str):
        return reply.model_copy(update={"content": shortened(reply.content, TEXT_LIMIT)})
    others = [block for block in reply.content if _block_text(block) is None]
    text = {"type": "text", "text": shortened(text_of(reply), TEXT_LIMIT)}
    return reply.model_copy(update={"content": [text, *others]})


def _text_changed(reply: ToolMessage, change: Callable[[str], str]) -> ToolMessage:
    if isinstance(reply.content, str):
        content: Any = change(reply.content)
    else:
        content = [_block_changed(block, change) for block in reply.content]
        if change(text_of(reply)) != text_of(reply.model_copy(update={"content": content})):
            # What is to be masked goes over a border between two blocks.
            content = change(text_of(reply))
    return reply if content == reply.content else reply.model_copy(update={"content": content})


def _block_changed(
    block: str | dict[str, Any], change: Callable[[str], str]
) -> str | dict[str, Any]:
    text = _block_text(block)
    if text is None:
        return block
    return change(text) if isinstance(block, str) else {**block, "text": change(text)}


def _block_text(block: str | dict[str, Any]) -> str | None:
    if isinstance(block, str):
        return block
    text = block.get("text") if block.get("type") == "text" else None
    return text if isinstance(text, str) else None


def artifact_storable(reply: ToolMessage) -> ToolMessage:
    """Leave out an artifact that no checkpoint can hold: the outcome is unclear then.

    Left in, it would fail the checkpoint behind the effect, and the whole turn would be lost.
    """
    try:
        _SERIALIZER.dumps_typed(reply)
    except (TypeError, ValueError, OverflowError):
        logger.warning("artifact.unstorable", extra={"call": reply.tool_call_id})
        return reply.model_copy(update={"artifact": None})
    return reply
