"""The workers and beat, started as the launcher starts them, and started again when they die."""

from __future__ import annotations

import signal
import socket
import threading
import time
from pathlib import Path
from typing import Final

from config.children import Spec
from config.launcher import parts
from tests.rig.processes import Process
from tests.rig.product import worker_spec

PAUSE_SECONDS: Final = 1.0
"""How long a dead part stays dead; the launcher waits as long."""


class Part(Process):
    """One process of the product: its kind, and how it stands."""

    def __init__(self, kind: str, spec: Spec, folder: Path) -> None:
        super().__init__(spec, folder)
        self.kind = kind
        self.died_at: float | None = None
        self.leave_by: float | None = None
        self.stopped = False

    def names(self) -> list[str]:
        """List what a run that this process, or a child of it, has claimed names as its worker."""
        return [process_name(pid) for pid in (self.pid, *self.below())]


class Fleet:
    """Every part that chaos may strike."""

    def __init__(self, folder: Path, redis_url: str, turn_workers: int) -> None:
        logs = folder / "log"
        self.overdue: list[str] = []
        self.parts = [
            Part(kind, worker_spec(kind, redis_url, node=f"{kind}{number}@chaos"), logs)
            for kind in parts.WORKERS
            for number in range(1, 1 + (turn_workers if kind == "turns" else 1))
        ]
        self.parts.append(Part("beat", parts.beat(folder), logs))
        self._done = threading.Event()
        self._keeper = threading.Thread(target=self._keep, name="keeper", daemon=True)

    def start(self) -> None:
        """Start every part, and look after them from now on."""
        for part in self.parts:
            part.start()
        self._keeper.start()

    def stop(self) -> None:
        """End every part."""
        self._done.set()
        self._keeper.join(timeout=10)
        for part in self.parts:
            part.send(signal.SIGCONT, group=True)
            part.ask_end()
        for part in self.parts:
            part.stop()

    def of(self, kind: str) -> list[Part]:
        """List the parts of a kind that live and are not stopped or leaving."""
        return [
            part
            for part in self.parts
            if part.kind == kind and not part.stopped and part.leave_by is None and not part.dead()
        ]

    def _keep(self) -> None:
        while not self._done.wait(0.1):
            for part in self.parts:
                self._look(part)

    def _look(self, part: Part) -> None:
        now = time.monotonic()
        if part.exit_code() is None:
            if part.leave_by is not None and now > part.leave_by:
                self.overdue.append(part.name)
                part.send(signal.SIGKILL)
                part.leave_by = None
            return
        if part.died_at is None:
            part.died_at, part.leave_by, part.stopped = now, None, False
            part.clear()
        elif now - part.died_at >= PAUSE_SECONDS:
            part.died_at = None
            part.start()


def process_name(pid: int) -> str:
    """Return what a run names as its worker when this process has claimed it."""
    return f"{socket.gethostname()}:{pid}"
