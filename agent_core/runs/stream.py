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

from asgiref.sync import sync_to_async
from django.db import Error, connection

from agent_core.runs import live
from agent_core.runs.hub import Item, hub
from agent_core.runs.models import Run
from agent_core.runs.selectors import EventRow, event_latest
from agent_core.runs.states import RunState

HEARTBEAT_SECONDS: Final = 10.0
HEARTBEAT: Final = b": still here\n\n"
ID_DIGITS: Final = 18
"""More digits than any event number of ours has; longer ones Python and Postgres may refuse."""


async def conversation_stream(
    conversation_id: UUID,
    last_event_id: str | None,
    still_open: Callable[[], bool] = lambda: True,
) -> AsyncIterator[bytes]:
    """Yield the frames of a conversation from after `last_event_id` on, one or more at a time.

    `still_open` is asked at every heartbeat whether the reader may go on; the stream ends when not.
    """
    yield b"retry: 1000\n\n"
    last = await _start(conversation_id, last_event_id)
    if last is None:
        yield _frame("reread", {})
        last = await sync_to_async(_latest)(conversation_id)
    with hub().listening(conversation_id, last) as listener:
        for partial in await sync_to_async(_partials)(conversation_id):
            yield _frame("delta", partial)
        beat = time.monotonic() + HEARTBEAT_SECONDS
        while True:
            try:
                async with asyncio.timeout(max(beat - time.monotonic(), 0)):
                    item = await listener.next()
            except TimeoutError:
                if not await sync_to_async(_asked)(still_open):
                    return
                beat = time.monotonic() + HEARTBEAT_SECONDS
                yield HEARTBEAT
            else:
                # What has come at once goes out at once.
                yield b"".join(map(_item_frame, (item, *listener.waiting())))


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


def _asked(still_open: Callable[[], bool]) -> bool:
    try:
        return still_open()
    except Error:
        # The database is away, and so is all that could be read; it is asked again. A browser whose
        # stream ends now would meet an error page, and come back for no more.
        return True
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


def _item_frame(item: Item) -> bytes:
    if not isinstance(item, EventRow):
        return _frame("delta", item)
    return f"id: {item.id}\n".encode() + _frame(item.kind, {**item.payload, "run": item.run})


def _frame(kind: str, data: dict[str, Any]) -> bytes:
    return f"event: {kind}\ndata: {json.dumps(data)}\n\n".encode()
