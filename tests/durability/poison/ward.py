"""What a test does with runs that may be deadly: let processes take them, and time pass."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Final
from uuid import UUID

from django.contrib.auth.models import User
from django.utils import timezone

from agent_core.runs import services
from agent_core.runs.models import Message, Run
from agent_core.runs.queue import QUARANTINE_TASK, WORK_TASK
from agent_core.runs.states import RUN_CLAIMABLE, RUN_FINAL, Role, RunState
from agent_core.runs.tasks import sweep
from tests.rig.forks import Zygote

SETTINGS: Final = "tests.durability.poison.settings"
KILLED: Final = -9
MOST_ROUNDS: Final = 12


class Nursery:
    """Forks a worker for each task."""

    def __init__(self, folder: Path, **variables: str) -> None:
        variables = {"DJANGO_SETTINGS_MODULE": SETTINGS, **variables}
        self._trace = folder / "trace"
        self._zygote = Zygote(folder, "tests.durability.acts", **variables)

    def work(self, task: str, argument: UUID, die_at: str = "") -> int:
        """Let a new process work a task off; return its exit code, or how the task ended.

        `die_at` names a fault point at which it is killed as if from outside.
        """
        worker = self._zygote.start({})
        act = {
            "do": "task",
            "with": {"name": task, "arguments": [str(argument)]},
            "trace": str(self._trace),
            "fault": {"point": die_at, "hit": 1, "how": "kill"} if die_at else None,
        }
        ended = self._zygote.act(worker, act)
        self._zygote.end(worker)
        return int(ended["code"])

    def close(self) -> None:
        """End it."""
        self._zygote.close()


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
