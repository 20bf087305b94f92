"""Two transactions that meet where a test wants them to: the first holds, the second waits."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from django.db import connection, connections

from agent_core import faults

PATIENCE = 30


def race(first: Callable[[], Any], second: Callable[[], Any], *, held: str) -> tuple[Any, Any]:
    """Stop the first at a named point before its commit until the second waits for its lock.

    Each has a connection of its own. Returns what each returned, or what it was refused with.
    """
    reached, go = threading.Event(), threading.Event()
    results: dict[str, Any] = {}

    def act(point: str) -> None:
        if point == held and threading.current_thread().name == "first":
            reached.set()
            assert go.wait(PATIENCE), "the second never came"

    def run(name: str, job: Callable[[], Any]) -> threading.Thread:
        def body() -> None:
            try:
                results[name] = job()
            except Exception as error:  # noqa: BLE001 - the test looks at what each one met
                results[name] = error
            finally:
                connections.close_all()

        thread = threading.Thread(target=body, name=name, daemon=True)
        thread.start()
        return thread

    faults.install(act)
    try:
        threads = [run("first", first)]
        assert reached.wait(PATIENCE), f"{held} was not reached: {results}"
        threads.append(run("second", second))
        _wait_for_a_waiter()
    finally:
        go.set()
        faults.install(None)
    for thread in threads:
        thread.join(PATIENCE)
        assert not thread.is_alive()
    return results["first"], results["second"]


def _wait_for_a_waiter() -> None:
    """Return once a transaction of this database waits for another one."""
    limit = time.monotonic() + PATIENCE
    while time.monotonic() < limit:
        with connection.cursor() as cursor:
            cursor.execute(
                "SELECT count(*) FROM pg_stat_activity"
                " WHERE datname = current_database() AND wait_event_type = 'Lock'"
            )
            if cursor.fetchone()[0]:
                return
        threading.Event().wait(0.01)
    raise AssertionError("the second never waited for the first")
