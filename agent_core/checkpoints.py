"""The Postgres saver of a run, fenced: a worker that lost its run can write no checkpoint."""

from __future__ import annotations

import select
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final, NamedTuple

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
)
from langgraph.checkpoint.postgres import PostgresSaver
from psycopg import Connection, Cursor
from psycopg.errors import DivisionByZero
from psycopg.rows import DictRow, dict_row
from psycopg_pool import ConnectionPool

from agent_core import faults
from agent_core.errors import StaleAttempt

Pool = ConnectionPool[Connection[DictRow]]
PULL: Final = "~__pregel_pull"
"""How LangGraph begins the path of a task that is a step of the graph, and no call of a batch."""
START: Final = "__start__"
"""The channel that LangGraph's own first step reads the input from."""
BRANCH: Final = "branch:to:"
"""How LangGraph begins the name of the channel that starts a step."""

Fence = Callable[[Cursor[DictRow]], None]


class _Held(NamedTuple):
    """A checkpoint as LangGraph gave it to be stored."""

    config: RunnableConfig
    checkpoint: Checkpoint
    metadata: CheckpointMetadata
    new_versions: ChannelVersions


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
        check=session_lives,
        # Prepared statements do not survive transaction poolers.
        kwargs={"autocommit": True, "prepare_threshold": None, "row_factory": dict_row},
    )


def session_lives(connection: Connection[Any]) -> None:
    """Ask a connection whether it lives, if its socket has something to say.

    A server that ends a session says so or hangs up; both can be read. Otherwise an empty statement
    before every checkpoint would cost as much as the fence.

    Raises:
        psycopg.OperationalError: it is dead.
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
    divides by zero when another attempt has begun; the write then raises StaleAttempt.

    What is stored, and when: a checkpoint after each step that must not happen twice, and what each
    call of a batch has come to as soon as it is there, for its neighbours are still at work. The
    steps in `repeatable` come to the same when they run again, so what they leave behind is held
    back and stored with the checkpoint that follows; after a death in between they run again. A
    thread that has not `begun` is not looked for.
    """

    def __init__(
        self,
        pool: Pool,
        fence: Fence,
        *,
        repeatable: Iterable[str] = (),
        begun: bool = True,
        **options: Any,
    ) -> None:
        super().__init__(pool, **options)
        self._pool = pool
        self._fence = fence
        # LangGraph names the channel that starts a step so; its own first step feeds the input in.
        self._repeatable = {f"{BRANCH}{step}" for step in repeatable}
        if self._repeatable:
            self._repeatable.add(START)
        self._begun = begun
        self._held: _Held | None = None

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Return the latest checkpoint of the thread, or the one that is asked for."""
        return super().get_tuple(config) if self._begun else None

    def put(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Store a checkpoint, with what was held back before it; or hold it back as well."""
        before = self._held.new_versions if self._held else {}
        self._held = _Held(config, checkpoint, metadata, {**before, **new_versions})
        if not self._may_wait(checkpoint, metadata, new_versions):
            return self._flush(self._held)
        at = config["configurable"]
        return {
            "configurable": {
                "thread_id": at["thread_id"],
                "checkpoint_ns": at.get("checkpoint_ns", ""),
                "checkpoint_id": checkpoint["id"],
            }
        }

    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        """Store what a call of a batch has written, and every pause, answer and error.

        A step by itself in its turn needs none of it: its checkpoint follows at once.
        """
        pause = any(channel in WRITES_IDX_MAP for channel, _value in writes)
        if task_path.startswith(PULL) and not pause:
            return
        if self._held and self._held.checkpoint["id"] == config["configurable"]["checkpoint_id"]:
            self._flush(self._held)
        super().put_writes(config, writes, task_id, task_path)

    def _may_wait(
        self, checkpoint: Checkpoint, metadata: CheckpointMetadata, new_versions: ChannelVersions
    ) -> bool:
        """Tell whether only a repeatable step has happened, and a step comes next, not calls."""
        if metadata.get("source") == "input":
            return bool(self._repeatable)
        values = checkpoint["channel_values"]
        # A step empties the channel that has started it, and fills the one of the next.
        ran = {
            each for each in new_versions if each.startswith((BRANCH, START)) and each not in values
        }
        follows = any(each.startswith(BRANCH) for each in values)
        return bool(ran) and ran <= self._repeatable and follows

    def _flush(self, held: _Held) -> RunnableConfig:
        written = super().put(*held)
        self._held, self._begun = None, True
        return written

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
