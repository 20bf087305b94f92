"""Server-sent events of a conversation: durable ones from Postgres, text as it comes from Redis.

A browser that comes back sends the last id it has seen and gets what it missed; one with an id that
we do not know is told to read the page again.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator, Callable
from typing import Any, Final
from uuid import UUID

import redis.asyncio
from asgiref.sync import sync_to_async
from django.conf import settings
from django.db import connection
from redis.exceptions import RedisError

from agent_core.runs import live
from agent_core.runs.models import Event, Run
from agent_core.runs.selectors import event_latest, events_after
from agent_core.runs.states import RunState

POLL_SECONDS: Final = 2.0
"""How long a lost tick can hold an event up."""

HEARTBEAT_SECONDS: Final = 10.0
HEARTBEAT: Final = b": still here\n\n"
PAGE: Final = 200
ID_DIGITS: Final = 18
"""More digits than any event number of ours has; longer ones Python and Postgres may refuse."""


async def conversation_stream(
    conversation_id: UUID,
    last_event_id: str | None,
    still_open: Callable[[], bool] = lambda: True,
) -> AsyncIterator[bytes]:
    """Yield the frames of a conversation from after `last_event_id` on.

    `still_open` is asked at every heartbeat whether the reader may go on; the stream ends when not.
    """
    client = redis.asyncio.Redis.from_url(settings.REDIS_URL, decode_responses=True)
    pubsub = client.pubsub(ignore_subscribe_messages=True)
    try:
        yield b"retry: 1000\n\n"
        last = await _start(conversation_id, last_event_id)
        if last is None:
            yield _frame("reread", {})
            last = await sync_to_async(_latest)(conversation_id)
        await _subscribe(pubsub, conversation_id)
        async for frame in _frames(pubsub, conversation_id, last):
            if frame == HEARTBEAT and not await sync_to_async(_asked)(still_open):
                return
            yield frame
    finally:
        await pubsub.aclose()  # type: ignore[no-untyped-call]
        await client.aclose()


async def _frames(
    pubsub: redis.asyncio.client.PubSub, conversation_id: UUID, last: int
) -> AsyncIterator[bytes]:
    for partial in await sync_to_async(_partials)(conversation_id):
        yield _frame("delta", partial)
    beat = time.monotonic()
    due = True
    while True:
        while due:
            events = await sync_to_async(_events)(conversation_id, last)
            for event in events:
                last = event.pk
                yield _event_frame(event)
            due = len(events) == PAGE
        message = await _next(pubsub, conversation_id)
        if message is None or message == live.TICK:
            due = True
        else:
            yield _frame("delta", json.loads(message))
        if time.monotonic() - beat > HEARTBEAT_SECONDS:
            beat = time.monotonic()
            yield HEARTBEAT


async def _start(conversation_id: UUID, last_event_id: str | None) -> int | None:
    """Return the id to go on from, or None when the browser's id is none of ours."""
    latest = await sync_to_async(_latest)(conversation_id)
    if not last_event_id:
        return latest
    digits = last_event_id.isascii() and last_event_id.isdigit()
    if not digits or len(last_event_id) > ID_DIGITS:
        return None
    asked = int(last_event_id)
    return asked if asked <= latest else None


async def _subscribe(pubsub: redis.asyncio.client.PubSub, conversation_id: UUID) -> None:
    try:
        await pubsub.subscribe(live.channel(conversation_id))
    except RedisError:
        await asyncio.sleep(0)


async def _next(pubsub: redis.asyncio.client.PubSub, conversation_id: UUID) -> str | None:
    """Wait for a tick or a piece of text; None when it is time to look by ourselves."""
    try:
        message: dict[str, Any] | None = await pubsub.get_message(timeout=POLL_SECONDS)
    except (RedisError, RuntimeError):
        # Redis is away or was never reached: poll, and listen again once it is back.
        await asyncio.sleep(POLL_SECONDS)
        await _subscribe(pubsub, conversation_id)
        return None
    return str(message["data"]) if message else None


def _asked(still_open: Callable[[], bool]) -> bool:
    try:
        return still_open()
    finally:
        connection.close()


def _events(conversation_id: UUID, last: int) -> list[Event]:
    try:
        return events_after(conversation_id, last, PAGE)
    finally:
        connection.close()


def _latest(conversation_id: UUID) -> int:
    try:
        return event_latest(conversation_id)
    finally:
        connection.close()


def _partials(conversation_id: UUID) -> list[dict[str, Any]]:
    """Return the half-written text of what is being worked on, for a reader who comes late."""
    try:
        runs = Run.objects.filter(conversation_id=conversation_id, state=RunState.RUNNING)
        found = []
        for run_id in list(runs.values_list("pk", flat=True)):
            kept = live.partial_read(run_id)
            if kept and kept["text"]:
                found.append({"run": str(run_id), "at": 0, **kept})
        return found
    finally:
        connection.close()


def _event_frame(event: Event) -> bytes:
    data = {**event.payload, "run": str(event.run_id) if event.run_id else None}
    return f"id: {event.pk}\n".encode() + _frame(event.kind, data)


def _frame(kind: str, data: dict[str, Any]) -> bytes:
    return f"event: {kind}\ndata: {json.dumps(data)}\n\n".encode()
