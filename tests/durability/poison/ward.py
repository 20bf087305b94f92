"""What a test does with runs that may be deadly: let processes take them, and time pass."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any, Final
from uuid import UUID

from django.contrib.auth.models import User
from django.utils import timezone

from agent_core.runs import services
from agent_core.runs.models import Message, Run
from agent_core.runs.queue import QUARANTINE_TASK, WORK_TASK
from agent_core.runs.states import RUN_CLAIMABLE, RUN_FINAL, Role, RunState
from agent_core.runs.tasks import sweep
from tests.durability.worker import ROOT

SETTINGS: Final = "tests.durability.poison.settings"
KILLED: Final = -9
MOST_ROUNDS: Final = 12


class Nursery:
    """The process that forks the workers of a test module."""

    def __init__(self, folder: Path, **variables: str) -> None:
        self.log = folder / "nursery.log"
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.durability.poison.nursery"],
                cwd=ROOT,
                env={**os.environ, "DJANGO_SETTINGS_MODULE": SETTINGS, **variables},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        self._read()

    def work(self, task: str, argument: UUID, die_at: str = "") -> int:
        """Let a new process work a task off; return its exit code."""
        command = {"task": task, "argument": str(argument), "die_at": die_at}
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(command) + "\n")
        self._process.stdin.flush()
        return int(self._read()["code"])

    def close(self) -> None:
        """End it."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait(10)
        self._process.stdout.close()

    def _read(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, f"the nursery has ended:\n{self.log.read_text()[-3000:]}"
        read: dict[str, Any] = json.loads(line)
        return read


class Ward:
    """Runs of one person, each in a conversation of its own, and the processes that take them."""

    def __init__(self, nursery: Nursery, owner: User) -> None:
        self.nursery = nursery
        self.owner = owner

    def asks(self, text: str) -> Run:
        """Send a message in a new conversation; nobody works on it yet."""
        conversation = services.conversation_start(owner=self.owner)
        return services.message_send(conversation=conversation, sender=self.owner, text=text)

    def take(self, run: Run, die_at: str = "") -> int:
        """Let a process take the run from the queue in which it lies; return its exit code."""
        run.refresh_from_db()
        task = QUARANTINE_TASK if run.quarantined else WORK_TASK
        code = self.nursery.work(task, run.pk, die_at)
        run.refresh_from_db()
        return code

    def dies(self, run: Run, die_at: str = "") -> None:
        """Let a process take the run and die of it; its lease ends, and beat does its part."""
        assert self.take(run, die_at) == KILLED
        lease_over()
        run.refresh_from_db()

    def rounds(self, *runs: Run) -> int:
        """Let processes take the runs in turn until all have ended; count the deaths."""
        deaths = 0
        for _round in range(MOST_ROUNDS):
            for run in runs:
                run.refresh_from_db()
                if run.state in RUN_CLAIMABLE:
                    deaths += self.take(run) == KILLED
            lease_over()
            if all(_ended(run) for run in runs):
                return deaths
        raise AssertionError(f"not ended after {MOST_ROUNDS} rounds")


def _ended(run: Run) -> bool:
    run.refresh_from_db()
    return run.state in RUN_FINAL


def lease_over() -> None:
    """Let every lease be over, and do beat's part."""
    Run.objects.filter(state=RunState.RUNNING).update(
        lease_until=timezone.now() - timedelta(seconds=1)
    )
    sweep()


def standing(run: Run) -> tuple[str, bool, int]:
    """Return state, whether in quarantine, and strikes."""
    run.refresh_from_db()
    return str(run.state), run.quarantined, run.strikes


def answers(run: Run) -> list[str]:
    """Return what a run has answered."""
    found = Message.objects.filter(run=run, role=Role.ASSISTANT)
    return list(found.values_list("text", flat=True))
