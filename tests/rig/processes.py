"""One process of a test's own: started, waited for, stopped, killed, asked to leave."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path
from typing import Final, Self

import psutil

from config.children import Child, Spec
from tests.rig.waiting import until

READY_SECONDS: Final = 180.0
END_SECONDS: Final = 30.0


class Process:
    """What a `Spec` describes, with variables of the test's and a log in a folder.

    `says` is what its log says once it is ready, where that is not what the spec looks for.
    """

    def __init__(self, spec: Spec, folder: Path, *, says: str = "", **variables: str) -> None:
        self.name = spec.name
        self.log = folder / f"{spec.name}.log"
        self._before = 0
        answers = (lambda: says in self.said(self._before)) if says else spec.answers
        env = {**spec.env, **variables}
        self._child = Child(replace(spec, answers=answers, env=env), self.log)

    def start(self) -> Self:
        """Start it, or start it again; its log goes on."""
        self._before = len(self.said())
        self._child.start()
        return self

    def ready(self, seconds: float = READY_SECONDS) -> Self:
        """Wait until it answers."""
        self._child.wait_ready(seconds)
        return self

    @property
    def pid(self) -> int:
        """Return its id; it was started."""
        record = self._child.record
        assert record is not None, f"{self.name} was not started"
        return record.pid

    def exit_code(self) -> int | None:
        """Return how it ended, or None while it lives."""
        return self._child.exit_code()

    def dead(self) -> bool:
        """Tell whether it does not run, or not any more."""
        return self._child.record is None or self.exit_code() is not None

    def said(self, since: int = 0) -> str:
        """Return its log, or what came after so many characters."""
        log = self.log.read_text("utf-8", errors="replace") if self.log.exists() else ""
        return log[since:]

    def below(self) -> list[int]:
        """List the ids of the processes below it."""
        try:
            return [child.pid for child in psutil.Process(self.pid).children(recursive=True)]
        except psutil.Error:
            return []

    def send(self, number: signal.Signals, *, group: bool = False) -> bool:
        """Send it a signal, or to all its children too; False when it is dead."""
        if self.dead():
            return False
        (os.killpg if group else os.kill)(self.pid, number)
        return True

    def ended(self, seconds: float = END_SECONDS) -> int:
        """Wait for its end and return its exit code."""
        until(lambda: self.exit_code() is not None, self._rest, seconds)
        code = self.exit_code()
        assert code is not None
        return code

    def leave(self, seconds: float = END_SECONDS) -> int:
        """Ask it to leave (SIGTERM) and return its exit code."""
        self.send(signal.SIGTERM)
        return self.ended(seconds)

    def kill(self, number: signal.Signals = signal.SIGKILL, *, group: bool = True) -> None:
        """End it with no warning, however it stands, and clear away what it has left."""
        if self.send(number, group=group):
            self.ended()
        self._child.clear()

    def stop(self) -> None:
        """End it in order, and all it has left."""
        self._child.stop()

    def ask_end(self) -> None:
        """Ask it to end in order and do not wait; `stop` goes on from there."""
        self._child.ask_end()

    def clear(self) -> None:
        """Kill what it left when it died, before it is started again."""
        self._child.clear()

    def _rest(self) -> str:
        return f"the end of {self.name}:\n{self.said()[-3000:]}"
