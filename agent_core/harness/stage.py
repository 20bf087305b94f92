"""The stage that the probes of one case share: who ran, and who may finish next."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any, Final

from langchain_core.messages import ToolMessage
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.memory import InMemorySaver
from typing_extensions import override

from agent_core.errors import ControlError

PATIENCE: Final = 20.0
"""Seconds until a probe that waits for its turn gives up: far above what any case takes."""


class StageStuck(ControlError):
    """A probe waited in vain for its turn: the calls of the case do not run side by side."""

    code = "harness.stuck"


class Stage:
    """Lets the probes about `finishing` finish in this order, and notes every probe that ran.

    None of them finishes before all have begun, and none before the result of the one ahead of it
    is stored (`saver`): the order is that of the orchestration, not only of the functions.
    """

    def __init__(self, finishing: Sequence[str] = ()) -> None:
        self._finishing = tuple(finishing)
        self._lock = threading.Lock()
        self._begun: set[str] = set()
        self._all_begun = threading.Event()
        self._over = {thing: threading.Event() for thing in finishing}
        self._thing_of: dict[str, str] = {}
        self._ran: list[str] = []

    @property
    def ran(self) -> tuple[str, ...]:
        """Return the probes that ran, as "tool thing": as they finished where that is forced."""
        return tuple(self._ran if self._finishing else sorted(self._ran))

    def play(self, tool: str, thing: str, call_id: str) -> None:
        """Note that a probe runs, and hold it until it may finish.

        Raises:
            StageStuck: its turn never came.
        """
        if thing in self._over and not self._over[thing].is_set():
            self._await_turn(thing, call_id)
        with self._lock:
            self._ran.append(f"{tool} {thing}")

    def _await_turn(self, thing: str, call_id: str) -> None:
        with self._lock:
            self._thing_of[call_id] = thing
            self._begun.add(thing)
            if self._begun == set(self._finishing):
                self._all_begun.set()
        at = self._finishing.index(thing)
        awaited = self._all_begun if at == 0 else self._over[self._finishing[at - 1]]
        if not awaited.wait(PATIENCE):
            raise StageStuck

    def saver(self) -> InMemorySaver:
        """Return a checkpointer that tells this stage what is stored."""
        return _TellingSaver(self)

    def stored(self, writes: Sequence[tuple[str, Any]]) -> None:
        """Let the next probe finish once the one ahead of it is stored."""
        for call_id in _answered(writes):
            if call_id in self._thing_of:
                self._over[self._thing_of[call_id]].set()


class _TellingSaver(InMemorySaver):
    """Keeps threads in memory and tells a stage of every result as it is stored."""

    def __init__(self, stage: Stage) -> None:
        super().__init__()
        self._stage = stage

    @override
    def put_writes(
        self,
        config: RunnableConfig,
        writes: Sequence[tuple[str, Any]],
        task_id: str,
        task_path: str = "",
    ) -> None:
        super().put_writes(config, writes, task_id, task_path)
        self._stage.stored(writes)


def _answered(writes: Sequence[tuple[str, Any]]) -> Iterator[str]:
    """Yield the calls that a step has answered: results in the graph, messages in the agent."""
    for channel, value in writes:
        if channel == "results":
            yield from value
        elif channel == "messages":
            yield from (each.tool_call_id for each in value if isinstance(each, ToolMessage))
