"""What a turn costs late in a conversation, beside what it costs early: queries, bytes, time.

Three conversations stand at different turns; their turns are played in turn, so that a machine that
is busy for a while is as busy for each.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final
from unittest.mock import patch
from uuid import uuid4

import psycopg
from django.contrib.auth.models import User
from django.test import Client
from langchain_core.messages import BaseMessage
from pydantic import PrivateAttr
from typing_extensions import override

from agent_core.chat_models.reading import text_of
from agent_core.runs import work
from agent_core.runs.models import Conversation, Run
from agent_core.runs.services import conversation_start, message_send
from tests.bench.growing import thread_bytes, turns_copied
from tests.bench.model import BenchModel
from tests.journeys.chat import person
from tests.journeys.databases import copied
from tests.savings.stage import stage_alone

TURNS: Final = (10, 100, 1_000)
PLAYED: Final = 9
"""The turns that are really played at the beginning of each conversation: the window is full."""

TARGET: Final = 1.2


@dataclass(frozen=True, slots=True)
class Effort:
    """Where the conversations stand, and how many turns are played there."""

    turns: Sequence[int]
    tries: int


LONG: Final = Effort(turns=TURNS, tries=15)
SHORT: Final = Effort(turns=TURNS, tries=3)


@dataclass(frozen=True, slots=True)
class Cost:
    """What one turn took. `queries` are statements sent by Django and by the saver together."""

    queries: int
    checkpoint_bytes: int
    seconds: float
    messages_read: int
    characters_read: int


@dataclass(frozen=True, slots=True)
class Page:
    """What opening a conversation took."""

    queries: int
    size: int
    seconds: float


class Reading(BenchModel):
    """Keeps what it was sent."""

    _read: list[BaseMessage] = PrivateAttr(default_factory=list)

    @property
    def read(self) -> list[BaseMessage]:
        """Return the messages of the last request."""
        return self._read

    @override
    def _stream(self, messages: list[BaseMessage], *args: Any, **options: Any) -> Iterator[Any]:
        self._read[:] = messages
        yield from super()._stream(messages, *args, **options)


@contextmanager
def statements_counted() -> Iterator[list[str]]:
    """Note every statement that is sent in this process, on whatever thread or connection."""
    sent: list[str] = []
    lock = threading.Lock()
    execute = psycopg.Cursor.execute
    many = psycopg.Cursor.executemany

    def noted(original: Any) -> Any:
        def send(self: Any, query: Any, *args: Any, **options: Any) -> Any:
            with lock:
                sent.append(str(query))
            return original(self, query, *args, **options)

        return send

    with (
        patch.object(psycopg.Cursor, "execute", noted(execute)),
        patch.object(psycopg.Cursor, "executemany", noted(many)),
    ):
        yield sent


def turn_played(conversation: Conversation) -> Cost:
    """Send one message and work it off in this process.

    Raises:
        ValueError: the turn did not end with its ticket.
    """
    model = Reading()
    text = f"Broken box {uuid4().hex[:12]}"
    with (
        patch.object(work, "chat_model", lambda *_args, **_options: model),
        statements_counted() as sent,
    ):
        began = time.perf_counter()
        run = message_send(conversation=conversation, sender=conversation.owner, text=text)
        work.run_work(run.pk)
        seconds = time.perf_counter() - began
        queries = len(sent)
    if Run.objects.get(pk=run.pk).stop.rule != "completed":
        raise ValueError("The turn did not end with its ticket.")
    return Cost(
        queries=queries,
        checkpoint_bytes=thread_bytes(run.pk),
        seconds=seconds,
        messages_read=len(model.read),
        characters_read=sum(len(text_of(message)) for message in model.read),
    )


def page_opened(conversation: Conversation) -> Page:
    """Open the conversation's page as its owner.

    Raises:
        ValueError: it was not shown.
    """
    client = Client()
    client.force_login(conversation.owner)
    with statements_counted() as sent:
        began = time.perf_counter()
        answer = client.get(f"/c/{conversation.pk}/")
        seconds = time.perf_counter() - began
    if answer.status_code != 200:
        raise ValueError(f"The page was answered with {answer.status_code}.")
    return Page(queries=len(sent), size=len(answer.content), seconds=seconds)


def conversation_at(owner: User, turn: int) -> Conversation:
    """Return a conversation whose next turn is this one."""
    conversation = conversation_start(owner=owner)
    for _turn in range(min(PLAYED, turn - 1)):
        turn_played(conversation)
    turns_copied(conversation, upto=turn - 1)
    return conversation


@dataclass(frozen=True, slots=True)
class Standing:
    """What turns cost at one place of a conversation."""

    costs: Sequence[Cost]
    pages: Sequence[Page]

    def median(self, name: str) -> float:
        """Return the middle one of what the turns took."""
        return float(statistics.median(getattr(each, name) for each in self.costs))

    def page(self, name: str) -> float:
        """Return the middle one of what opening the page took."""
        return float(statistics.median(getattr(each, name) for each in self.pages))


def measured(owner: User, effort: Effort) -> dict[int, Standing]:
    """Play and open, place by place and again from the first."""
    standing = {turn: conversation_at(owner, turn) for turn in effort.turns}
    found: dict[int, tuple[list[Cost], list[Page]]] = {turn: ([], []) for turn in standing}
    for _try in range(effort.tries):
        for turn, conversation in standing.items():
            found[turn][0].append(turn_played(conversation))
            found[turn][1].append(page_opened(conversation))
    return {turn: Standing(*seen) for turn, seen in found.items()}


COLUMNS: Final = (
    "turn", "checkpoint bytes", "statements", "ms", "messages to the model",
    "opening the page: statements", "KB", "ms",
)  # fmt: skip


def rows(found: dict[int, Standing]) -> Iterator[tuple[str, ...]]:
    """Return the table, and under it the last row's ratios to the first."""
    for turn, seen in found.items():
        yield (
            f"{turn:,}",
            f"{seen.median('checkpoint_bytes'):,.0f}",
            f"{seen.median('queries'):.0f}",
            f"{seen.median('seconds') * 1e3:.0f}",
            f"{seen.median('messages_read'):.0f}",
            f"{seen.page('queries'):.0f}",
            f"{seen.page('size') / 1024:.0f}",
            f"{seen.page('seconds') * 1e3:.0f}",
        )
    first, last = found[min(found)], found[max(found)]
    turns = [
        last.median(name) / first.median(name)
        for name in ("checkpoint_bytes", "queries", "seconds", "messages_read")
    ]
    pages = [last.page(name) / first.page(name) for name in ("queries", "size", "seconds")]
    yield (
        f"{max(found):,} / {min(found):,} (target: at most {TARGET})",
        *(f"{ratio:.2f}: {'met' if ratio <= TARGET else 'missed'}" for ratio in turns + pages),
    )


def report(effort: Effort) -> Iterator[str]:
    """Measure on servers of the tests, and yield what is printed."""
    with stage_alone() as stage, copied(stage.address, stage.filled):
        found = measured(person("agent"), effort)
    lines = [COLUMNS, tuple("---" for _each in COLUMNS), *rows(found)]
    yield from (f"| {' | '.join(line)} |" for line in lines)
    yield ""
    yield f"The first {PLAYED} turns of each conversation and the measured ones were played;"
    yield "those between were copied from a played one, row by row."
