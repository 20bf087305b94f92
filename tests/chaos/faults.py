"""What chaos does to the product, one fault after the other, chosen at random from a seed."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from typing import Final
from uuid import UUID

import httpx
import psycopg
import redis
from django.db import Error, connection

from tests.chaos.fleet import Fleet
from tests.chaos.kills import KILLS, Kills
from tests.chaos.recovery import Recovery
from tests.chaos.servers import Servers
from tests.chaos.upsets import UPSETS, Upsets

logger = logging.getLogger(__name__)

NOT_THERE: Final = (Error, psycopg.Error, redis.RedisError, httpx.HTTPError, OSError)
"""What a fault meets that comes upon a server which another one has just taken down."""


def kinds_of(seed: str) -> Random:
    """Return what chooses the kinds: of its own, so that whatever there is to strike they stay."""
    return Random(f"{seed}-kinds")  # noqa: S311 - to be repeated, not to be secret


def kind_next(kinds: Random) -> str:
    """Choose the next kind."""
    weights = {**KILLS, **UPSETS}
    return kinds.choices(list(weights), list(weights.values()))[0]


class Faults:
    """Strikes, and counts what it struck."""

    def __init__(
        self,
        seed: str,
        servers: Servers,
        fleet: Fleet,
        recovery: Recovery,
        sent: Callable[[], Sequence[UUID]],
    ) -> None:
        self._kinds = kinds_of(seed)
        chance = Random(f"{seed}-faults")  # noqa: S311 - no secret
        self._killing = Kills(chance, servers, fleet, recovery)
        upsets = Upsets(chance, servers, recovery, sent)
        self._acts = {**self._killing.acts(), **upsets.acts()}
        self._pauses = chance
        self.done: Counter[str] = Counter()

    @property
    def kills(self) -> int:
        """Return how many processes were ended or stopped."""
        return sum(count for kind, count in self.done.items() if kind in KILLS)

    def pause(self, most: int) -> int:
        """Return after how many more turns the next fault comes."""
        return self._pauses.randint(1, most)

    def strike(self) -> None:
        """Do one fault; one that finds nothing to strike is not counted."""
        kind = kind_next(self._kinds)
        try:
            if self._acts[kind]():
                self.done[kind] += 1
        except NOT_THERE as error:
            logger.info("chaos.missed", extra={"kind": kind, "error": type(error).__name__})
        finally:
            connection.close()

    def end(self) -> None:
        """Wait until everything that was stalled has been woken."""
        self._killing.end()
