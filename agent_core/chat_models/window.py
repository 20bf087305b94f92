"""What the offline model reads of its messages: the last request, what came of it, and before."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from agent_core.chat_models.phrases import references_in


@dataclass(frozen=True, slots=True)
class Reply:
    """One call of the model's own with the text that came back."""

    tool: str
    arguments: Mapping[str, Any]
    text: str


@dataclass(frozen=True, slots=True)
class Window:
    """The messages, read: `words` is the last staff message, `replies` are what followed it.

    `earlier` holds the texts before it, newest first, and `staff` every staff message. `question`
    is the staff message before the last when the assistant answered that one with a question;
    `acted` names the tools it called then.
    """

    words: str
    replies: tuple[Reply, ...]
    earlier: tuple[str, ...]
    system: tuple[str, ...]
    question: str
    acted: frozenset[str]
    staff: frozenset[str]

    def reply(self, tool: str, arguments: Mapping[str, str]) -> Reply | None:
        """Return what this very call brought, when it has been made since the last request."""
        for reply in self.replies:
            given = {name: str(value) for name, value in reply.arguments.items() if value}
            given.pop("remaining", None)
            if reply.tool == tool and given == {name: v for name, v in arguments.items() if v}:
                return reply
        return None

    def named_earlier(self, *kinds: str) -> list[str]:
        """Return the references of the newest earlier text that names any of these kinds."""
        for text in self.earlier:
            if found := references_in(text, *kinds):
                return found
        return []

    def meant_earlier(self, kind: str) -> list[str]:
        """Return what "it" can mean: of several, the one that the staff member named before."""
        found = self.named_earlier(kind)
        staff = next((text for text in self.earlier if text in self.staff), "")
        own = [each for each in references_in(staff, kind) if each in found]
        return own if len(own) == 1 else found


def window_read(messages: Sequence[BaseMessage]) -> Window:
    """Read the messages of one window."""
    asked = [at for at, message in enumerate(messages) if isinstance(message, HumanMessage)]
    last = asked[-1] if asked else len(messages)
    before, after = messages[:last], messages[last + 1 :]
    previous = asked[-2] if len(asked) > 1 else None
    question, acted = "", frozenset[str]()
    if previous is not None and _ended_with_question(before):
        question = messages[previous].text
        acted = frozenset(reply.tool for reply in _replies(before[previous:]))
    return Window(
        words=messages[last].text if asked else "",
        replies=tuple(_replies(after)),
        earlier=tuple(
            message.text
            for message in reversed(before)
            if message.text and not isinstance(message, SystemMessage)
        ),
        system=tuple(message.text for message in messages if isinstance(message, SystemMessage)),
        question=question,
        acted=acted,
        staff=frozenset(message.text for message in messages if isinstance(message, HumanMessage)),
    )


def _ended_with_question(before: Sequence[BaseMessage]) -> bool:
    texts = [message.text for message in before if isinstance(message, AIMessage) and message.text]
    return bool(texts) and re.search(r"\?(?:\s*\n.*)?\s*$", texts[-1], re.DOTALL) is not None


def _replies(messages: Sequence[BaseMessage]) -> list[Reply]:
    """Match calls and tool messages by id; a call without a reply is still open and left out."""
    texts = {
        message.tool_call_id: message.text
        for message in messages
        if isinstance(message, ToolMessage)
    }
    return [
        Reply(call["name"], call["args"], texts[str(call["id"])])
        for message in messages
        if isinstance(message, AIMessage)
        for call in message.tool_calls
        if str(call["id"]) in texts
    ]
