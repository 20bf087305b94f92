"""What may be lost: ticks that wake readers, and text as it streams. Redis carries nothing else."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable
from functools import cache
from typing import Any
from uuid import UUID

import redis
from django.conf import settings
from django.db import transaction

logger = logging.getLogger(__name__)

TICK = "tick"
PARTIAL_SECONDS = 3600


def channel(conversation_id: UUID | str) -> str:
    """Return the name of a conversation's channel."""
    return f"countersign:conversation:{conversation_id}"


def partial_key(run_id: UUID | str) -> str:
    """Return the key under which the half-written text of a run is kept."""
    return f"countersign:partial:{run_id}"


@cache
def client() -> redis.Redis:
    """Return this process's client; it connects when it is first used, and again when cut off."""
    return redis.Redis.from_url(
        settings.REDIS_URL, decode_responses=True, socket_timeout=5, socket_connect_timeout=2
    )


def tick_after_commit(conversation_id: UUID | str) -> None:
    """Wake the readers of a conversation once the present transaction has been committed."""
    transaction.on_commit(lambda: _publish(conversation_id, TICK))


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


def _publish(conversation_id: UUID | str, text: str) -> None:
    _quietly(lambda: client().publish(channel(conversation_id), text))


def _quietly(send: Callable[[], object]) -> None:
    try:
        send()
    except redis.RedisError as error:
        # Readers poll as well; a lost tick costs them a second and nothing else.
        logger.warning("live.unavailable", extra={"error": type(error).__name__})


def partial_read(run_id: UUID) -> dict[str, Any] | None:
    """Return the half-written text of a run with its attempt, None when there is none."""
    try:
        kept = client().get(partial_key(run_id))
    except redis.RedisError:
        return None
    return json.loads(str(kept)) if kept else None
