"""Processes of the product that are forked in milliseconds, to die or stop at a fault point."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tests.rig.spoken import Spoken


class Zygote:
    """The process that forks the others; `acts` is the module that says what they can do.

    See `zygote.py`.
    """

    def __init__(self, folder: Path, acts: str, **variables: str) -> None:
        self.log = folder / "children.log"
        self._process = Spoken(
            "tests.rig.zygote", str(self.log), acts, variables=variables, log=self.log
        )
        self._process.heard()

    def start(self, command: dict[str, Any]) -> int:
        """Fork a process of the product, and return its id; `settings` and `database` are its."""
        return int(self._ask({"do": "start", **command})["pid"])

    def act(self, pid: int, act: dict[str, Any]) -> dict[str, Any]:
        """Let a process do one act, until that or the process has ended; return how.

        `do` and `with` name the act, `trace` the file of the points that it reaches; at a `fault`
        with `point`, `hit` and `how` (kill or stop) it goes no further.
        """
        return self._ask({"do": "act", "pid": pid, "act": act})

    def go_on(self, pid: int) -> dict[str, Any]:
        """Let a stopped process go on, and return how its act ended."""
        return self._ask({"do": "go on", "pid": pid})

    def end(self, pid: int) -> None:
        """End a process, if it has not ended by itself."""
        self._ask({"do": "end", "pid": pid})

    def close(self) -> None:
        """End it; what it forked has ended before."""
        self._process.close()

    def _ask(self, command: dict[str, Any]) -> dict[str, Any]:
        return dict(self._process.ask(command))
