"""Ends what a launcher that was killed left behind, so that the next start begins clean."""

import contextlib
import os
import signal
from pathlib import Path

import psutil

from config import runtime
from config.children import still_runs

WAIT_SECONDS = 10.0


def stop_leftovers(folder: Path) -> list[str]:
    """Stop the recorded processes that still run, last started first; return their names."""
    recorded = runtime.read(folder)
    stopped: list[str] = []
    for record in reversed(recorded.processes if recorded else []):
        process = still_runs(record)
        if process is None:
            continue
        # Postgres ends quickly on SIGINT; the others take SIGTERM.
        kind = signal.SIGINT if record.name == "postgres" else signal.SIGTERM
        with contextlib.suppress(psutil.Error, ProcessLookupError, PermissionError):
            process.send_signal(kind)
            with contextlib.suppress(psutil.TimeoutExpired):
                process.wait(WAIT_SECONDS)
            os.killpg(record.pid, signal.SIGKILL)
        stopped.append(record.name)
    runtime.remove(folder)
    return stopped
