"""One listener for many streams: it reads when something is due, loses nothing, leaves nothing."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping
from contextlib import ExitStack
from typing import Any

import pytest
import redis
import redis.asyncio
import redis.exceptions
from asgiref.sync import async_to_sync, sync_to_async
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
        self.during: Callable[[], object] | None = None

    def __call__(self, last_ids: Mapping[str, int], limit: int) -> list[EventRow]:
        self.asked.append(dict(last_ids))
        if self.fail:
            self.fail -= 1
            raise OperationalError("away")
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


def test_streams_in_which_nothing_happens_read_nothing(
    conversations: list[Conversation], reads: Reads
) -> None:
    """Beside the look that makes up for lost ticks: one statement for all of them."""

    async def play(streams: Hub) -> None:
        with ExitStack() as stack:
            for one in conversations:
                for _tab in range(3):
                    stack.enter_context(streams.listening(one.pk, 0))
            await subscribed_to(*conversations)
            await quiet(reads)
            before = len(reads.asked)
            await asyncio.sleep(2)
            assert len(reads.asked) - before <= 1

    played(play)


def test_streams_opened_all_at_once_are_each_woken_and_carry_text(
    conversations: list[Conversation], ticks_only: None
) -> None:
    """As after a restart of the web server: while the first still connects, the others come."""

    async def play(streams: Hub) -> None:
        with ExitStack() as stack:
            listeners = []
            for one in conversations:
                listeners.append(stack.enter_context(streams.listening(one.pk, 0)))
                await asyncio.sleep(0)
            await subscribed_to(*conversations)
            for one, listener in zip(conversations, listeners, strict=True):
                await arrives(listener, one)
                await asyncio.to_thread(
                    live.delta_publish, one.pk, one.pk, 1, str(one.pk), str(one.pk)
                )
                item = await listener.next()
                assert isinstance(item, dict)
                assert item["text"] == str(one.pk)

    played(play)


def test_streams_that_end_while_the_line_to_redis_is_made_leave_nothing(
    conversation: Conversation, tom: User, caplog: pytest.LogCaptureFixture
) -> None:
    """At every point of the connecting: the client may swallow that it was called off."""

    async def play(streams: Hub) -> None:
        for turns in range(60):
            with streams.listening(conversation.pk, 0):
                for _turn in range(turns):
                    await asyncio.sleep(0)

    played(play)
    # The end of one line is no trouble of the next.
    assert "stream.redis_away" not in caplog.text


def test_conversations_come_and_go_while_another_stays_open(
    conversations: list[Conversation], ticks_only: None
) -> None:
    stays, goes, comes = conversations[:3]

    async def play(streams: Hub) -> None:
        with streams.listening(stays.pk, 0) as one:
            last = 0
            for _time in range(3):
                with streams.listening(goes.pk, 0), streams.listening(goes.pk, 0):
                    await subscribed_to(stays, goes)
                with streams.listening(comes.pk, last) as other:
                    await subscribed_to(stays, comes)
                    # Gone and back before Redis has heard of either.
                    with streams.listening(goes.pk, 0):
                        pass
                    with streams.listening(goes.pk, 0):
                        await subscribed_to(stays, comes, goes)
                    await arrives(one, stays)
                    await arrives(other, comes)
                    last = other.last
            await subscribed_to(stays)

    played(play)


def test_every_tab_of_a_conversation_gets_every_event_once(
    conversation: Conversation, tom: User, ticks_only: None
) -> None:
    async def play(streams: Hub) -> None:
        first = await post(conversation, 3)
        with ExitStack() as stack:
            starts = (0, first[0], first[2])
            tabs = [stack.enter_context(streams.listening(conversation.pk, at)) for at in starts]
            more = await post(conversation, 3)
            for tab, expected in zip(tabs, (first + more, first[1:] + more, more), strict=True):
                assert await taken(tab, len(expected)) == expected
            assert [tab.last for tab in tabs] == [more[-1]] * 3

    played(play)


def test_a_browser_that_takes_nothing_gets_all_of_it_later_and_holds_up_nobody(
    conversation: Conversation,
    tom: User,
    reads: Reads,
    ticks_only: None,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Its room is full and more than a page is due: the other tab reads on, and then it does."""
    monkeypatch.setattr(hub, "PAGE", 5)

    async def play(streams: Hub) -> None:
        with (
            streams.listening(conversation.pk, 0) as slow,
            streams.listening(conversation.pk, 0) as fast,
        ):
            slow._items = asyncio.Queue(10)
            await subscribed_to(conversation)
            ids = await post(conversation, 22)
            assert await taken(fast, 22) == ids
            await quiet(reads)
            before = len(reads.asked)
            await asyncio.sleep(0.3)
            assert len(reads.asked) == before
            ids += await post(conversation, 3)
            assert await taken(fast, 3) == ids[22:]
            assert await taken(slow, 25) == ids

    played(play)


def test_a_tab_that_is_opened_during_a_reading_lacks_nothing(
    conversation: Conversation, tom: User, reads: Reads, ticks_only: None
) -> None:
    """The reading began at what the first tab has; the second has seen less."""

    async def play(streams: Hub) -> None:
        loop = asyncio.get_running_loop()
        ids = await post(conversation, 3)
        with ExitStack() as stack:
            first = stack.enter_context(streams.listening(conversation.pk, ids[-1]))
            await subscribed_to(conversation)
            await quiet(reads)
            tabs: list[Listener] = []
            opened = threading.Event()

            def open_another() -> None:
                tabs.append(stack.enter_context(streams.listening(conversation.pk, ids[0])))
                opened.set()

            def meanwhile() -> None:
                loop.call_soon_threadsafe(open_another)
                assert opened.wait(10)

            reads.during = meanwhile
            ids += await post(conversation)
            assert await taken(first, 1) == ids[3:]
            assert await taken(tabs[0], 3) == ids[1:]

    played(play)


def test_a_busy_conversation_takes_no_safety_look_from_the_others(
    conversations: list[Conversation], reads: Reads, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its tick is lost; the other conversation never leaves the reader idle for so long."""
    monkeypatch.setattr(hub, "LOOK_SECONDS", 1.0)
    busy, other = conversations[:2]

    async def play(streams: Hub) -> None:
        with (
            streams.listening(busy.pk, 0),
            streams.listening(other.pk, 0) as waiting,
        ):
            await subscribed_to(busy, other)
            await quiet(reads)
            monkeypatch.setattr(live, "tick_after_commit", lambda *_anything: None)
            monkeypatch.setattr("agent_core.runs.journal.live.tick_after_commit", lambda *_: None)
            ids = await post(other)

            async def wakes() -> None:
                while True:
                    streams.wake(str(busy.pk))
                    await asyncio.sleep(0.05)

            waking = asyncio.create_task(wakes())
            async with asyncio.timeout(10):
                assert await taken(waiting, 1) == ids
            waking.cancel()

    played(play)


def test_events_come_while_redis_is_away(
    conversation: Conversation, tom: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "LOOK_SECONDS", 0.5)
    monkeypatch.setattr(hub, "AWAY_SECONDS", LONG_SECONDS)

    async def away(*_anything: Any, **_more: Any) -> None:
        raise redis.exceptions.ConnectionError("away")

    monkeypatch.setattr(redis.asyncio.client.PubSub, "subscribe", away)

    async def play(streams: Hub) -> None:
        with streams.listening(conversation.pk, 0) as listener:
            assert await taken(listener, 0) == []
            ids = await post(conversation, 2)
            assert await taken(listener, 2) == ids

    played(play)


def test_a_conversation_opened_as_the_line_to_redis_breaks_is_listened_to_afterwards(
    conversations: list[Conversation], ticks_only: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "AWAY_SECONDS", 0.1)
    first, second = conversations[:2]

    async def play(streams: Hub) -> None:
        with streams.listening(first.pk, 0) as one:
            await subscribed_to(first)
            await asyncio.to_thread(live.client().client_kill_filter, _type="pubsub")
            with streams.listening(second.pk, 0) as two:
                await subscribed_to(first, second)
                await arrives(one, first)
                await arrives(two, second)

    played(play)


def test_a_line_to_redis_that_went_mute_is_made_anew(
    conversation: Conversation, tom: User, ticks_only: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dropped on its way without a word: no error comes, and no answer either."""
    monkeypatch.setattr(hub, "QUIET_SECONDS", 0.3)
    monkeypatch.setattr(hub, "AWAY_SECONDS", 0.1)
    whole = redis.asyncio.client.PubSub.get_message
    mute: list[Any] = []

    async def get_message(self: Any, *anything: Any, **more: Any) -> Any:
        if self in mute:
            await asyncio.sleep(more["timeout"])
            return None
        return await whole(self, *anything, **more)

    monkeypatch.setattr(redis.asyncio.client.PubSub, "get_message", get_message)

    async def play(streams: Hub) -> None:
        with streams.listening(conversation.pk, 0) as listener:
            await subscribed_to(conversation)
            pubsub = streams._pubsub
            # One that answers is left alone.
            await asyncio.sleep(1)
            assert streams._pubsub is pubsub
            mute.append(pubsub)
            await arrives(listener, conversation)
            await until(lambda: streams._pubsub not in (None, pubsub))
            await arrives(listener, conversation)

    played(play)


def test_a_stream_goes_on_after_the_database_was_away(
    conversation: Conversation, tom: User, reads: Reads, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "AWAY_SECONDS", 0.1)
    monkeypatch.setattr(hub, "LOOK_SECONDS", LONG_SECONDS)

    async def play(streams: Hub) -> None:
        with streams.listening(conversation.pk, 0) as listener:
            await subscribed_to(conversation)
            await quiet(reads)
            reads.fail = 3
            ids = await post(conversation, 2)
            assert await taken(listener, 2) == ids

    played(play)


def test_the_last_stream_leaves_at_once_though_a_statement_hangs(
    conversation: Conversation, tom: User, reads: Reads
) -> None:
    """Waiting for it would hold up every other browser of the process."""
    hangs, go_on = threading.Event(), threading.Event()

    def hang() -> None:
        hangs.set()
        assert go_on.wait(20)

    async def play(streams: Hub) -> None:
        reads.during = hang
        with streams.listening(conversation.pk, 0):
            assert await asyncio.to_thread(hangs.wait, 10)
        # The loop turns: this comes at all.
        await asyncio.sleep(0.1)
        assert len(asyncio.all_tasks()) <= 2
        go_on.set()
        await sync_to_async(wait_for_thread)()

    def wait_for_thread() -> None:
        for thread in threading.enumerate():
            if thread.name.startswith("events"):
                thread.join(10)

    played(play)
