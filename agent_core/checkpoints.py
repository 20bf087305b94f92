"""The Postgres saver of a run, fenced: a worker that lost its run can write no checkpoint."""

from __future__ import annotations

import select
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.postgres import PostgresSaver
from psycopg import Connection, Cursor
from psycopg.errors import DivisionByZero
from psycopg.rows import DictRow, dict_row
from psycopg_pool import ConnectionPool

from agent_core import faults
from agent_core.errors import StaleAttempt

Pool = ConnectionPool[Connection[DictRow]]
PULL: Final = "__pregel_pull"
"""How LangGraph begins the path of a task that is a step of the graph, and no call of a batch."""

Fence = Callable[[Cursor[DictRow]], None]


def pool_open(conninfo: str, *, size: int = 10, idle_seconds: float = 60) -> Pool:
    """Open a pool of checked connections for savers; connections are made when first needed.

    When nobody needs them any more, all are given up within `idle_seconds`.
    """
    return ConnectionPool(
        conninfo,
        connection_class=Connection[DictRow],
        min_size=0,
        max_size=size,
        # A pool gives up one connection in this time, and no more.
        max_idle=idle_seconds / size,
        # Else it would wait longer after each vain try, in a long outage for minutes.
        reconnect_timeout=5,
        open=True,
        check=_check,
        # Prepared statements do not survive transaction poolers.
        kwargs={"autocommit": True, "prepare_threshold": None, "row_factory": dict_row},
    )


def _check(connection: Connection[DictRow]) -> None:
    """Ask a connection whether it lives, if its socket has something to say.

    A server that ends a session says so or hangs up; both can be read. Otherwise an empty statement
    before every checkpoint would cost as much as the fence.
    """
    waiting = select.poll()
    waiting.register(connection.fileno(), select.POLLIN)
    if waiting.poll(0):
        ConnectionPool.check_connection(connection)


def setup(conninfo: str) -> None:
    """Create or migrate the checkpoint tables. A deployment step, never done at start."""
    # Not by the saver's own way to connect: that one prepares statements.
    with Connection.connect(
        conninfo, autocommit=True, prepare_threshold=None, row_factory=dict_row
    ) as connection:
        PostgresSaver(connection).setup()


class FencedSaver(PostgresSaver):
    """A saver of one attempt. `fence` runs inside the transaction of every write.

    It is given the cursor and must send one statement that locks the owner of the run, and that
    divides by zero when another attempt has begun; the write then raises StaleAttempt. What the
    steps in `repeatable` have come to is stored with the checkpoint that follows and not before it
    as well: after a death in between they run again.
    """

    def __init__(
        self, pool: Pool, fence: Fence, *, repeatable: Iterable[str] = (), **options: Any
    ) -> None:
        super().__init__(pool, **options)
        self._pool = pool
        self._fence = fence
        self._repeatable = {f"~{PULL}, {step}" for step in repeatable}

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Store what a task has written, unless it may as well run again."""
        plain = not any(channel.startswith("__") for channel, _value in writes)
        if not (plain and task_path in self._repeatable):
            super().put_writes(config, writes, task_id, task_path)

    @contextmanager
    def _cursor(self, *, pipeline: bool = False) -> Iterator[Cursor[DictRow]]:
        # The parent asks for a pipeline exactly where it writes. One transaction with the fence
        # takes its place, so that the check and the write cannot be torn apart.
        with self.lock, self._pool.connection() as connection:
            if not pipeline:
                with connection.cursor(binary=True, row_factory=dict_row) as cursor:
                    yield cursor
                return
            cursor = connection.cursor(binary=True, row_factory=dict_row)
            try:
                with faults.commit("checkpoint", _at_once(connection, cursor)):
                    self._fence(cursor)
                    yield cursor
            except DivisionByZero:
                raise StaleAttempt from None


@contextmanager
def _at_once(connection: Connection[DictRow], cursor: Cursor[DictRow]) -> Iterator[None]:
    """Send a transaction without waiting for the answers in between; one failure fails it all.

    A failed one is rolled back when its connection returns to the pool.
    """
    with connection.pipeline():
        cursor.execute("BEGIN")
        yield
        cursor.execute("COMMIT")
