"""The yardstick: the same graph in a bare loop of one process, with the same durability.

It is played with LangGraph's own saver, as whoever publishes such figures does, and with the
product's, which stores fewer checkpoints, without its fence.

What the product adds is left out: no web, no queue, no rows of runs, no events, no lease. The tools
and their schemas are the product's; a ticket is only said to be opened, in memory. Each thread has
a saver and a graph of its own, as a saver lets one thread in at a time.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final
from uuid import uuid4

from django.utils.module_loading import import_string
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.postgres import PostgresSaver
from psycopg.conninfo import make_conninfo

from agent_core.budget import Limits
from agent_core.checkpoints import FencedSaver, Pool, pool_open
from agent_core.contract import Artifact, RunContext, Tool, completed
from agent_core.graph import REPEATABLE, graph_compile, recursion_limit
from agent_core.harness.memory import MemoryHost, context_make
from agent_core.host import Parts
from agent_core.policy import allow
from agent_core.toolset import Toolset
from tests.bench.model import TOOL, BenchModel

OURS: Final = "bench"


def ticket(
    context: RunContext, *, subject: str, body: str = "", payment: str = ""
) -> tuple[str, Artifact]:
    """Open a ticket for a colleague to work on, linked to this conversation and a payment."""
    reference = f"TIC-{uuid4().hex[:8].upper()}"
    return f"Ticket {reference} was opened: “{subject}”.", completed(
        "ticket.created", stop=True, data={"ticket": reference, "ticket_id": str(uuid4())}
    )


def tools(paths: Sequence[str]) -> list[Tool]:
    """Return the product's tools, of which the one that is called touches no database."""
    registered = [tool for path in paths for tool in import_string(path)]
    return [
        replace(tool, run=ticket, policies=(allow,), identity=_subject)
        if tool.name == TOOL
        else tool
        for tool in registered
    ]


def _subject(_context: RunContext, arguments: Any) -> str:
    return str(arguments["subject"])


class Host(MemoryHost):
    """Notes when the first piece of text came."""

    first: float = 0.0

    def model_delta(self, text: str) -> None:
        """Keep a piece of text."""
        self.first = self.first or time.perf_counter()
        super().model_delta(text)


class Bare:
    """The loop: threads that play turns, each on threads of the saver that never come again."""

    def __init__(self, pool: Pool, made: Toolset, limits: Limits) -> None:
        self._pool = pool
        self._toolset = made
        self._limits = limits
        self._rights = frozenset(tool.right for tool in made)

    def played(self, threads: int, turns: int, *, ours: bool) -> dict[str, Any]:
        """Play so many turns on each of so many threads at once, with our saver or LangGraph's."""
        found: list[dict[str, float]] = []
        ready = threading.Barrier(threads + 1)
        workers = [
            threading.Thread(target=self._turns, args=(turns, ready, found, ours))
            for _thread in range(threads)
        ]
        for worker in workers:
            worker.start()
        ready.wait()
        cpu, began = time.process_time(), time.perf_counter()
        for worker in workers:
            worker.join()
        seconds, used = time.perf_counter() - began, time.process_time() - cpu
        if len(found) != threads * turns:
            raise RuntimeError("Some turns of the bare loop have failed.")
        return {"seconds": seconds, "cpu": used, "turns": found}

    def _turns(
        self, turns: int, ready: threading.Barrier, found: list[dict[str, float]], ours: bool
    ) -> None:
        graph = graph_compile(PostgresSaver(self._pool))
        model = BenchModel()
        ready.wait()
        for _turn in range(turns):
            if ours:
                # The product makes one for each run, too.
                graph.checkpointer = FencedSaver(
                    self._pool, lambda _cursor: None, repeatable=REPEATABLE, begun=False
                )
            found.append(self._turn(graph, model))

    def _turn(self, graph: Any, model: BenchModel) -> dict[str, float]:
        acting = replace(context_make(""), rights=self._rights)
        host = Host(acting=acting, words=f"Broken box {uuid4().hex[:12]}")
        parts = Parts(host=host, model=model, toolset=self._toolset, limits=self._limits)
        config: RunnableConfig = {
            "configurable": {"thread_id": str(acting.run_id)},
            "recursion_limit": recursion_limit(self._limits),
        }
        began = time.perf_counter()
        for _step in graph.stream(
            {"batch": []}, config, context=parts, stream_mode="updates", durability="sync"
        ):
            pass
        whole = time.perf_counter() - began
        if not host.ends or host.ends[0].rule != "completed":
            raise RuntimeError("A turn of the bare loop did not end with its ticket.")
        return {"first_token": host.first - began, "whole": whole}


def start() -> None:
    """Play what each line asks for."""
    import django

    django.setup()

    from django.conf import settings

    address = make_conninfo(os.environ["DATABASE_URL"], application_name=OURS)
    made = Toolset(tools(settings.TOOLSETS))
    bare = Bare(pool_open(address), made, Limits(**settings.RUN_LIMITS))
    for line in sys.stdin:
        order = json.loads(line)
        told = bare.played(order["threads"], order["turns"], ours=order["ours"])
        print(json.dumps(told), flush=True)


if __name__ == "__main__":
    start()
