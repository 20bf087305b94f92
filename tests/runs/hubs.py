"""The hub of the event streams, played by a test on real Postgres and Redis."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping
from typing import Any

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import User
from django.db import OperationalError, connection

from agent_core.runs import hub, live, selectors, services
from agent_core.runs.hub import Hub, Listener
from agent_core.runs.models import Conversation
from agent_core.runs.selectors import EventRow

LONG_SECONDS = 60.0


class Reads:
    """What was read from the database: the ids that were asked from, of each time."""

    def __init__(self) -> None:
        self.asked: list[dict[str, int]] = []
        self.fail = 0
        self.error: Exception = OperationalError("away")
        self.during: Callable[[], object] | None = None

    def __call__(self, last_ids: Mapping[str, int], limit: int) -> list[EventRow]:
        self.asked.append(dict(last_ids))
        if self.fail:
            self.fail -= 1
            raise self.error
        found = selectors.events_after_all(last_ids, limit)
        if self.during is not None:
            during, self.during = self.during, None
            during()
        return found


@pytest.fixture
def reads(monkeypatch: pytest.MonkeyPatch) -> Reads:
    """Count what the hub reads."""
    counted = Reads()
    monkeypatch.setattr(hub, "events_after_all", counted)
    return counted


@pytest.fixture
def ticks_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let no safety look hide a tick that was lost."""
    monkeypatch.setattr(hub, "LOOK_SECONDS", LONG_SECONDS)


@pytest.fixture
def conversations(conversation: Conversation, tom: User) -> list[Conversation]:
    """Return some conversations with no event in them."""
    more = [services.conversation_start(owner=tom) for _number in range(7)]
    return [conversation, *more]


def played(play: Callable[[Hub], Coroutine[Any, Any, None]]) -> None:
    """Play something on a hub of its own; afterwards nothing of the hub may be left."""

    async def playing() -> None:
        async with asyncio.timeout(30):
            before = asyncio.all_tasks()
            await play(Hub())
            left = asyncio.all_tasks() - before
            if left:
                await asyncio.wait(left)
            # Redis sees the end of a line a little later.
            await subscribed_to()

    async_to_sync(playing)()
    readers = [each for each in threading.enumerate() if each.name.startswith("events")]
    for reader in readers:
        reader.join(10)
    assert not any(reader.is_alive() for reader in readers)


def subscribed() -> set[str]:
    """Return the conversations that somebody listens to."""
    return set(map(live.conversation_of, live.client().pubsub_channels("countersign:*")))  # type: ignore[arg-type]


async def subscribed_to(*conversations: Conversation) -> None:
    """Wait until Redis sends what comes in these conversations, and in no other."""
    wanted = {str(each.pk) for each in conversations}
    await until(lambda: subscribed() == wanted)


def _post(conversation: Conversation, number: int) -> int:
    payload = {"export": str(number), "state": "writing", "done": number, "total": 9}
    try:
        return services.event_post(
            conversation_id=conversation.pk, kind="export", payload=payload
        ).pk
    finally:
        connection.close()


async def post(conversation: Conversation, count: int = 1) -> list[int]:
    """Post so many events; return their ids."""
    return [await asyncio.to_thread(_post, conversation, number) for number in range(count)]


async def taken(listener: Listener, count: int) -> list[int]:
    """Take so many events; return their ids."""
    found: list[int] = []
    while len(found) < count:
        item = await listener.next()
        if isinstance(item, EventRow):
            found.append(item.id)
    return found


async def arrives(listener: Listener, conversation: Conversation) -> None:
    """Check that an event which is posted now arrives."""
    ids = await post(conversation)
    assert await taken(listener, 1) == ids


async def until(holds: Callable[[], object]) -> None:
    """Wait until something holds; the time limit is that of the whole play."""
    while not await asyncio.to_thread(holds):  # noqa: ASYNC110
        await asyncio.sleep(0.01)


async def quiet(reads: Reads) -> None:
    """Wait until whatever was due has been read."""
    seen = -1
    while seen != len(reads.asked):
        seen = len(reads.asked)
        await asyncio.sleep(0.2)
