"""How long a run that was hit lay still: from the hit until it is claimed again or has ended."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from statistics import median
from typing import Final
from uuid import UUID

from django.db.models import QuerySet

from agent_core.runs.models import Run
from agent_core.runs.states import RunState

PERCENT: Final = 99


@dataclass(frozen=True, slots=True)
class Held:
    """A run as it stood when it was hit."""

    id: UUID
    state: str
    claimed_at: datetime | None


def held_by(processes: Sequence[str]) -> QuerySet[Run]:
    """Select the runs that these processes work on."""
    return Run.objects.filter(state=RunState.RUNNING, worker__in=processes)


def held_of(runs: QuerySet[Run]) -> list[Held]:
    """Return how these runs stand now."""
    return [Held(*row) for row in runs.values_list("pk", "state", "claimed_at")]


@dataclass(slots=True)
class _Hit:
    held: Held
    kind: str
    since: float


class Recovery:
    """Keeps what was hit and, once it goes on, how long that took."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._hits: list[_Hit] = []
        self.times: list[tuple[str, float]] = []

    def hit(self, kind: str, runs: Iterable[Held], since: float) -> None:
        """Note runs that a fault has hit, at a time in seconds of the clock."""
        with self._lock:
            self._hits += [_Hit(run, kind, since) for run in runs]

    def restart(self, at: float) -> None:
        """Count what still lies still from here: a server that all need was down until now."""
        with self._lock:
            for hit in self._hits:
                hit.since = max(hit.since, at)

    def forget(self, runs: Iterable[UUID]) -> None:
        """Leave out runs whose lease was moved: how long they wait says nothing any more."""
        gone = set(runs)
        with self._lock:
            self._hits = [hit for hit in self._hits if hit.held.id not in gone]

    def look(self) -> None:
        """See which of the hit runs have gone on."""
        with self._lock:
            hits = list(self._hits)
        if not hits:
            return
        fields = ("state", "claimed_at", "ended_at")
        rows = Run.objects.filter(pk__in={hit.held.id for hit in hits}).values_list("pk", *fields)
        now = {row[0]: row[1:] for row in rows}
        for hit in hits:
            took = went_on(hit.held, hit.since, *now[hit.held.id]) if hit.held.id in now else None
            if took is not None:
                with self._lock:
                    if hit in self._hits:
                        self._hits.remove(hit)
                        if took >= 0:
                            self.times.append((hit.kind, took))

    @property
    def pending(self) -> int:
        """Return how many hit runs have not gone on yet."""
        return len(self._hits)


def went_on(
    held: Held, since: float, state: str, claimed_at: datetime | None, ended_at: datetime | None
) -> float | None:
    """Return after how many seconds a run went on, None when it has not.

    Negative when the hit came too late: the run had ended, or begun to wait, just before.
    """
    if claimed_at is not None and claimed_at != held.claimed_at:
        return max(0.0, claimed_at.timestamp() - since)
    if ended_at is not None:
        return ended_at.timestamp() - since
    return -1.0 if state == RunState.WAITING else None


def percentile(times: Sequence[float], percent: int = PERCENT) -> float:
    """Return the value that so many percent of all do not exceed; 0 of nothing."""
    ordered = sorted(times)
    return ordered[min(len(ordered) - 1, len(ordered) * percent // 100)] if ordered else 0.0


def middle(times: Sequence[float]) -> float:
    """Return the median; 0 of nothing."""
    return median(times) if times else 0.0
