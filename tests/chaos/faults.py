"""What chaos does to the product, one fault after the other, chosen at random from a seed."""

from __future__ import annotations

import logging
import signal
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import timedelta
from random import Random
from typing import Final
from uuid import UUID

import httpx
import psycopg
import redis
from django.conf import settings
from django.db import Error, connection
from django.db.models import QuerySet
from django.db.models.functions import Now

from agent_core.runs.models import Run
from agent_core.runs.queue import QUARANTINE_TASK, WORK_TASK, task_send
from agent_core.runs.states import RunState
from exports.models import Export
from exports.moves import WRITE_TASK
from tests.chaos.fleet import Fleet, Part
from tests.chaos.recovery import Held, Recovery
from tests.chaos.servers import Servers

logger = logging.getLogger(__name__)

KILLS: Final[Mapping[str, int]] = {
    "kill turns": 24,
    "kill quarantine": 4,
    "kill exports": 4,
    "kill maintenance": 5,
    "kill beat": 3,
    "stall turns": 6,
    "stall maintenance": 1,
    "leave turns": 7,
    "leave other": 3,
    "kill redis": 5,
    "kill postgres": 4,
    "kill processor": 2,
}
"""What ends or stops a process, and how often beside the others."""

OTHERS: Final[Mapping[str, int]] = {
    "flush redis": 4,
    "cut redis": 4,
    "cut postgres": 4,
    "send twice": 7,
    "send late": 5,
    "lease over": 3,
    "lease longer": 2,
    "processor fault": 8,
}
"""What leaves every process alive."""

PROCESSOR_FAULTS: Final = (
    "rate", "busy", "server_before", "drop_before", "server_after", "garbage_after", "drop_after",
)  # fmt: skip

NOT_THERE: Final = (Error, psycopg.Error, redis.RedisError, httpx.HTTPError, OSError)
"""What a fault meets that comes upon a server which another one has just taken down."""


class Faults:
    """Strikes; each method is one kind of fault, and what it hit is noted in `recovery`."""

    def __init__(
        self,
        seed: str,
        servers: Servers,
        fleet: Fleet,
        recovery: Recovery,
        sent: Callable[[], Sequence[UUID]],
    ) -> None:
        self._chance = Random(f"{seed}-faults")  # noqa: S311 - no secret
        # Of its own, so that the same seed gives the same kinds whatever was there to strike.
        self._kinds = Random(f"{seed}-kinds")  # noqa: S311 - no secret
        self._servers = servers
        self._fleet = fleet
        self._recovery = recovery
        self._later: list[threading.Timer] = []
        self.done: Counter[str] = Counter()
        self._sent = sent

    @property
    def kills(self) -> int:
        """Return how many processes were ended or stopped."""
        return sum(count for kind, count in self.done.items() if kind in KILLS)

    def pause(self, most: int) -> int:
        """Return after how many more turns the next fault comes."""
        return self._kinds.randint(1, most)

    def strike(self) -> str:
        """Do one fault; return its kind, or nothing when there was nothing to strike."""
        kinds = {**KILLS, **OTHERS}
        return self.do(self._kinds.choices(list(kinds), list(kinds.values()))[0])

    def do(self, kind: str) -> str:
        """Do a fault of this kind."""
        verb, _, what = kind.partition(" ")
        acts: Mapping[str, Callable[[str, str], bool]] = {
            "kill": self._kill,
            "stall": self._stall,
            "leave": self._leave,
            "flush": self._redis,
            "cut": self._cut,
            "send": self._send,
            "lease": self._lease,
            "processor": self._processor,
        }
        try:
            struck = acts[verb](kind, what)
        except NOT_THERE as error:
            logger.info("chaos.missed", extra={"kind": kind, "error": type(error).__name__})
            struck = False
        finally:
            connection.close()
        self.done[kind] += struck
        return kind if struck else ""

    def end(self) -> None:
        """Wake what was stalled, and wait for what is still to come."""
        for timer in self._later:
            timer.join()

    def _kill(self, kind: str, what: str) -> bool:
        if what == "redis":
            return self._server_kill(kind, RunState.QUEUED)
        if what == "postgres":
            return self._server_kill(kind, RunState.QUEUED, RunState.RUNNING)
        if what == "processor":
            return self._processor_kill()
        part = self._pick(what)
        return part is not None and self._struck(kind, part, signal.SIGKILL)

    def _stall(self, kind: str, what: str) -> bool:
        part = self._pick(what)
        if part is None or not self._struck(kind, part, signal.SIGSTOP, group=True):
            return False
        part.stopped = True
        seconds = settings.RUN_LEASE_SECONDS + self._chance.uniform(1.0, 6.0)
        self._after(seconds, lambda: self._wake(part))
        return True

    def _wake(self, part: Part) -> None:
        part.stopped = False
        part.send(signal.SIGCONT, group=True)

    def _leave(self, kind: str, what: str) -> bool:
        kinds = ["turns"] if what == "turns" else ["quarantine", "exports", "maintenance"]
        part = self._pick(self._chance.choice(kinds))
        if part is None or not part.send(signal.SIGTERM):
            return False
        part.leave_by = time.monotonic() + 25.0
        return True

    def _struck(
        self, kind: str, part: Part, number: signal.Signals, *, group: bool = False
    ) -> bool:
        """Send the signal and note the runs that this process holds."""
        if not part.send(number, group=group):
            return False
        since = time.time()
        try:
            held = list(_held(held_by(part)))
        except Error:
            held = []
        self._recovery.hit(kind, held, since)
        return True

    def _pick(self, kind: str) -> Part | None:
        """Choose a part, mostly one that holds a run, so that there is something to lose."""
        parts = self._fleet.of(kind)
        if len(parts) > 1 and self._chance.random() < 0.8:
            parts = [part for part in parts if held_by(part).exists()] or parts
        return self._chance.choice(parts) if parts else None

    def _server_kill(self, kind: str, *states: RunState) -> bool:
        child = self._servers.redis if kind.endswith("redis") else self._servers.postgres
        lying = list(_held(Run.objects.filter(state__in=states)))
        connection.close()
        self._servers.down(
            child, signal.SIGKILL if child is self._servers.redis else signal.SIGQUIT
        )
        time.sleep(self._chance.uniform(0.2, 2.5))
        up = self._servers.up(child)
        self._recovery.restart(up)
        self._recovery.hit(kind, lying, up)
        return True

    def _processor_kill(self) -> bool:
        self._servers.down(self._servers.processor, signal.SIGKILL)
        time.sleep(self._chance.uniform(0.2, 1.5))
        self._servers.up(self._servers.processor)
        return True

    def _redis(self, kind: str, _what: str) -> bool:
        lying = list(_held(Run.objects.filter(state=RunState.QUEUED)))
        self._servers.redis_do("FLUSHALL")
        self._recovery.hit(kind, lying, time.time())
        return True

    def _cut(self, _kind: str, what: str) -> bool:
        if what == "postgres":
            self._servers.sessions_end()
        else:
            for client in ("normal", "pubsub"):
                self._servers.redis_do("CLIENT", "KILL", "TYPE", client)
        return True

    def _send(self, _kind: str, what: str) -> bool:
        """Deliver again: runs of this moment, or those of minutes ago; exports too."""
        sent = self._sent()
        recent = list(sent[-12:] if what == "twice" else sent[:-12])
        runs = self._chance.sample(recent, min(4, len(recent)))
        exports = list(Export.objects.order_by("-created_at").values_list("pk", flat=True)[:3])
        tasks = [(self._chance.choice((WORK_TASK, QUARANTINE_TASK)), run) for run in runs]
        tasks += [(WORK_TASK, run) for run in runs] + [(WRITE_TASK, export) for export in exports]
        delivered = [task_send(task, str(key)) for task, key in tasks]
        return bool(runs) and all(delivered)

    def _lease(self, _kind: str, what: str) -> bool:
        working = list(Run.objects.filter(state=RunState.RUNNING).values_list("pk", flat=True)[:2])
        moved = Run.objects.filter(pk__in=working, state=RunState.RUNNING).update(
            lease_until=Now() + timedelta(seconds=-1 if what == "over" else 60)
        )
        self._recovery.forget(working)
        return bool(moved)

    def _processor(self, _kind: str, _what: str) -> bool:
        self._servers.processor_fault(self._chance.choice(PROCESSOR_FAULTS))
        return True

    def _after(self, seconds: float, act: Callable[[], None]) -> None:
        timer = threading.Timer(seconds, act)
        timer.daemon = True
        self._later.append(timer)
        timer.start()


def held_by(part: Part) -> QuerySet[Run]:
    """Select the runs that a worker holds."""
    return Run.objects.filter(state=RunState.RUNNING, worker__in=part.names())


def _held(runs: QuerySet[Run]) -> Iterator[Held]:
    for pk, state, claimed_at in runs.values_list("pk", "state", "claimed_at"):
        yield Held(pk, state, claimed_at)
