"""A process that has imported the whole product and opened nothing; it forks the others.

Starting a worker takes seconds, a fork milliseconds: so each fault point can have a process that
dies there. Commands come as lines of JSON on the standard input, answers go out the same way.

`python -m tests.rig.zygote <log file> <module>`; the module's `ACTS` are what a child can do.
`forks.py` starts it.
"""

from __future__ import annotations

import faulthandler
import gc
import json
import os
import signal
import socket
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from pathlib import Path
from typing import Any, Final

import django
from django.db import OperationalError

LONGEST_SECONDS: Final = 60
"""A child that takes longer writes down where it hangs, and ends."""

LET_GO: Final = 3
"""How a child ends that found its session closed: a task that fails so is left to the next one."""

_SIGNALS: Final = {"kill": signal.SIGKILL, "stop": signal.SIGSTOP}


class Trace:
    """Notes each point that is reached, and stops this process for good, or for a while, at one.

    Written with no buffer, so that what was reached is known of a process that was killed.
    """

    def __init__(
        self, path: str, fault: dict[str, Any] | None, last_word: Callable[[], None]
    ) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._fault = fault
        self._last_word = last_word
        self._hits = 0
        self._lock = threading.Lock()

    def reached(self, name: str) -> None:
        """Be the action of the fault points."""
        with self._lock:
            os.write(self._file, f"{name}\n".encode())
            if self._fault is None or name != self._fault["point"]:
                return
            self._hits += 1
            strikes = self._hits == self._fault["hit"]
        if strikes:
            self._last_word()
            os.kill(os.getpid(), _SIGNALS[self._fault["how"]])

    def close(self) -> None:
        """Write nothing more."""
        os.close(self._file)


class Child:
    """A forked process of the product, as the zygote sees it: it does one act after the other."""

    def __init__(self, log: int, command: dict[str, Any]) -> None:
        ours, theirs = socket.socketpair()
        self.pid = os.fork()
        if self.pid == 0:
            ours.close()
            _child(theirs, log, command)
        theirs.close()
        self._lines = ours.makefile("rw", encoding="utf-8")
        ours.close()

    def act(self, command: dict[str, Any]) -> dict[str, Any]:
        """Let it do one act; return how that ended."""
        self._lines.write(json.dumps(command) + "\n")
        self._lines.flush()
        return self._ended()

    def go_on(self) -> dict[str, Any]:
        """Let it go on after it was stopped; return how its act ended."""
        os.kill(self.pid, signal.SIGCONT)
        return self._ended()

    def end(self) -> None:
        """End it, if it has not ended by itself."""
        with suppress(ProcessLookupError, ChildProcessError):
            os.kill(self.pid, signal.SIGKILL)
            os.waitpid(self.pid, 0)
        self._lines.close()

    def _ended(self) -> dict[str, Any]:
        line = self._lines.readline()
        if line and "code" in (answer := json.loads(line)):
            return dict(answer)
        # It has said that it dies or stops here, or has died without a word.
        _pid, status = os.waitpid(self.pid, os.WUNTRACED)
        if os.WIFSTOPPED(status):
            return {"stopped": True}
        return {"code": os.waitstatus_to_exitcode(status)}


def main() -> None:
    """Answer commands until the input ends."""
    _prepare()
    log = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    _answer({"ready": os.getpid()})
    children: dict[int, Child] = {}
    for line in sys.stdin:
        command = json.loads(line)
        if command["do"] == "start":
            made = Child(log, command)
            children[made.pid] = made
            _answer({"pid": made.pid})
        elif command["do"] == "go on":
            _answer(children[command["pid"]].go_on())
        elif command["do"] == "end":
            children.pop(command["pid"]).end()
            _answer({})
        else:
            _answer(children[command["pid"]].act(command["act"]))


def _prepare() -> None:
    """Import all that a worker, a page and the timer need; open nothing that a fork would share."""
    django.setup()
    from django.db import connections

    from agent_core.runs.work import toolset
    from config.celery import app

    app.loader.import_default_modules()
    toolset()
    assert _acts()
    assert all(made.connection is None for made in connections.all(initialized_only=True))
    assert threading.active_count() == 1
    gc.collect()
    gc.freeze()


def _child(zygote: socket.socket, log: int, command: dict[str, Any]) -> None:
    """Do acts until there are no more; never return to the loop."""
    try:
        os.dup2(log, 1)
        os.dup2(log, 2)
        lines = zygote.makefile("rw", encoding="utf-8")

        def say(answer: dict[str, Any]) -> None:
            lines.write(json.dumps(answer) + "\n")
            lines.flush()

        _work_on(command)
        for line in lines:
            say({"code": _acted(json.loads(line), lambda: say({}))})
    finally:
        sys.stderr.flush()
        os._exit(1)


def _work_on(command: dict[str, Any]) -> None:
    """Choose settings and database."""
    from django.conf import settings
    from django.db import connection

    for name, value in command.get("settings", {}).items():
        setattr(settings, name, value)
    if "database" in command:
        connection.settings_dict["NAME"] = command["database"]


def _acted(command: dict[str, Any], last_word: Callable[[], None]) -> int:
    """Do one act, and say how it ended; like a task's, its error does not end the process."""
    from agent_core import faults

    trace = Trace(command["trace"], command["fault"], last_word)
    faults.install(trace.reached)
    faulthandler.dump_traceback_later(LONGEST_SECONDS, exit=True)
    try:
        _acts()[command["do"]](**command["with"])
    except Exception as error:  # noqa: BLE001 - the boundary of an act: its process goes on
        traceback.print_exc()
        return LET_GO if isinstance(error, OperationalError) else 1
    else:
        return 0
    finally:
        faulthandler.cancel_dump_traceback_later()
        faults.install(None)
        trace.close()


def _acts() -> Mapping[str, Callable[..., Any]]:
    acts: Mapping[str, Callable[..., Any]] = import_module(sys.argv[2]).ACTS
    return acts


def _answer(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    os.chdir(Path(__file__).parents[2])
    main()
