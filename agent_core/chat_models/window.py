"""What the offline model reads of its messages: the last request, what came of it, and before."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any, Final

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage

from agent_core.chat_models.phrases import references_in
from agent_core.chat_models.reading import text_of

# The questions that a bare answer completes, the assistant's own and the tools'.
QUESTION: Final = re.compile(
    r"\b(?:Which (?:one|customer|payment|invoice|amount)|Whom shall|For which period|"
    r"What is the ticket about|Shall I charge this)\b[^?\n]*\?"
)
NOT_UNDERSTOOD: Final = re.compile(r"\bI did not understand\b|\bI am not sure\b")
WAITS: Final = "This waits for a person's approval"
MOST_ANSWERS: Final = 4


@dataclass(frozen=True, slots=True)
class Reply:
    """One call of the model's own with the text that came back."""

    tool: str
    arguments: Mapping[str, Any]
    text: str


@dataclass(frozen=True, slots=True)
class Asked:
    """An earlier staff message that the assistant answered with a question it can be answered to.

    `text` is that question and `acted` names the tools that were called before it.
    """

    words: str
    text: str
    acted: frozenset[str]


@dataclass(frozen=True, slots=True)
class Window:
    """The messages, read: `words` is the last staff message, `replies` are what followed it.

    `earlier` holds the texts before it, newest first, and `staff` every staff message. `asked` are
    the messages right before the last that ended with a question, oldest first; `waiting` those
    that wait for a person's approval.
    """

    words: str
    replies: tuple[Reply, ...]
    earlier: tuple[str, ...]
    system: tuple[str, ...]
    asked: tuple[Asked, ...]
    waiting: tuple[str, ...]
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

    def shown(self, kind: str) -> str:
        """Return the newest earlier text that names any reference of this kind."""
        return next((text for text in self.earlier if references_in(text, kind)), "")

    def meant_earlier(self, kind: str) -> list[str]:
        """Return what "it" can mean: of several, the one that the staff member named before."""
        found = self.named_earlier(kind)
        staff = next((text for text in self.earlier if text in self.staff), "")
        own = [each for each in references_in(staff, kind) if each in found]
        return own if len(own) == 1 else found


def window_read(messages: Sequence[BaseMessage]) -> Window:
    """Read the messages of one window."""
    at = [place for place, message in enumerate(messages) if isinstance(message, HumanMessage)]
    last = at[-1] if at else len(messages)
    before, after = messages[:last], messages[last + 1 :]
    turns = [messages[start:end] for start, end in pairwise(at)]
    return Window(
        words=text_of(messages[last]) if at else "",
        replies=tuple(_replies(after)),
        earlier=tuple(
            text_of(message)
            for message in reversed(before)
            if text_of(message) and not isinstance(message, SystemMessage)
        ),
        system=tuple(
            text_of(message) for message in messages if isinstance(message, SystemMessage)
        ),
        asked=_asked(turns),
        waiting=tuple(text_of(turn[0]) for turn in turns if _waits(turn)),
        staff=frozenset(
            text_of(message) for message in messages if isinstance(message, HumanMessage)
        ),
    )


def _asked(turns: Sequence[Sequence[BaseMessage]]) -> tuple[Asked, ...]:
    """Return the last turns that each ended with a question, oldest first."""
    asked: list[Asked] = []
    for turn in reversed(turns[-MOST_ANSWERS:]):
        text = _last_text(turn)
        if not QUESTION.search(text) or NOT_UNDERSTOOD.search(text):
            break
        acted = frozenset(reply.tool for reply in _replies(turn))
        asked.insert(0, Asked(text_of(turn[0]), text, acted))
    return tuple(asked)


def _last_text(turn: Sequence[BaseMessage]) -> str:
    texts = [text_of(message) for message in turn if isinstance(message, AIMessage)]
    return next((text for text in reversed(texts) if text), "")


def _waits(turn: Sequence[BaseMessage]) -> bool:
    return _last_text(turn).startswith(WAITS)


def _replies(messages: Sequence[BaseMessage]) -> list[Reply]:
    """Match calls and tool messages by id; a call without a reply is still open and left out."""
    texts = {
        message.tool_call_id: text_of(message)
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
