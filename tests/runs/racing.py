"""Two transactions that meet where a test wants them to: the first holds, the second waits."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

from django.db import connection

from agent_core import faults
from tests.rig.threads import PATIENCE, Caller
from tests.rig.waiting import until


def race(first: Callable[[], Any], second: Callable[[], Any], *, held: str) -> tuple[Any, Any]:
    """Stop the first at a named point before its commit until the second waits for its lock.

    Each has a connection of its own. Returns what each returned, or what it was refused with.
    """
    reached, go = threading.Event(), threading.Event()

    def act(point: str) -> None:
        if point == held and threading.current_thread().name == "first":
            reached.set()
            assert go.wait(PATIENCE), "the second never came"

    faults.install(act)
    try:
        one = Caller(first, "first")
        assert reached.wait(PATIENCE), f"{held} was not reached: {one.outcome(0)}"
        other = Caller(second, "second")
        until(_waits, "the second to wait for the first", PATIENCE, every=0.01)
    finally:
        go.set()
        faults.install(None)
    return one.outcome(), other.outcome()


def _waits() -> bool:
    """Tell whether a transaction of this database waits for another one."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = current_database() AND wait_event_type = 'Lock'"
        )
        return bool(cursor.fetchone()[0])
