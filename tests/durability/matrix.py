"""Plays a case on the real product: each act in a process of its own, of which one may die.

What a browser, a person, beat and other workers do after a crash is done here in their place:
asking again with the same key, sweeping when leases are over, taking what lies in the queues.
"""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast
from uuid import NAMESPACE_URL, uuid5

import redis

from agent_core.runs.models import Run
from agent_core.runs.states import RUN_FINAL, RunState
from exports.models import Export
from exports.states import ExportState
from tests.durability.worker import ROOT, queues_clear
from tests.durability.zygote import LET_GO
from tests.payments.processor import Processor

QUEUES: Final = ("turns", "quarantine", "exports")
MOST_ROUNDS: Final = 60


@dataclass(frozen=True, slots=True)
class Act:
    """One thing that happens in a case, by the name of `acts.ACTS`, or:

    "work": workers do all they find, and what time brings. "die": the worker that takes the next
    message dies at a point. "take": one worker takes one message. "leave": it was asked to leave
    before. "lose": Redis forgets its queues.
    """

    do: str
    args: Mapping[str, Any] = field(default_factory=dict)


WORK: Final = Act("work")
PAUSE_SECONDS: Final = 0.2
KILLED: Final = -9


@dataclass(frozen=True, slots=True)
class Fault:
    """Where a process dies or stops: act, process of that act, point and which hit of it."""

    act: int
    process: int
    point: str
    hit: int
    how: str = "kill"

    def __str__(self) -> str:
        return f"{self.how} in act {self.act}, process {self.process}, {self.point} #{self.hit}"


@dataclass(slots=True)
class Reached:
    """The points that one process has reached, in order."""

    act: int
    process: int
    points: list[str]

    def places(self) -> Iterator[tuple[str, int]]:
        """Yield each point with the number of its hit."""
        counted: dict[str, int] = {}
        for point in self.points:
            counted[point] = counted.get(point, 0) + 1
            yield point, counted[point]


class Zygote:
    """The process that forks one child for each act."""

    def __init__(self, folder: Path, **variables: str) -> None:
        self.log = folder / "children.log"
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.durability.zygote", str(self.log)],
                cwd=ROOT,
                env={**os.environ, **variables},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        self._read()

    def start(self, command: dict[str, Any]) -> int:
        """Fork a child that does something, and return its id."""
        return int(self._ask(command)["pid"])

    def wait(self, pid: int) -> dict[str, Any]:
        """Wait until a child has ended or stopped, and return how."""
        return self._ask({"do": "wait", "pid": pid})

    def go_on(self, pid: int) -> dict[str, Any]:
        """Let a stopped child go on, wait until it has ended, and return how."""
        return self._ask({"do": "go on", "pid": pid})

    def close(self) -> None:
        """End it; what it forked has ended before, or is stopped and dies with its database."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(10)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _ask(self, command: dict[str, Any]) -> dict[str, Any]:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        return self._read()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, f"the zygote has ended:\n{self.log.read_text()[-3000:]}"
        answer: dict[str, Any] = json.loads(line)
        return answer


class Play:
    """One playing of a case in a database of its own, with at most one fault."""

    def __init__(
        self,
        zygote: Zygote,
        processor: Processor,
        folder: Path,
        database: str,
        settings: dict[str, Any],
    ) -> None:
        self._zygote = zygote
        self._command = {"settings": settings, "database": database}
        self._trace = folder / "trace"
        self.processor = processor
        self.reached: list[Reached] = []
        self.stopped: int | None = None
        self.met = False

    def acts(self, acts: tuple[Act, ...], fault: Fault | None = None) -> None:
        """Let everything happen in its order, and what a death has left be taken up again."""
        for place, act in enumerate(acts):
            meant = fault if fault is not None and fault.act == place else None
            if act.do == "work":
                self.work(place, meant)
            elif act.do == "die":
                self._die(place, act)
            elif act.do in {"leave", "take"}:
                self._one(place, "task" if act.do == "take" else act.do, meant)
            elif act.do == "lose":
                queues_clear()
            else:
                self.person(place, act, meant, work=acts[place + 1 : place + 2] == (WORK,))
        assert fault is None or self.met, f"{fault} was not met"

    def person(self, place: int, act: Act, fault: Fault | None, *, work: bool) -> None:
        """Let somebody, or beat, do one thing; they try again when nobody answered.

        With `work`, workers may take up before that what the dead process has committed.
        """
        ended = self._child(place, 0, act.do, act.args, fault)
        if ended.get("code") == KILLED or "stopped" in ended:
            self._nothing_half_done(act, fault)
            if work:
                self.work(place, None, process=1)
            ended = self._child(place, 0, act.do, act.args, None)
        assert ended == {"code": 0}, self._said(act.do, ended)

    def work(self, place: int, fault: Fault | None, *, process: int = 0) -> None:
        """Let workers take what lies in the queues, and beat pass, until nothing is left to do."""
        for _round in range(MOST_ROUNDS):
            taken = message_taken()
            if taken is not None:
                meant = fault if fault is not None and fault.process == process else None
                ended = self._child(place, process, "task", taken, meant)
                dead = ended.get("code") == KILLED or "stopped" in ended
                assert dead == (meant is not None and self.met) or ended == {"code": 0}, self._said(
                    str(taken), ended
                )
                process += 1
            elif unfinished():
                ended = self._child(place, -1, "sweep", {}, None)
                assert ended == {"code": 0}, self._said("sweep", ended)
                if self.stopped is not None and not queued():
                    # It was stopped in its transaction and holds its rows, until the sweep finds
                    # that it has said nothing for the length of a lease. Nothing tells of that.
                    time.sleep(PAUSE_SECONDS)
            else:
                return
        raise AssertionError(f"after {MOST_ROUNDS} rounds there is still work: {_states()}")

    def _die(self, place: int, act: Act) -> None:
        taken = self._message(place)
        ended = self._child(place, -1, "task", taken, Fault(place, -1, act.args["point"], 1))
        assert ended.get("code") == KILLED, self._said("die", ended)
        self.met = False

    def _one(self, place: int, do: str, fault: Fault | None) -> None:
        taken = self._message(place)
        ended = self._child(place, 0, do, taken, fault)
        assert fault is not None or ended == {"code": 0}, self._said(do, ended)

    def _message(self, place: int) -> dict[str, Any]:
        """Take a message; one that died before it was sent comes with the next sweep."""
        taken = message_taken()
        if taken is None:
            self._child(place, -1, "sweep", {}, None)
            taken = message_taken()
        assert taken is not None, "no message to take"
        return taken

    def resume(self) -> None:
        """Let the stopped process go on, to its end."""
        assert self.stopped is not None
        ended = self._zygote.go_on(self.stopped)
        assert ended in ({"code": 0}, {"code": LET_GO}), self._said("the stopped process", ended)

    def _child(
        self, place: int, process: int, do: str, args: Mapping[str, Any], fault: Fault | None
    ) -> dict[str, Any]:
        self._trace.unlink(missing_ok=True)
        aimed = None
        if fault is not None:
            aimed = {"point": fault.point, "hit": fault.hit, "how": fault.how}
        pid = self._zygote.start(
            {
                **self._command,
                "do": do,
                "with": dict(args),
                "trace": str(self._trace),
                "fault": aimed,
            }
        )
        ended = self._zygote.wait(pid)
        points = self._trace.read_text("utf-8").splitlines() if self._trace.exists() else []
        self.reached.append(Reached(place, process, points))
        if ended.get("code") == KILLED or "stopped" in ended:
            self.met = True
            self.stopped = pid if "stopped" in ended else None
        return ended

    def _nothing_half_done(self, act: Act, fault: Fault | None) -> None:
        if act.do in {"begin", "say"} and fault is not None and fault.point.endswith("send:before"):
            key = act.args["key"]
            found = Run.objects.filter(message__client_key=key).count()
            # The only later point of that name is the one of the queue.
            assert found == (1 if fault.point.startswith("task.") else 0)

    def _said(self, what: str, ended: dict[str, Any]) -> str:
        return f"{what} ended with {ended}:\n{self._zygote.log.read_text()[-3000:]}"


def message_taken() -> dict[str, Any] | None:
    """Take the next message out of the queues as a worker would, or None."""
    client = redis.Redis.from_url(os.environ["REDIS_URL"])
    try:
        for queue in QUEUES:
            raw = client.rpop(queue)
            if raw is not None:
                message = json.loads(cast("bytes", raw))
                arguments, _options, _embedded = json.loads(base64.b64decode(message["body"]))
                return {"name": message["headers"]["task"], "arguments": arguments}
    finally:
        client.close()
    return None


def queued() -> bool:
    """Tell whether a message lies in a queue."""
    client = redis.Redis.from_url(os.environ["REDIS_URL"])
    try:
        return any(client.llen(queue) for queue in QUEUES)
    finally:
        client.close()


def unfinished() -> bool:
    """Tell whether something is left that time and beat must bring on."""
    idle = {*RUN_FINAL, RunState.WAITING}
    at_work = {ExportState.QUEUED, ExportState.COUNTING, ExportState.WRITING, ExportState.CHECKING}
    return (
        Run.objects.exclude(state__in=idle).exists()
        or Export.objects.filter(state__in=at_work).exists()
    )


def _states() -> list[str]:
    runs = Run.objects.values_list("state", flat=True)
    return [*runs, *Export.objects.values_list("state", flat=True)]


def key_of(text: str) -> str:
    """Return the key under which a browser sends a text, the same at every try."""
    return str(uuid5(NAMESPACE_URL, text))


@contextmanager
def fresh(processor: Processor) -> Iterator[None]:
    """Begin with empty books and queues."""
    processor.clear()
    queues_clear()
    yield
    queues_clear()
