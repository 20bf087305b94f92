"""Plays a case on the real product: its acts are done by a process, which may die in one.

What a browser, a person, beat and other workers do after a crash is done here in their place:
asking again with the same key, sweeping when leases are over, taking what lies in the queues.
"""

from __future__ import annotations

import base64
import json
import os
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, cast
from uuid import NAMESPACE_URL, uuid5

import redis

from agent_core.runs.models import Run
from agent_core.runs.queue import broker_forgot
from agent_core.runs.states import RUN_FINAL, RunState
from exports.models import Export
from exports.states import EXPORT_WORKING, ExportState
from tests.durability.worker import queues_clear
from tests.payments.processor import Processor
from tests.rig.forks import Zygote
from tests.rig.zygote import LET_GO

TURNS: Final = ("turns", "quarantine")
QUEUES: Final = (*TURNS, "exports")
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


class Blamed:
    """What deaths must have told of runs and exports, counted beside the product's own count.

    A run whose worker died goes on in quarantine; one that had it in quarantine was a strike. Both
    are forgotten once the run waits for people.
    """

    def __init__(self) -> None:
        self._runs: dict[str, int] = {}
        self._exports: Counter[str] = Counter()

    def died(self, args: Mapping[str, Any]) -> None:
        """Note the death of a process, if it had a claim on what its task named."""
        for key in args.get("arguments", ()):
            if Run.objects.filter(pk=key, state=RunState.RUNNING).exists():
                self._runs[key] = self._runs.get(key, -1) + 1
            if Export.objects.filter(pk=key, state__in=EXPORT_WORKING).exists():
                self._exports[key] += 1

    def look(self) -> None:
        """Forget what is held against runs that wait."""
        if self._runs:
            for run in Run.objects.filter(pk__in=self._runs, state=RunState.WAITING):
                del self._runs[str(run.pk)]

    def wrong(self) -> list[str]:
        """Say which runs and exports are blamed for other deaths than those that were."""
        found = []
        for run in Run.objects.all():
            strikes, quarantined = self._runs.get(str(run.pk), 0), str(run.pk) in self._runs
            if (run.strikes, run.quarantined) != (strikes, quarantined):
                found.append(
                    f"a run has {run.strikes} strikes, quarantined {run.quarantined}, instead of "
                    f"{strikes}, {quarantined}"
                )
        for export in Export.objects.all():
            if export.deaths != self._exports[str(export.pk)]:
                found.append(f"an export has {export.deaths} deaths")
        return found


class Play:
    """One playing of a case, with at most one fault.

    `had_ended`: the process that died or stopped had brought its run to its end before.
    """

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
        self.had_ended = False
        self.met = False
        self.blamed = Blamed()
        self._at_work: int | None = None
        self._left: list[int] = []

    def close(self) -> None:
        """End every process of this playing."""
        for pid in (*self._left, self._at_work):
            if pid is not None:
                self._zygote.end(pid)

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
        # How often a point is reached may depend on the time; that it is does not.
        assert fault is None or self.met or fault.hit > 1, f"{fault} was not met"

    def person(self, place: int, act: Act, fault: Fault | None, *, work: bool) -> None:
        """Let somebody, or beat, do one thing; they try again when nobody answered.

        With `work`, workers may take up before that what the dead process has committed.
        """
        ended = self._child(place, 0, act.do, act.args, fault)
        if gone(ended):
            self._nothing_half_done(act, fault)
            if work:
                self.work(place, None, process=1)
            ended = self._child(place, 0, act.do, act.args, None)
        self._all_right(act.do, ended)

    def work(
        self, place: int, fault: Fault | None, *, process: int = 0, turns_only: bool = False
    ) -> None:
        """Let workers take what lies in the queues, and beat pass, until nothing is left to do."""
        for _round in range(MOST_ROUNDS):
            taken = message_taken(TURNS if turns_only else QUEUES)
            if taken is not None:
                meant = fault if fault is not None and fault.process == process else None
                ended = self._child(place, process, "task", taken, meant)
                self._all_right(str(taken), ended, meant)
                process += 1
            elif unfinished(turns_only=turns_only):
                self._sweep(place)
            else:
                return
        raise AssertionError(f"after {MOST_ROUNDS} rounds there is still work: {_states()}")

    def _die(self, place: int, act: Act) -> None:
        met, taken = self.met, self._message(place)
        ended = self._child(place, -1, "task", taken, Fault(place, -1, act.args["point"], 1))
        assert ended == {"code": KILLED}, self._said("die", ended)
        self.met = met

    def _one(self, place: int, do: str, fault: Fault | None) -> None:
        taken = self._message(place)
        ended = self._child(place, 0, do, taken, fault)
        self._all_right(do, ended, fault)
        if do == "task" and gone(ended):
            # What comes after counts on a turn that has come so far.
            self.work(place, None, process=1, turns_only=True)

    def _sweep(self, place: int) -> None:
        self._all_right("sweep", self._child(place, -1, "sweep", {}, None))

    def _all_right(self, what: str, ended: dict[str, Any], fault: Fault | None = None) -> None:
        """Let nothing end but well, or as it was meant to."""
        allowed = [{"code": 0}]
        if fault is not None:
            allowed += [{"code": KILLED} if fault.how == "kill" else {"stopped": True}]
        if self.stopped is not None:
            # It could not have the rows of the stopped one: that is left to the next try.
            allowed += [{"code": LET_GO}]
        assert ended in allowed, self._said(what, ended)

    def _message(self, place: int) -> dict[str, Any]:
        """Take a message; one that died before it was sent comes with the next sweep."""
        taken = message_taken()
        if taken is None:
            self._sweep(place)
            taken = message_taken()
        assert taken is not None, "no message to take"
        return taken

    def resume(self) -> None:
        """Let the stopped process go on, to its end."""
        assert self.stopped is not None
        ended = self._zygote.go_on(self.stopped)
        self.stopped = None
        assert ended in ({"code": 0}, {"code": LET_GO}), self._said("the stopped process", ended)

    def _child(
        self, place: int, process: int, do: str, args: Mapping[str, Any], fault: Fault | None
    ) -> dict[str, Any]:
        self._trace.unlink(missing_ok=True)
        aimed = None
        if fault is not None:
            aimed = {"point": fault.point, "hit": fault.hit, "how": fault.how}
        pid = self._at_work
        if pid is None or do == "leave":
            # One that was asked to leave takes nothing else.
            pid = self._zygote.start(self._command)
        act = {"do": do, "with": dict(args), "trace": str(self._trace), "fault": aimed}
        ended = self._zygote.act(pid, act)
        points = self._trace.read_text("utf-8").splitlines() if self._trace.exists() else []
        self.reached.append(Reached(place, process, points))
        if gone(ended):
            self.met = True
            self.stopped = pid if "stopped" in ended else None
            ours = Run.objects.filter(pk__in=args.get("arguments", ()))
            self.had_ended = ours.filter(state__in=RUN_FINAL).exists()
            self.blamed.died(args)
        self.blamed.look()
        self._at_work = None if do == "leave" or gone(ended) else pid
        if self._at_work is None:
            self._left.append(pid)
        if "stopped" in ended:
            # Its rows are locked; whoever needs them waits no longer than until the next sweep.
            self._sweep(place)
        return ended

    def _nothing_half_done(self, act: Act, fault: Fault | None) -> None:
        if act.do in {"begin", "say"} and fault is not None and fault.point.endswith("send:before"):
            key = act.args["key"]
            found = Run.objects.filter(message__client_key=key).count()
            # The only later point of that name is the one of the queue.
            assert found == (1 if fault.point.startswith("task.") else 0)

    def _said(self, what: str, ended: dict[str, Any]) -> str:
        return f"{what} ended with {ended}:\n{self._zygote.log.read_text()[-3000:]}"


def message_taken(queues: tuple[str, ...] = QUEUES) -> dict[str, Any] | None:
    """Take the next message out of the queues as a worker would, or None."""
    client = redis.Redis.from_url(os.environ["REDIS_URL"])
    try:
        for queue in queues:
            raw = client.rpop(queue)
            if raw is not None:
                message = json.loads(cast("bytes", raw))
                arguments, _options, _embedded = json.loads(base64.b64decode(message["body"]))
                return {"name": message["headers"]["task"], "arguments": arguments}
    finally:
        client.close()
    return None


def gone(ended: Mapping[str, Any]) -> bool:
    """Tell whether a process was killed or stopped in its act."""
    return ended.get("code") == KILLED or "stopped" in ended


def unfinished(*, turns_only: bool = False) -> bool:
    """Tell whether something is left that time and beat must bring on."""
    idle = {*RUN_FINAL, RunState.WAITING}
    at_work = {ExportState.QUEUED, ExportState.COUNTING, ExportState.WRITING, ExportState.CHECKING}
    if Run.objects.exclude(state__in=idle).exists():
        return True
    return not turns_only and Export.objects.filter(state__in=at_work).exists()


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
    # A Redis that is new to the product would let the first sweep send everything again.
    broker_forgot()
    yield
    queues_clear()
