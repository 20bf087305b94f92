"""Waiting for something, with a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable

import psycopg
import redis


def until(
    holds: Callable[[], object],
    what: str | Callable[[], str],
    seconds: float = 60,
    *,
    meanwhile: Callable[[], object] = lambda: None,
    every: float = 0.05,
) -> None:
    """Look every so many seconds until something holds; errors of servers that are away count as
    not yet.

    `meanwhile` is done between two looks. `what` is told when the time is over; a function is asked
    then.
    """
    deadline, away = time.monotonic() + seconds, None
    while True:
        try:
            if holds():
                return
        except (redis.RedisError, psycopg.Error) as error:
            away = error
        if time.monotonic() > deadline:
            told = what if isinstance(what, str) else what()
            raise AssertionError(f"not within {seconds:.0f} seconds: {told}") from away
        meanwhile()
        time.sleep(every)
