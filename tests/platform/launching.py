"""Starts `python -m config.launcher` as a person at a terminal would, in a home of its own."""

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import psutil

from config.home import BASE_DIR

# Eight processes load at once; a machine that does other work takes its time.
START_SECONDS = 240.0
_OURS = ("DATABASE_URL", "REDIS_URL", "SANDBOX_URL", "DJANGO_SETTINGS_MODULE", "CHAT_MODEL")


class Launch:
    """One start of the product, with its output line by line."""

    def __init__(
        self, home: Path, port: int, before: tuple[str, ...] = (), **variables: str
    ) -> None:
        self.home = home
        self.port = port
        env = {name: value for name, value in os.environ.items() if name not in _OURS}
        env |= {"COUNTERSIGN_HOME": str(home), "PORT": str(port), **variables}
        self.process = subprocess.Popen(
            [*before, sys.executable, "-m", "config.launcher"],
            cwd=BASE_DIR,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            start_new_session=True,
        )
        self.lines: list[str] = []
        self._queue: queue.Queue[str | None] = queue.Queue()
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as output:
            for line in output:
                self._queue.put(line.rstrip())
        self._queue.put(None)

    def wait_for(self, text: str, seconds: float = START_SECONDS) -> str:
        """Return the next line that contains the text; fail when the output ends without it."""
        limit = time.monotonic() + seconds
        while time.monotonic() < limit:
            try:
                line = self._queue.get(timeout=max(limit - time.monotonic(), 0.01))
            except queue.Empty:
                break
            if line is None:
                self._queue.put(None)
                break
            self.lines.append(line)
            if text in line:
                return line
        raise AssertionError(f"no line with {text!r} came:\n" + "\n".join(self.lines))

    def interrupt(self) -> None:
        """Press Ctrl-C: the terminal sends SIGINT to the whole group."""
        os.killpg(self.process.pid, signal.SIGINT)

    def end(self, seconds: float = 60.0) -> int:
        """Return the exit code; the output until then is kept."""
        code = self.process.wait(seconds)
        while (line := self._queue.get(timeout=10)) is not None:
            self.lines.append(line)
        return code

    @property
    def output(self) -> str:
        """Return what was printed so far."""
        return "\n".join(self.lines)


def processes_of(home: Path) -> list[str]:
    """Return the command lines of all living processes that belong to a home."""
    found = []
    for process in psutil.process_iter():
        try:
            mine = process.environ().get("COUNTERSIGN_HOME") == str(home)
            if mine and process.status() != psutil.STATUS_ZOMBIE:
                found.append(" ".join(process.cmdline()))
        except psutil.Error:
            continue
    return found


def all_ended(home: Path, seconds: float = 10.0) -> list[str]:
    """Return what still lives of a home after a short while; empty is good."""
    limit = time.monotonic() + seconds
    while (left := processes_of(home)) and time.monotonic() < limit:
        time.sleep(0.1)
    return left
