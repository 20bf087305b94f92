"""A process of ours: started in a group of its own, watched, and ended with everything below it.

Used by the launcher for every part of the product and by the test suite for its servers.
"""

import contextlib
import os
import pwd
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from config.runtime import Process

POLL_SECONDS = 0.05
# A log that is longer at a start is put aside; one old one is kept.
LOG_BYTES = 20_000_000


class NotReady(Exception):
    """A process ended, or did not answer in time, while it was being waited for."""


def _no_pause() -> None:
    """Stand in for the launcher's check whether it was told to stop."""


@dataclass(frozen=True)
class Spec:
    """What to start, how to see that it answers, and how it is asked to end."""

    name: str
    command: Sequence[str]
    answers: Callable[[], bool]
    env: Mapping[str, str] = field(default_factory=dict)
    user: int | None = None
    folder: Path | None = None
    # Signals from polite to certain, each with the seconds it is given.
    endings: Sequence[tuple[signal.Signals, float]] = (
        (signal.SIGTERM, 10.0),
        (signal.SIGKILL, 5.0),
    )


class Child:
    """One started process of a `Spec`; may be started again after it died."""

    def __init__(self, spec: Spec, log: Path) -> None:
        self.spec = spec
        self.log = log
        self._process: subprocess.Popen[bytes] | None = None
        self._started = 0.0
        self._asked = False

    def start(self) -> None:
        """Start the process in a session of its own, away from the terminal's signals."""
        self.log.parent.mkdir(parents=True, exist_ok=True)
        if self.log.exists() and self.log.stat().st_size > LOG_BYTES:
            self.log.replace(self.log.with_suffix(".log.1"))
        with self.log.open("ab") as output:
            self._process = subprocess.Popen(
                list(self.spec.command),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                cwd=self.spec.folder,
                env={**os.environ, **self.spec.env},
                user=self.spec.user,
                group=None if self.spec.user is None else pwd.getpwuid(self.spec.user).pw_gid,
                extra_groups=None if self.spec.user is None else [],
            )
        self._asked = False
        self._started = psutil.Process(self._process.pid).create_time()

    @property
    def record(self) -> Process | None:
        """Return what identifies the running process, or None when none was started."""
        if self._process is None:
            return None
        return Process(self.spec.name, self._process.pid, self._started)

    def exit_code(self) -> int | None:
        """Return how the process ended, or None while it lives."""
        return None if self._process is None else self._process.poll()

    def wait_ready(self, seconds: float, check: Callable[[], None] = _no_pause) -> None:
        """Wait until the process answers; `check` may raise to break the wait off.

        Raises: NotReady when it ends first or stays silent.
        """
        limit = time.monotonic() + seconds
        while True:
            check()
            code = self.exit_code()
            if code is not None:
                raise NotReady(f"{self.spec.name} ended at once (exit code {code})")
            if self.spec.answers():
                return
            if time.monotonic() > limit:
                raise NotReady(f"{self.spec.name} did not answer within {seconds:.0f} seconds")
            time.sleep(POLL_SECONDS * 2)

    def wait_end(self, check: Callable[[], None] = _no_pause) -> int:
        """Wait for a process that does one thing and ends; return its exit code."""
        while (code := self.exit_code()) is None:
            check()
            time.sleep(POLL_SECONDS)
        return code

    def clear(self) -> None:
        """Kill what a process that died left in its group, before it is started again."""
        if self._process is not None:
            kill_group(self._process.pid)

    def ask_end(self) -> None:
        """Send the polite signal and do not wait; `stop` then goes on from there."""
        if self._process is not None and self._process.poll() is None and not self._asked:
            self._asked = True
            with contextlib.suppress(ProcessLookupError):
                self._process.send_signal(self.spec.endings[0][0])

    def stop(self, hasty: Callable[[], bool] = lambda: False) -> None:
        """End the process and all it left in its group, politely first unless `hasty`."""
        process = self._process
        if process is None:
            return
        self.ask_end()
        for number, (kind, seconds) in enumerate(self.spec.endings):
            if process.poll() is not None:
                break
            # A second polite signal would be taken by Celery for impatience.
            if number:
                with contextlib.suppress(ProcessLookupError):
                    process.send_signal(kind)
            limit = time.monotonic() + seconds
            while process.poll() is None and time.monotonic() < limit and not hasty():
                time.sleep(POLL_SECONDS)
        kill_group(process.pid)
        process.wait()


def kill_group(leader: int) -> None:
    """Kill whatever is left of a group that one of our children led."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)


def still_runs(record: Process) -> psutil.Process | None:
    """Return the recorded process if it lives; an id that went to another does not count."""
    try:
        process = psutil.Process(record.pid)
        same = abs(process.create_time() - record.started) < 0.5
        return process if same and process.status() != psutil.STATUS_ZOMBIE else None
    except psutil.Error:
        return None
