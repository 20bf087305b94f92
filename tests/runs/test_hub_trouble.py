"""Event streams while Redis or the database is away, or hangs."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest
import redis
import redis.asyncio
import redis.exceptions
from asgiref.sync import sync_to_async
from django.contrib.auth.models import User

from agent_core.runs import hub, live
from agent_core.runs.hub import Hub
from agent_core.runs.models import Conversation
from tests.runs.hubs import (
    LONG_SECONDS,
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
    until,
)

__all__ = ["conversations", "reads", "ticks_only"]


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


def test_an_error_that_nobody_has_thought_of_leaves_no_stream_mute(
    conversation: Conversation, tom: User, reads: Reads, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hub, "AWAY_SECONDS", 0.1)

    async def play(streams: Hub) -> None:
        with streams.listening(conversation.pk, 0) as listener:
            await subscribed_to(conversation)
            await quiet(reads)
            reads.fail, reads.error = 1, RuntimeError("odd")
            first = await post(conversation, 1)
            assert await taken(listener, 1) == first

            broker = live.client()
            broker.publish(live.channel(conversation.pk), "no JSON at all")
            second = await post(conversation, 1)
            assert await taken(listener, 1) == second

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
