"""What may be lost: ticks that wake readers, and text as it streams. Redis carries nothing else."""

from __future__ import annotations

import json
import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any, Final
from uuid import UUID

import redis
from django.conf import settings
from django.db import transaction

logger = logging.getLogger(__name__)

PARTIAL_SECONDS = 3600

LOOK_SECONDS: Final = 2.0
"""How long a lost tick can hold up a command that follows a run."""

_PREFIX: Final = "countersign:conversation:"
_latest = threading.local()


def channel(conversation_id: UUID | str) -> str:
    """Return the name of a conversation's channel."""
    return f"{_PREFIX}{conversation_id}"


def conversation_of(name: str) -> str:
    """Return the conversation of a channel's name."""
    return name.removeprefix(_PREFIX)


def partial_key(run_id: UUID | str) -> str:
    """Return the key under which the half-written text of a run is kept."""
    return f"countersign:partial:{run_id}"


@cache
def client() -> redis.Redis:
    """Return this process's client; it connects when it is first used, and again when cut off."""
    return redis.Redis.from_url(
        settings.REDIS_URL, decode_responses=True, socket_timeout=5, socket_connect_timeout=2
    )


def tick_after_commit(conversation_id: UUID | str, event_id: int) -> None:
    """Wake the readers of a conversation once the present transaction has been committed.

    The tick is the number of the latest event; of several in one transaction only the last wakes.
    """
    key = str(conversation_id)
    vars(_latest)[key] = event_id

    def tick() -> None:
        if vars(_latest).get(key) == event_id:
            del vars(_latest)[key]
            _quietly(lambda: client().publish(channel(conversation_id), str(event_id)))

    transaction.on_commit(tick)


@contextmanager
def listening(conversation_id: UUID | str) -> Iterator[Callable[[], None]]:
    """Yield what waits for the next sign of a conversation, at most `LOOK_SECONDS` long."""
    with client().pubsub() as pubsub:  # type: ignore[no-untyped-call]
        _quietly(lambda: pubsub.subscribe(channel(conversation_id)))

        def wait() -> None:
            due = time.monotonic() + LOOK_SECONDS
            try:
                pubsub.get_message(timeout=LOOK_SECONDS)
            except (redis.RedisError, RuntimeError):
                # Redis is away: look by ourselves.
                time.sleep(max(0.0, due - time.monotonic()))

        yield wait


def partial_reset(run_id: UUID, attempt: int) -> None:
    """Forget the half-written text: a new model call begins."""
    text = json.dumps({"attempt": attempt, "text": ""})
    _quietly(lambda: client().set(partial_key(run_id), text, ex=PARTIAL_SECONDS))


def delta_publish(
    conversation_id: UUID, run_id: UUID, attempt: int, whole: str, piece: str
) -> None:
    """Show one more piece of text. `whole` ends with the piece; a late reader gets it at once."""
    kept = json.dumps({"attempt": attempt, "text": whole})
    delta = {"run": str(run_id), "attempt": attempt, "at": len(whole) - len(piece), "text": piece}

    def send() -> None:
        with client().pipeline(transaction=False) as pipe:
            pipe.set(partial_key(run_id), kept, ex=PARTIAL_SECONDS)
            pipe.publish(channel(conversation_id), json.dumps(delta))
            pipe.execute()

    _quietly(send)


def partial_forget(run_id: UUID) -> None:
    """Drop the half-written text of a run that has ended."""
    _quietly(lambda: client().delete(partial_key(run_id)))


def kept_anew(name: str) -> bool:
    """Keep a name in Redis; True when it was not there, False also while Redis is away."""
    try:
        return bool(client().set(name, "1", nx=True))
    except redis.RedisError:
        return False


def _quietly(send: Callable[[], object]) -> None:
    try:
        send()
    except redis.RedisError as error:
        # Readers also look by themselves; a lost tick costs them some seconds and nothing else.
        logger.warning("live.unavailable", extra={"error": type(error).__name__})


def partial_read(run_id: UUID) -> dict[str, Any] | None:
    """Return the half-written text of a run with its attempt, None when there is none."""
    try:
        kept = client().get(partial_key(run_id))
    except redis.RedisError:
        return None
    return json.loads(str(kept)) if kept else None
