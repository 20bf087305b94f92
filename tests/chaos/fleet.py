"""The workers and beat, started as the launcher starts them, and started again when they die."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import threading
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final

import psutil

from config.children import Child, Spec
from config.launcher import parts

PAUSE_SECONDS: Final = 1.0
"""How long a dead part stays dead; the launcher waits as long."""


@dataclass
class Part:
    """One process of the product: its kind, its node name, and how it stands."""

    kind: str
    node: str
    child: Child
    died_at: float | None = None
    leave_by: float | None = None
    stopped: bool = False

    def children(self) -> list[int]:
        """List the ids of the processes below this one."""
        record = self.child.record
        with contextlib.suppress(psutil.Error):
            if record is not None:
                return [child.pid for child in psutil.Process(record.pid).children(recursive=True)]
        return []

    def names(self) -> list[str]:
        """List what a run that this process, or a child of it, has claimed names as its worker."""
        record = self.child.record
        pids = [] if record is None else [record.pid, *self.children()]
        return [process_name(pid) for pid in pids]

    def send(self, number: signal.Signals, *, group: bool = False) -> bool:
        """Send a signal to the process, or to all its children too; False when it is dead."""
        record = self.child.record
        if record is None or self.child.exit_code() is not None:
            return False
        (os.killpg if group else os.kill)(record.pid, number)
        return True


class Fleet:
    """Every part that chaos may strike."""

    def __init__(self, folder: Path, redis_url: str, turn_workers: int) -> None:
        self._folder = folder
        self.parts: list[Part] = []
        self.overdue: list[str] = []
        for name in parts.WORKERS:
            for number in range(1, 1 + (turn_workers if name == "turns" else 1)):
                self._add(name, _renamed(parts.worker(name, redis_url), f"{name}{number}"))
        self._add("beat", parts.beat(folder))
        self._done = threading.Event()
        self._keeper = threading.Thread(target=self._keep, name="keeper", daemon=True)

    def _add(self, kind: str, spec: Spec) -> None:
        command = list(spec.command)
        node = command[command.index("-n") + 1] if "-n" in command else kind
        child = Child(spec, self._folder / "log" / f"{node.partition('@')[0]}.log")
        self.parts.append(Part(kind, node, child))

    def start(self) -> None:
        """Start every part, and look after them from now on."""
        for part in self.parts:
            part.child.start()
        self._keeper.start()

    def stop(self) -> None:
        """End every part."""
        self._done.set()
        self._keeper.join(timeout=10)
        for part in self.parts:
            part.send(signal.SIGCONT, group=True)
            part.child.ask_end()
        for part in self.parts:
            part.child.stop()

    def of(self, kind: str) -> list[Part]:
        """List the parts of a kind that live and are not stopped or leaving."""
        return [
            part
            for part in self.parts
            if part.kind == kind
            and not part.stopped
            and part.leave_by is None
            and part.child.exit_code() is None
        ]

    def _keep(self) -> None:
        while not self._done.wait(0.1):
            for part in self.parts:
                self._look(part)

    def _look(self, part: Part) -> None:
        now = time.monotonic()
        if part.child.exit_code() is None:
            if part.leave_by is not None and now > part.leave_by:
                self.overdue.append(part.node)
                part.send(signal.SIGKILL)
                part.leave_by = None
            return
        if part.died_at is None:
            part.died_at, part.leave_by, part.stopped = now, None, False
            part.child.clear()
        elif now - part.died_at >= PAUSE_SECONDS:
            part.died_at = None
            part.child.start()


def process_name(pid: int) -> str:
    """Return what a run names as its worker when this process has claimed it."""
    return f"{socket.gethostname()}:{pid}"


def _renamed(spec: Spec, name: str) -> Spec:
    """Give a worker a node name of its own, so that several of a kind run side by side."""
    command = list(spec.command)
    command[command.index("-n") + 1] = f"{name}@chaos"
    return replace(spec, name=f"worker-{name}", command=command)
