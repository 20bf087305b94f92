"""One listener for all event streams of a process: woken by Redis, it reads for all at once.

A tick says that a conversation has new events; they are read from Postgres in one statement for
every conversation that is due by then. Pieces of text are handed on as they come.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from contextvars import Context
from dataclasses import dataclass, field
from typing import Any, Final
from uuid import UUID
from weakref import WeakKeyDictionary

import redis.asyncio
from django.conf import settings
from django.db import Error, connection
from redis.exceptions import RedisError

from agent_core.runs import live
from agent_core.runs.selectors import EventRow, events_after_all

logger = logging.getLogger(__name__)

LOOK_SECONDS: Final = 5.0
"""How long a lost tick can hold an event up; one statement for the whole process."""

AWAY_SECONDS: Final = 1.0
"""How long to wait before Redis, or Postgres, is tried again."""

PAGE: Final = 200
"""The most events that are read for one conversation at once."""

ROOM: Final = 2 * PAGE
"""The most frames kept for a browser that takes none; the rest it gets from the database."""

Item = EventRow | dict[str, Any]


@dataclass(eq=False)
class Listener:
    """One open stream: an event, or the data of a piece of text, at a time."""

    conversation: str
    last: int
    wake: Callable[[str], None]
    _items: asyncio.Queue[Item] = field(default_factory=lambda: asyncio.Queue(ROOM))
    _behind: bool = False

    async def next(self) -> Item:
        """Wait for what comes next."""
        if self._behind and self._items.empty():
            self._behind = False
            self.wake(self.conversation)
        return await self._items.get()

    def offer_event(self, event: EventRow) -> None:
        """Hand an event over unless it was seen before or an earlier one found no room."""
        if event.id <= self.last or self._behind:
            return
        try:
            self._items.put_nowait(event)
        except asyncio.QueueFull:
            self._behind = True
        else:
            self.last = event.id

    def offer_text(self, delta: dict[str, Any]) -> None:
        """Hand a piece of text over; it may be lost."""
        with suppress(asyncio.QueueFull):
            self._items.put_nowait(delta)


class Hub:
    """The listeners of one event loop, and the two tasks that serve them while there are any."""

    def __init__(self) -> None:
        self._listeners: dict[str, set[Listener]] = {}
        self._due: set[str] = set()
        self._woken = asyncio.Event()
        self._tasks: list[asyncio.Task[None]] = []
        self._pubsub: redis.asyncio.client.PubSub | None = None

    @contextmanager
    def listening(self, conversation_id: UUID, last: int) -> Iterator[Listener]:
        """Serve one more stream with the events after `last`, for the length of the body."""
        listener = Listener(str(conversation_id), last, self.wake)
        first = listener.conversation not in self._listeners
        self._listeners.setdefault(listener.conversation, set()).add(listener)
        if not self._tasks:
            self._tasks = [_task(self._listen()), _task(self._read())]
        elif first:
            self._tasks.append(_task(self._subscribe(listener.conversation)))
        self.wake(listener.conversation)
        try:
            yield listener
        finally:
            self._gone(listener)

    def wake(self, *conversations: str) -> None:
        """Have the events of these conversations read."""
        if conversations:
            self._due.update(conversations)
            self._woken.set()

    def _gone(self, listener: Listener) -> None:
        mine = self._listeners[listener.conversation]
        mine.discard(listener)
        self._tasks = [task for task in self._tasks if not task.done()]
        if mine:
            return
        del self._listeners[listener.conversation]
        if self._listeners:
            self._tasks.append(_task(self._unsubscribe(listener.conversation)))
            return
        for task in self._tasks:
            task.cancel()
        self._tasks = []

    async def _listen(self) -> None:
        """Take ticks and text from Redis, for ever; what was missed meanwhile is read."""
        while True:
            client = redis.asyncio.Redis.from_url(settings.REDIS_URL, decode_responses=True)
            pubsub = self._pubsub = client.pubsub()
            try:
                await pubsub.subscribe(*map(live.channel, self._listeners))
                while True:
                    message = await pubsub.get_message(timeout=None)
                    if message is not None:
                        self._take(message)
            except (RedisError, RuntimeError, OSError) as error:
                logger.warning("stream.redis_away", extra={"error": type(error).__name__})
            finally:
                if self._pubsub is pubsub:
                    self._pubsub = None
                with suppress(RedisError, OSError):
                    await pubsub.aclose()  # type: ignore[no-untyped-call]
                await client.aclose()
            self.wake(*self._listeners)
            await asyncio.sleep(AWAY_SECONDS)

    def _take(self, message: Mapping[str, Any]) -> None:
        conversation = live.conversation_of(message["channel"])
        listeners = self._listeners.get(conversation, ())
        if message["type"] == "subscribe":
            self.wake(conversation)
        elif message["type"] == "message":
            told = json.loads(message["data"])
            if isinstance(told, int):
                if any(told > listener.last for listener in listeners):
                    self.wake(conversation)
                return
            for listener in listeners:
                listener.offer_text(told)

    async def _subscribe(self, conversation: str) -> None:
        if self._pubsub is not None:
            # Without Redis the listening task subscribes to all of them once it is back.
            with suppress(RedisError, OSError):
                await self._pubsub.subscribe(live.channel(conversation))

    async def _unsubscribe(self, conversation: str) -> None:
        if self._pubsub is not None and conversation not in self._listeners:
            with suppress(RedisError, OSError):
                await self._pubsub.unsubscribe(live.channel(conversation))

    async def _read(self) -> None:
        """Read what is due, for all conversations that are due by then."""
        with ThreadPoolExecutor(1, thread_name_prefix="events") as reader:
            while True:
                with suppress(TimeoutError):
                    await asyncio.wait_for(self._woken.wait(), LOOK_SECONDS)
                if not self._woken.is_set():
                    self._due.update(self._listeners)
                self._woken.clear()
                asked = {each: self._last(each) for each in self._due & self._listeners.keys()}
                self._due.clear()
                try:
                    events = await asyncio.get_running_loop().run_in_executor(
                        reader, _events, asked
                    )
                except Error:
                    logger.warning("stream.database_away")
                    await asyncio.sleep(AWAY_SECONDS)
                    self.wake(*asked)
                else:
                    self._hand_out(events)

    def _last(self, conversation: str) -> int:
        return min(listener.last for listener in self._listeners[conversation])

    def _hand_out(self, events: list[EventRow]) -> None:
        counts: dict[str, int] = {}
        for event in events:
            counts[event.conversation] = counts.get(event.conversation, 0) + 1
            for listener in self._listeners.get(event.conversation, ()):
                listener.offer_event(event)
        self.wake(*(conversation for conversation, count in counts.items() if count == PAGE))


def _events(asked: Mapping[str, int]) -> list[EventRow]:
    try:
        return events_after_all(asked, PAGE) if asked else []
    finally:
        connection.close()


def _task(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    """Start a task that knows nothing of the request in whose course it was started."""
    return asyncio.get_running_loop().create_task(work, context=Context())


_hubs: WeakKeyDictionary[asyncio.AbstractEventLoop, Hub] = WeakKeyDictionary()


def hub() -> Hub:
    """Return the hub of the running loop."""
    return _hubs.setdefault(asyncio.get_running_loop(), Hub())
