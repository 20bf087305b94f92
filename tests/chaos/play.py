"""The whole chaos run: traffic and faults side by side, then calm, then the checks."""

from __future__ import annotations

import os
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from django.db import Error, connection
from django.db.models.functions import Now

from agent_core.runs.models import Run
from agent_core.runs.states import RUN_FINAL, RunState
from payments.models import Intent
from payments.states import IntentState
from tests.chaos.books import Asked, found_wrong
from tests.chaos.faults import Faults
from tests.chaos.fleet import Fleet
from tests.chaos.persons import Sent
from tests.chaos.recovery import Recovery
from tests.chaos.report import exit_code, progress, report
from tests.chaos.rows import moved_of, tables_read, work_open
from tests.chaos.scripts import talks_make
from tests.chaos.servers import Servers
from tests.chaos.traffic import Traffic
from tests.chaos.world import people_make, records_make, tables_make

TICK_SECONDS: Final = 0.1
FAULT_SECONDS: Final = 8.0
"""The longest without a fault while messages are sent."""

STILL_SECONDS: Final = 240.0
"""Without any end for so long, nothing is waited for any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """How long and how hard."""

    seed: str
    turns: int
    # Messages of one conversation.
    talk_turns: int = 8
    at_once: int = 24
    rate: float = 1.5  # Messages a second, at most.
    turn_workers: int = 3
    # A fault comes after one to so many turns.
    fault_turns: int = 5
    settle_seconds: float = 120.0
    tell_seconds: float = 10.0
    untimed: bool = False


class Chaos:
    """One run on servers that are up, with Django set up on them."""

    def __init__(self, plan: Plan, servers: Servers, say: Callable[[str], None]) -> None:
        self._plan = plan
        self._servers = servers
        self._say = say
        self._recovery = Recovery()
        self._calm = threading.Event()
        self._began = time.monotonic()

    def run(self) -> int:
        """Play it; return 0 when nothing was lost, doubled, stuck, parked, overdue or wrong."""
        plan = self._plan
        tables_make()
        self._say(f"tables after {time.monotonic() - self._began:.0f} s")
        people, team = people_make()
        talks = talks_make(plan.seed, plan.turns, plan.talk_turns)
        records_make(talks, team)
        self._fleet = Fleet(self._servers.folder, os.environ["REDIS_URL"], plan.turn_workers)
        self._traffic = Traffic(plan.seed, talks, people, at_once=plan.at_once, rate=plan.rate)
        self._faults = Faults(
            plan.seed, self._servers, self._fleet, self._recovery,
            lambda: [sent.run_id for sent in self._traffic.sent],
        )  # fmt: skip
        self._began = time.monotonic()
        self._fleet.start()
        try:
            self._storm()
            self._settle()
            return self._judge()
        finally:
            self._traffic.close()
            self._fleet.stop()

    def _storm(self) -> None:
        striker = threading.Thread(target=self._strike, name="faults", daemon=True)
        striker.start()
        try:
            self._watch()
        except KeyboardInterrupt:
            self._say("told to stop; going on to the checks (once more: at once)")
        self._calm.set()
        striker.join(timeout=180)
        self._faults.end()

    def _watch(self) -> None:
        """Let people act until all is said, or until nothing ends any more."""
        told = moved = time.monotonic()
        before = (-1, -1)
        while not self._traffic.over:
            self._turn()
            now = time.monotonic()
            standing = (len(self._traffic.sent), self._traffic.ended)
            moved, before = (now, standing) if standing != before else (moved, before)
            if now - moved > STILL_SECONDS:
                self._say(f"nothing has ended for {STILL_SECONDS:.0f} s; going on to the checks")
                break
            if now - told >= self._plan.tell_seconds:
                told = now
                self._tell()

    def _turn(self) -> None:
        try:
            self._traffic.tick()
            self._recovery.look()
        except Error:
            pass  # The database is away: look again.
        finally:
            connection.close()
        time.sleep(TICK_SECONDS)

    def _strike(self) -> None:
        try:
            self._strike_on()
        except Exception as error:  # noqa: BLE001 - a server that does not come up again, say
            self._traffic.problems.append(f"no more faults after {error!r}")

    def _strike_on(self) -> None:
        while not self._calm.is_set():
            due = self._traffic.ended + self._faults.pause(self._plan.fault_turns)
            latest = time.monotonic()
            while not self._calm.wait(0.1):
                waited = time.monotonic() - latest
                if waited > FAULT_SECONDS or (waited > 0.5 and self._traffic.ended >= due):
                    break
            if not self._calm.is_set() and self._traffic.sent:
                self._faults.strike()

    def _tell(self) -> None:
        self._say(
            progress(
                seconds=time.monotonic() - self._began,
                sent=len(self._traffic.sent),
                turns=self._plan.turns,
                ended=self._traffic.ended,
                kills=self._faults.kills,
                hurt=self._recovery.pending,
            )
        )

    def _settle(self) -> None:
        """Let everything come to rest. What the ledger would ask again later it asks now."""
        until = time.monotonic() + self._plan.settle_seconds
        while time.monotonic() < until:
            try:
                self._recovery.look()
                Intent.objects.filter(state=IntentState.OPEN, next_try_at__gt=Now()).update(
                    next_try_at=Now()
                )
                if not _going_on():
                    return
            except Error:
                pass
            finally:
                connection.close()
            time.sleep(0.5)

    def _judge(self) -> int:
        tables = tables_read()
        asked = [_asked(sent) for sent in self._traffic.sent]
        wrong = found_wrong(asked, tables, moved_of(self._servers.processor_books()))
        wrong["overdue"] = [f"{node} did not leave in time" for node in self._fleet.overdue]
        times, problems = self._recovery.times, self._traffic.problems
        self._say(
            report(
                turns=len(asked),
                ends=Counter(run.rule or run.state for run in tables.runs),
                done=self._faults.done,
                wrong=wrong,
                times=times,
                problems=problems,
            )
        )
        return exit_code(
            turns=self._plan.turns,
            wrong=wrong,
            times=times,
            problems=problems,
            untimed=self._plan.untimed,
        )


def _asked(sent: Sent) -> Asked:
    return Asked(sent.run_id, sent.message_id, sent.turn.wishes, frozenset(sent.doubles))


def _going_on() -> bool:
    resting = {*RUN_FINAL, RunState.WAITING}
    return Run.objects.exclude(state__in=resting).exists() or any(work_open())
