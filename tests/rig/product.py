"""The parts of the product as real processes, by the launcher's own commands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Self

from config.children import Spec
from config.launcher import parts
from tests.rig.processes import READY_SECONDS, Process

COMMAND_SECONDS = 600.0
WORKER_SAYS = "ready."
"""What the log of a worker says once it takes messages."""


def worker_spec(
    kind: str,
    redis_url: str,
    *,
    node: str,
    queues: str = "",
    pool: str = "",
    slots: int = 0,
    before: Sequence[str] = (),
    more: Sequence[str] = (),
) -> Spec:
    """Return the launcher's worker of a kind under a node name of its own.

    What else is named takes the place of the launcher's choice; `before` is what the command is run
    under, `more` are further options of it.
    """
    spec = parts.worker(kind, redis_url)
    command = list(spec.command)
    for option, value in (("-n", node), ("-Q", queues), ("-P", pool), ("-c", slots)):
        if value:
            command[command.index(option) + 1] = str(value)
    name = f"worker-{node.partition('@')[0]}"
    return replace(spec, name=name, command=[*before, *command, *more])


def command_run(folder: Path, *arguments: str, **variables: str) -> None:
    """Run a management command to its end; it ends well."""
    process = Process(parts.command(*arguments), folder, **variables).start()
    assert process.ended(COMMAND_SECONDS) == 0, f"{arguments[0]}:\n{process.said()[-3000:]}"


class Parts:
    """Processes with the same variables: started when asked for, ended together with the body."""

    def __init__(self, folder: Path, variables: Mapping[str, str]) -> None:
        self.folder = folder
        self.variables = dict(variables)
        self.processes: dict[str, Process] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_raised: object) -> None:
        self.kill()

    def start(self, spec: Spec, *, says: str = "") -> Process:
        """Start a part; whoever needs it waits until it is ready. A second of a name is numbered.

        `says`: see `Process`.
        """
        same = sum(name.partition("#")[0] == spec.name for name in self.processes)
        named = replace(spec, name=f"{spec.name}#{same + 1}") if same else spec
        process = Process(named, self.folder, says=says, **self.variables)
        self.processes[named.name] = process
        return process.start()

    def ready(self, seconds: float = READY_SECONDS) -> None:
        """Wait until all that was started answers."""
        for process in self.processes.values():
            process.ready(seconds)

    def log(self, name: str) -> str:
        """Return what a process has said."""
        return self.processes[name].said() if name in self.processes else ""

    def pids(self) -> dict[str, int]:
        """Return the process ids; no process may have ended."""
        for name, process in self.processes.items():
            assert not process.dead(), f"{name} has ended:\n{process.said()[-3000:]}"
        return {name: process.pid for name, process in self.processes.items()}

    def family(self, name: str) -> list[int]:
        """Return the process ids of a part and of its children."""
        return [self.pids()[name], *self.processes[name].below()]

    def stop(self) -> None:
        """End everything in order, all at once."""
        for process in self.processes.values():
            process.ask_end()
        for process in self.processes.values():
            process.stop()
        self.processes.clear()

    def kill(self) -> None:
        """End everything with no warning."""
        for process in self.processes.values():
            process.kill()
        self.processes.clear()
