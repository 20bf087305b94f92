"""A real Celery worker in a process of its own, to be killed, stalled and started again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import redis

ROOT: Final = Path(__file__).parents[2]
LEASE_SECONDS: Final = 2


class Worker:
    """One worker process for turns, quarantine and maintenance."""

    def __init__(self, folder: Path, *, pool: str = "threads", **variables: str) -> None:
        self.pool = pool
        self.variables = {**os.environ, "RUN_LEASE_SECONDS": str(LEASE_SECONDS), **variables}
        self.log = folder / f"worker-{time.monotonic_ns()}.log"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it; what lies in the queues is taken as soon as it is up."""
        command = [sys.executable, "-m", "celery", "-A", "config", "worker", "--pool", self.pool]
        command += ["-c", "4", "-Q", "turns,quarantine,maintenance", "--without-mingle"]
        command += ["--without-gossip", "--loglevel", "INFO"]
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                command, cwd=ROOT, env=self.variables, stdout=log, stderr=log
            )

    def signal(self, number: signal.Signals) -> None:
        """Send a signal."""
        assert self._process is not None
        self._process.send_signal(number)

    def kill(self) -> None:
        """End it with no warning (kill -9)."""
        self.signal(signal.SIGKILL)
        assert self._process is not None
        self._process.wait(10)

    def leave(self) -> int:
        """Ask it to leave (SIGTERM) and return its exit code."""
        self.signal(signal.SIGTERM)
        assert self._process is not None
        return self._process.wait(30)

    def stop(self) -> None:
        """End it however it stands."""
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait(10)


def queues_clear() -> None:
    """Forget what earlier tests have enqueued."""
    client = redis.Redis.from_url(os.environ["REDIS_URL"])
    for name in ("turns", "quarantine", "maintenance", "exports"):
        client.delete(name)
    client.close()
