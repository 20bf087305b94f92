"""Several callers at once, each in a thread with database connections of its own."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any, Final

from django.db import connections

PATIENCE: Final = 30.0
"""Seconds that callers wait for each other at a barrier; a test waits so long for a caller."""


class Caller:
    """One call in a thread, begun at once."""

    def __init__(self, job: Callable[[], Any], name: str | None = None) -> None:
        self._job = job
        self._outcome: Any = None
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._outcome = self._job()
        except Exception as error:  # noqa: BLE001 - handed to the test as the outcome
            self._outcome = error
        finally:
            connections.close_all()

    def outcome(self, seconds: float = PATIENCE) -> Any:
        """Wait for the end and return the result, or the error."""
        assert not self.waits(seconds), "the caller never came back"
        return self._outcome

    def waits(self, seconds: float = 0.4) -> bool:
        """Tell whether it is still at work after a moment."""
        self._thread.join(seconds)
        return self._thread.is_alive()


def at_once(*jobs: Callable[[], Any], seconds: float = PATIENCE) -> list[Any]:
    """Start all at one barrier and return what came of each: its result, or its error."""
    barrier = threading.Barrier(len(jobs))

    def at_barrier(job: Callable[[], Any]) -> Callable[[], Any]:
        def run() -> Any:
            barrier.wait(PATIENCE)
            return job()

        return run

    callers = [Caller(at_barrier(job)) for job in jobs]
    return [caller.outcome(seconds) for caller in callers]


def elsewhere(job: Callable[[], Any]) -> Any:
    """Do something on another connection, to its end; return its result or raise its error."""
    outcome = Caller(job).outcome()
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


class Meeting:
    """A step that callers reach; the first `parties` of them wait there for each other."""

    def __init__(self, step: Callable[..., Any] = lambda: None, parties: int = 2) -> None:
        self._step = step
        self._barrier = threading.Barrier(parties)
        self._left = parties
        self._lock = threading.Lock()

    def __call__(self, *given: Any, **named: Any) -> Any:
        """Wait for the others, then go on."""
        with self._lock:
            waits = self._left > 0
            self._left -= waits
        if waits:
            self._barrier.wait(PATIENCE)
        return self._step(*given, **named)
