"""One listener for many streams: it reads when something is due, loses nothing, leaves nothing."""

from __future__ import annotations

import asyncio
import threading
from contextlib import ExitStack

import pytest
from django.contrib.auth.models import User

from agent_core.runs import hub, live
from agent_core.runs.hub import Hub, Listener
from agent_core.runs.models import Conversation
from tests.runs.hubs import (
    Reads,
    arrives,
    conversations,
    played,
    post,
    quiet,
    reads,
    subscribed_to,
    taken,
    ticks_only,
)

__all__ = ["conversations", "reads", "ticks_only"]


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
