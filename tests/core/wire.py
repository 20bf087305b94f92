"""What may stand in a request to a provider, read from the raw body: what is there beside that."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any, Final

from agent_core.contract import REASONS, Artifact

PROTOCOL: Final = frozenset(
    "role content tool_calls tool_call_id name id type function arguments".split()  # noqa: SIM905
)
"""Every key that a message may have; anything else would be a piece of ours."""

OURS: Final = frozenset(Artifact.__annotations__) - {"reason", "data", "v"} | {"artifact"}
"""Keys of an artifact that no tool has as an argument, and that no text of ours holds."""

_UUID: Final = re.compile(r"[0-9a-f]{8}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}", re.IGNORECASE)


def strays(body: str, *forbidden: str) -> list[str]:
    """Return what a body holds that must not leave the house; nothing is right.

    Ids of calls may stand where the protocol has them, and nowhere else.
    """
    read = json.loads(body)
    messages = read["messages"]
    # Beside these two a request holds the provider's own settings, one of which is called "stop".
    texts = json.dumps([messages, read.get("tools")])
    bare = json.dumps(_without_call_ids(read))
    found = [word for word in forbidden if word in body]
    found += [key for key, _value in _pairs(messages) if key not in PROTOCOL]
    found += [key for key in OURS if re.search(rf'\\*"{key}\\*"\s*:', texts)]
    found += [text for text in _strings(read) if text in REASONS]
    found += [match.group() for match in _UUID.finditer(bare)]
    return found


def calls_sent(body: str) -> list[tuple[str, dict[str, Any]]]:
    """Return every call of a body's messages as (tool, arguments), in order."""
    return [
        (call["function"]["name"], json.loads(call["function"]["arguments"]))
        for call in _asked(json.loads(body)["messages"])
    ]


def ids_sent(body: str) -> list[str]:
    """Return the ids of a body's calls, in order."""
    return [call["id"] for call in _asked(json.loads(body)["messages"])]


def unanswered(body: str) -> list[str]:
    """Return the ids that have not exactly one reply, directly behind their own message."""
    wrong: list[str] = []
    waiting: list[str] = []
    for message in [*json.loads(body)["messages"], {"role": "end"}]:
        if message["role"] == "tool":
            key = message["tool_call_id"]
            if key in waiting:
                waiting.remove(key)
            else:
                wrong.append(key)
            continue
        wrong += waiting
        waiting = [call["id"] for call in message.get("tool_calls") or []]
    return wrong


def _asked(messages: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [call for message in messages for call in message.get("tool_calls") or []]


def _without_call_ids(read: dict[str, Any]) -> dict[str, Any]:
    messages = json.loads(json.dumps(read["messages"]))
    for call in _asked(messages):
        del call["id"]
    for message in messages:
        message.pop("tool_call_id", None)
    return {**read, "messages": messages}


def _pairs(value: object) -> Iterator[tuple[str, object]]:
    """Yield every key with its value, however deep."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield key, inner
            yield from _pairs(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _pairs(inner)


def _strings(value: object) -> Iterator[str]:
    """Yield every text that is a value, and those inside the arguments, which are text as well."""
    if isinstance(value, str):
        yield value
        if value.startswith("{"):
            yield from _strings(json.loads(value))
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner)
