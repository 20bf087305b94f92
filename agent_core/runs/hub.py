"""One listener for all event streams of a process: woken by Redis, it reads for all at once.

A tick says that a conversation has new events; they are read from Postgres in one statement for
every conversation that is due by then. Pieces of text are handed on as they come.
"""

from __future__ import annotations

import asyncio
import json
import logging
from collections import Counter
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
from redis.asyncio.retry import Retry
from redis.backoff import NoBackoff
from redis.exceptions import RedisError

from agent_core.runs import live
from agent_core.runs.selectors import EventRow, events_after_all

logger = logging.getLogger(__name__)

LOOK_SECONDS: Final = 5.0
"""How long a lost tick can hold an event up; one statement for the whole process."""

AWAY_SECONDS: Final = 1.0
"""How long to wait before Redis, or Postgres, is tried again."""

QUIET_SECONDS: Final = 15.0
"""How long Redis may say nothing before it is asked whether it is there, and then to answer."""

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
    behind: bool = False
    """An event found no room: until the browser has taken what is kept, nothing is read for it."""
    _items: asyncio.Queue[Item] = field(default_factory=lambda: asyncio.Queue(ROOM))

    async def next(self) -> Item:
        """Wait for what comes next."""
        if self.behind and self._items.empty():
            self.behind = False
            self.wake(self.conversation)
        return await self._items.get()

    def waiting(self) -> list[Item]:
        """Take what has come as well by now."""
        return [self._items.get_nowait() for _each in range(self._items.qsize())]

    def offer_event(self, event: EventRow) -> None:
        """Hand an event over unless it was seen before or an earlier one found no room."""
        if event.id <= self.last or self.behind:
            return
        try:
            self._items.put_nowait(event)
        except asyncio.QueueFull:
            self.behind = True
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
        self._tuned: set[str] = set()
        self._tuning = asyncio.Lock()

    @contextmanager
    def listening(self, conversation_id: UUID, last: int) -> Iterator[Listener]:
        """Serve one more stream with the events after `last`, for the length of the body."""
        listener = Listener(str(conversation_id), last, self.wake)
        first = listener.conversation not in self._listeners
        self._listeners.setdefault(listener.conversation, set()).add(listener)
        if not self._tasks:
            self._tasks = [_task(_for_ever(self._listen)), _task(_for_ever(self._read))]
        elif first:
            self._tasks.append(_task(self._tune_quietly()))
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
            self._tasks.append(_task(self._tune_quietly()))
            return
        for task in self._tasks:
            task.cancel()
        self._tasks = []

    async def _listen(self) -> None:
        """Take ticks and text from Redis, for ever; what was missed meanwhile is read."""
        while True:
            # One try: after any error all that is wanted then is asked for anew, in one place.
            client = redis.asyncio.Redis.from_url(
                settings.REDIS_URL,
                decode_responses=True,
                socket_connect_timeout=2,
                retry=Retry(NoBackoff(), 0),
            )
            pubsub = client.pubsub()
            self._pubsub, self._tuned = pubsub, set()
            try:
                await self._tune()
                await self._take_all(pubsub)
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

    async def _take_all(self, pubsub: redis.asyncio.client.PubSub) -> None:
        """Take what comes, for as long as Redis says something or answers.

        A line that was dropped on its way without a word is mute for ever.
        """
        asked = False
        while True:
            _end_if_cancelled()
            message = await pubsub.get_message(timeout=QUIET_SECONDS)
            if message is not None:
                asked = False
                self._take(message)
            elif asked:
                raise redis.exceptions.TimeoutError
            else:
                asked = True
                await pubsub.ping()

    def _take(self, message: Mapping[str, Any]) -> None:
        if message["type"] not in ("subscribe", "message"):
            return
        conversation = live.conversation_of(message["channel"])
        listeners = self._listeners.get(conversation, ())
        if message["type"] == "subscribe":
            self.wake(conversation)
        else:
            told = json.loads(message["data"])
            if isinstance(told, int):
                if any(told > listener.last for listener in listeners):
                    self.wake(conversation)
                return
            for listener in listeners:
                listener.offer_text(told)

    async def _tune(self) -> None:
        """Have Redis send what is listened to now, and nothing else; one change at a time."""
        async with self._tuning:
            pubsub = self._pubsub
            if pubsub is None:
                # The listening task tunes once Redis is back.
                return
            wanted = {live.channel(each) for each in self._listeners}
            if new := wanted - self._tuned:
                await pubsub.subscribe(*new)
            if gone := self._tuned - wanted:
                await pubsub.unsubscribe(*gone)
            if self._pubsub is pubsub:
                # Else this was the end of a line, and the next one begins with nothing.
                self._tuned = wanted

    async def _tune_quietly(self) -> None:
        # The listening task meets the same error, and begins anew.
        with suppress(RedisError, OSError):
            await self._tune()

    async def _read(self) -> None:
        """Read what is due, for all conversations that are due by then."""
        loop = asyncio.get_running_loop()
        reader = ThreadPoolExecutor(1, thread_name_prefix="events")
        look = loop.time() + LOOK_SECONDS
        try:
            while True:
                with suppress(TimeoutError):
                    async with asyncio.timeout_at(look):
                        await self._woken.wait()
                if loop.time() >= look:
                    self._due.update(self._listeners)
                    look = loop.time() + LOOK_SECONDS
                asked = self._asked()
                try:
                    events = await loop.run_in_executor(reader, _events, asked)
                except Error:
                    logger.warning("stream.database_away")
                    await asyncio.sleep(AWAY_SECONDS)
                    self.wake(*asked)
                else:
                    self._hand_out(events, asked)
        finally:
            # A statement that hangs must not hold up the loop, and with it all other browsers.
            reader.shutdown(wait=False)

    def _asked(self) -> dict[str, int]:
        """Take what is due: after which event each conversation is to be read."""
        self._woken.clear()
        asked = {}
        for conversation in self._due & self._listeners.keys():
            lasts = [each.last for each in self._listeners[conversation] if not each.behind]
            if lasts:
                asked[conversation] = min(lasts)
        self._due.clear()
        return asked

    def _hand_out(self, events: list[EventRow], asked: Mapping[str, int]) -> None:
        counts = Counter(event.conversation for event in events)
        for event in events:
            for listener in self._listeners.get(event.conversation, ()):
                # Who came, or caught up, during the reading may lack what is before these.
                if listener.last >= asked[event.conversation]:
                    listener.offer_event(event)
        self.wake(*(conversation for conversation, count in counts.items() if count == PAGE))


def _events(asked: Mapping[str, int]) -> list[EventRow]:
    try:
        return events_after_all(asked, PAGE) if asked else []
    finally:
        connection.close()


async def _for_ever(work: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Begin the work again whatever ends it: without it every open page of the process is mute."""
    while True:
        try:
            await work()
        except Exception:  # The boundary of the task; being cancelled is no Exception.
            logger.exception("stream.begun_again")
        await asyncio.sleep(AWAY_SECONDS)


def _end_if_cancelled() -> None:
    """Raise once more what ended the present task, in case whom it waited for has swallowed it.

    On Python 3.11 `asyncio.wait_for`, by which the Redis client sends, can do so.
    """
    task = asyncio.current_task()
    if task is not None and task.cancelling():
        raise asyncio.CancelledError


def _task(work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
    """Start a task that knows nothing of the request in whose course it was started."""
    return asyncio.get_running_loop().create_task(work, context=Context())


_hubs: WeakKeyDictionary[asyncio.AbstractEventLoop, Hub] = WeakKeyDictionary()


def hub() -> Hub:
    """Return the hub of the running loop."""
    return _hubs.setdefault(asyncio.get_running_loop(), Hub())
