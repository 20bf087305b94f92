"""Whole turns on the product's host with a model that answers at once; gate and route are clocked.

The clock runs in the nodes `gate` and `route`, and in the gate's second look before a call. What
these ask of the host (its reads and writes) and of the tools' own facts is clocked apart, so both
can be said: the decision alone, and with the database.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import wraps
from typing import Any, Final
from unittest.mock import patch

from agent_core import gate, graph
from agent_core.chat_models.scripted import ScriptedModel, ScriptedStep, calls
from agent_core.gate import Gate
from agent_core.runs import work
from agent_core.runs.django_host import DjangoHost
from agent_core.runs.models import Run
from tests.journeys.chat import Chat, person
from tests.journeys.databases import copied
from tests.savings.play import Stage

_HOST: Final = ("context", "gated", "call_ended", "worked_seconds")
_FACTS: Final = ("_facts", "identity_of")

TURNS: Final[dict[str, Callable[[int], list[ScriptedStep]]]] = {
    "one ticket": lambda turn: [calls(_ticket(turn))],
    "three tickets at once": lambda turn: [calls(*(_ticket(turn, each) for each in "abc"))],
    "a look-up, then a ticket": lambda turn: [
        calls(("customer_find", {"key": "good-card@example.com"})),
        calls(_ticket(turn)),
    ],
}


@dataclass(frozen=True, slots=True)
class Clocked:
    """One turn in seconds: the whole, gate and route with what they asked, and without."""

    whole: float
    with_database: float
    alone: float

    @property
    def share(self) -> float:
        """Return gate and route as a share of the turn, with the database."""
        return self.with_database / self.whole

    @property
    def share_alone(self) -> float:
        """Return the decision alone as a share of the turn."""
        return self.alone / self.whole


@dataclass
class Clock:
    """Adds up what the watched functions take, on whatever thread they run."""

    inside: float = 0.0
    asked: float = 0.0
    _here: threading.local = field(default_factory=threading.local)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def watched(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Clock a node or the gate's second look."""
        return self._clocked(function, within=False)

    def apart(self, function: Callable[..., Any]) -> Callable[..., Any]:
        """Clock what is asked from within, the outermost only."""
        return self._clocked(function, within=True)

    def _clocked(self, function: Callable[..., Any], *, within: bool) -> Callable[..., Any]:
        @wraps(function)  # LangGraph reads a node's signature.
        def clocked(*args: Any, **options: Any) -> Any:
            depth = getattr(self._here, "depth", 0)
            if depth != within:
                return function(*args, **options)
            self._here.depth = depth + 1
            began = time.perf_counter()
            try:
                return function(*args, **options)
            finally:
                self._here.depth = depth
                self._add(time.perf_counter() - began, within=within)

        return clocked

    def _add(self, seconds: float, *, within: bool) -> None:
        with self._lock:
            if within:
                self.asked += seconds
            else:
                self.inside += seconds


def turns_clocked(name: str, stage: Stage, *, turns: int) -> list[Clocked]:
    """Play the turn of this name so often, each in a new conversation, after one to warm up."""
    with copied(stage.address, stage.filled):
        return [_turn(TURNS[name](turn)) for turn in range(turns + 1)][1:]


def _turn(steps: Sequence[ScriptedStep]) -> Clocked:
    model = ScriptedModel(steps=list(steps))
    run = Chat(person("agent")).send("Open a ticket for good-card@example.com")
    clock = Clock()
    with _clocks(clock), patch.object(work, "chat_model", lambda *_args, **_options: model):
        began = time.perf_counter()
        work.run_work(run.pk)
        whole = time.perf_counter() - began
    if Run.objects.get(pk=run.pk).stop.rule != "completed":
        raise ValueError("The turn did not end with its ticket.")
    return Clocked(whole, clock.inside, clock.inside - clock.asked)


@contextmanager
def _clocks(clock: Clock) -> Iterator[None]:
    """Put the clock into the graph, the gate and the host for one turn."""
    with ExitStack() as patches:
        for node in ("gate", "route"):
            patches.enter_context(patch.object(graph, node, clock.watched(getattr(graph, node))))
        patches.enter_context(patch.object(Gate, "fresh", clock.watched(Gate.fresh)))
        for name in _HOST:
            asked = clock.apart(getattr(DjangoHost, name))
            patches.enter_context(patch.object(DjangoHost, name, asked))
        for name in _FACTS:
            patches.enter_context(patch.object(gate, name, clock.apart(getattr(gate, name))))
        yield


def _ticket(turn: int, part: str = "") -> tuple[str, dict[str, str]]:
    return "ticket_create", {"subject": f"Broken box {turn}{part}"}
