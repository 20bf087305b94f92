"""Ends what a launcher that was killed left behind, so that the next start begins clean."""

import contextlib
import os
import signal
from pathlib import Path

import psutil

from config import runtime
from config.children import still_runs

WAIT_SECONDS = 10.0
# The others need them to end well, so they go last.
SERVERS = ("redis", "postgres")


def stop_leftovers(folder: Path) -> list[str]:
    """Stop the recorded processes that still run, the servers last; return their names."""
    recorded = runtime.read(folder)
    records = recorded.processes if recorded else []
    stopped = []
    for group in (
        [record for record in records if record.name not in SERVERS],
        [record for record in records if record.name in SERVERS],
    ):
        living = [(r, process) for r in reversed(group) if (process := still_runs(r))]
        _end([process for _, process in living], [r.name for r, _ in living])
        stopped += [record.name for record, _ in living]
    runtime.remove(folder)
    return stopped


def _end(processes: list[psutil.Process], names: list[str]) -> None:
    """Ask all at once, wait for all, then kill their groups."""
    for process, name in zip(processes, names, strict=True):
        # Postgres ends quickly on SIGINT, and waits for its clients on SIGTERM.
        with contextlib.suppress(psutil.Error):
            process.send_signal(signal.SIGINT if name == "postgres" else signal.SIGTERM)
    psutil.wait_procs(processes, timeout=WAIT_SECONDS)
    for process in processes:
        # Each led a group of its own, so its id is the group's.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(process.pid, signal.SIGKILL)
