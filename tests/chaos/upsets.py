"""Faults that leave every process alive: lost and doubled messages, cut lines, moved leases."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from functools import partial
from random import Random
from typing import Final
from uuid import UUID

from django.db.models.functions import Now

from agent_core.runs.models import Run
from agent_core.runs.queue import QUARANTINE_TASK, WORK_TASK, task_send
from agent_core.runs.states import RunState
from exports.models import Export
from exports.moves import WRITE_TASK
from tests.chaos.recovery import Recovery, held_of
from tests.chaos.servers import Servers

UPSETS: Final[Mapping[str, int]] = {
    "flush redis": 4,
    "cut redis": 4,
    "cut postgres": 4,
    "send twice": 7,
    "send late": 5,
    "lease over": 3,
    "lease longer": 2,
    "processor fault": 8,
}
"""Each kind, and how often it comes beside the others."""

PROCESSOR_FAULTS: Final = (
    "rate", "busy", "server_before", "drop_before", "server_after", "garbage_after", "drop_after",
)  # fmt: skip

RECENT: Final = 12
"""So many of the last messages count as of this moment; all before them are late."""


class Upsets:
    """Each act returns whether there was something to strike, and notes which runs it hit."""

    def __init__(
        self,
        chance: Random,
        servers: Servers,
        recovery: Recovery,
        sent: Callable[[], Sequence[UUID]],
    ) -> None:
        self._chance = chance
        self._servers = servers
        self._recovery = recovery
        self._sent = sent

    def acts(self) -> Mapping[str, Callable[[], bool]]:
        """Return what is done for each kind."""
        return {
            "flush redis": self._flush,
            "cut redis": self._cut_redis,
            "cut postgres": self._cut_postgres,
            "send twice": lambda: self._send(self._sent()[-RECENT:]),
            "send late": lambda: self._send(self._sent()[:-RECENT]),
            "lease over": partial(self._lease, timedelta(seconds=-1)),
            "lease longer": partial(self._lease, timedelta(minutes=1)),
            "processor fault": self._processor,
        }

    def _flush(self) -> bool:
        lying = held_of(Run.objects.filter(state=RunState.QUEUED))
        self._servers.redis_do("FLUSHALL")
        self._recovery.hit("flush redis", lying, time.time())
        return True

    def _cut_redis(self) -> bool:
        for client in ("normal", "pubsub"):
            self._servers.redis_do("CLIENT", "KILL", "TYPE", client)
        return True

    def _cut_postgres(self) -> bool:
        self._servers.sessions_end()
        return True

    def _send(self, sent: Sequence[UUID]) -> bool:
        """Deliver again, to either queue and twice; exports too."""
        runs = self._chance.sample(list(sent), min(4, len(sent)))
        exports = list(Export.objects.order_by("-created_at").values_list("pk", flat=True)[:3])
        tasks = [(self._chance.choice((WORK_TASK, QUARANTINE_TASK)), run) for run in runs]
        tasks += [(WORK_TASK, run) for run in runs] + [(WRITE_TASK, export) for export in exports]
        delivered = [task_send(task, str(key)) for task, key in tasks]
        return bool(runs) and all(delivered)

    def _lease(self, moved_by: timedelta) -> bool:
        """Let the clock of some leases jump; how long those runs wait says nothing any more."""
        working = list(Run.objects.filter(state=RunState.RUNNING).values_list("pk", flat=True)[:2])
        moved = Run.objects.filter(pk__in=working, state=RunState.RUNNING).update(
            lease_until=Now() + moved_by
        )
        self._recovery.forget(working)
        return bool(moved)

    def _processor(self) -> bool:
        self._servers.processor_fault(self._chance.choice(PROCESSOR_FAULTS))
        return True
