"""Faults that end or stop a process: workers, beat, Redis, Postgres, the processor."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Mapping
from functools import partial
from random import Random
from typing import Final

from django.conf import settings
from django.db import Error, connection

from agent_core.runs.models import Run
from agent_core.runs.states import RunState
from tests.chaos.fleet import Fleet, Part, process_name
from tests.chaos.recovery import Held, Recovery, held_by, held_of
from tests.chaos.servers import Servers
from tests.rig.servers import Server

KILLS: Final[Mapping[str, int]] = {
    "kill turns": 24,
    "kill quarantine": 3,
    "kill child": 3,
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
"""Each kind, and how often it comes beside the others."""

LEAVE_SECONDS: Final = 25.0
"""After so long a part that was asked to leave counts as overdue: 20 s are what it has."""


class Kills:
    """Each act returns whether there was something to strike, and notes which runs it hit."""

    def __init__(self, chance: Random, servers: Servers, fleet: Fleet, recovery: Recovery) -> None:
        self._chance = chance
        self._servers = servers
        self._fleet = fleet
        self._recovery = recovery
        self._later: list[threading.Timer] = []

    def acts(self) -> Mapping[str, Callable[[], bool]]:
        """Return what is done for each kind."""
        special: dict[str, Callable[[], bool]] = {
            "kill child": self._child_kill,
            "kill redis": self._redis_kill,
            "kill postgres": self._postgres_kill,
            "kill processor": self._processor_kill,
            "leave other": lambda: self._leave("quarantine", "exports", "maintenance"),
        }
        by_verb: dict[str, Callable[[str], bool]] = {
            "kill": self._kill,
            "stall": self._stall,
            "leave": self._leave,
        }
        parts = (kind.split() for kind in KILLS if kind not in special)
        return special | {f"{verb} {part}": partial(by_verb[verb], part) for verb, part in parts}

    def end(self) -> None:
        """Wait until everything that was stalled has been woken."""
        for timer in self._later:
            timer.join()

    def _kill(self, name: str) -> bool:
        part = self._pick(name)
        return part is not None and self._struck(f"kill {name}", part, signal.SIGKILL)

    def _stall(self, name: str) -> bool:
        """Stop a part for longer than a lease holds, then let it go on."""
        part = self._pick(name)
        if part is None or not self._struck(f"stall {name}", part, signal.SIGSTOP, group=True):
            return False
        part.stopped = True
        seconds = settings.RUN_LEASE_SECONDS + self._chance.uniform(1.0, 6.0)
        timer = threading.Timer(seconds, self._wake, [part])
        timer.daemon = True
        self._later.append(timer)
        timer.start()
        return True

    def _wake(self, part: Part) -> None:
        part.stopped = False
        part.send(signal.SIGCONT, group=True)

    def _leave(self, *names: str) -> bool:
        part = self._pick(self._chance.choice(names))
        if part is None or not part.send(signal.SIGTERM):
            return False
        part.leave_by = time.monotonic() + LEAVE_SECONDS
        return True

    def _pick(self, name: str) -> Part | None:
        """Choose a part, mostly one that holds a run, so that there is something to lose."""
        parts = self._fleet.of(name)
        if len(parts) > 1 and self._chance.random() < 0.8:
            parts = [part for part in parts if held_by(part.names()).exists()] or parts
        return self._chance.choice(parts) if parts else None

    def _struck(
        self, kind: str, part: Part, number: signal.Signals, *, group: bool = False
    ) -> bool:
        held = self._held(part.names())
        since = time.time()
        if not part.send(number, group=group):
            return False
        self._recovery.hit(kind, held, since)
        return True

    def _child_kill(self) -> bool:
        """Kill one process of the quarantine's pool, one with a run if there is any."""
        children = [child for part in self._fleet.of("quarantine") for child in part.below()]
        if not children:
            return False
        busy = [child for child in children if self._held([process_name(child)])]
        child = self._chance.choice(busy or children)
        held = self._held([process_name(child)])
        with contextlib.suppress(ProcessLookupError):
            os.kill(child, signal.SIGKILL)
            self._recovery.hit("kill child", held, time.time())
        return True

    def _held(self, processes: list[str]) -> list[Held]:
        try:
            return held_of(held_by(processes))
        except Error:
            # The database is away: then nobody can say what was hit.
            return []

    def _redis_kill(self) -> bool:
        return self._server_kill("kill redis", self._servers.redis, signal.SIGKILL)

    def _postgres_kill(self) -> bool:
        return self._server_kill("kill postgres", self._servers.postgres, signal.SIGQUIT)

    def _server_kill(self, kind: str, server: Server, number: signal.Signals) -> bool:
        """End a server, wait, start it again; from then on count how long the runs take.

        SIGQUIT is Postgres's immediate shutdown.
        """
        states = {RunState.QUEUED} | ({RunState.RUNNING} if kind.endswith("postgres") else set())
        lying = held_of(Run.objects.filter(state__in=states))
        connection.close()
        server.kill(number, group=False)
        time.sleep(self._chance.uniform(0.2, 2.5))
        server.start()
        up = time.time()
        self._recovery.restart(up)
        self._recovery.hit(kind, lying, up)
        return True

    def _processor_kill(self) -> bool:
        self._servers.processor.restart(away=self._chance.uniform(0.2, 1.5))
        return True
