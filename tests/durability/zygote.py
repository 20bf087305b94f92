"""A process that has imported the whole product and opened nothing; it forks a child a command.

Starting a worker takes seconds, a fork milliseconds: so each fault point can have a process of its
own that dies there. Commands come as lines of JSON on the standard input, answers go out the same
way.

`python -m tests.durability.zygote <log file>`
"""

from __future__ import annotations

import faulthandler
import gc
import json
import os
import signal
import sys
import threading
import traceback
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

    def __init__(self, path: str, fault: dict[str, Any] | None) -> None:
        self._file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
        self._fault = fault
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
            os.kill(os.getpid(), _SIGNALS[self._fault["how"]])


def main() -> None:
    """Answer commands until the input ends."""
    _prepare()
    log = os.open(sys.argv[1], os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    _answer({"ready": os.getpid()})
    for line in sys.stdin:
        command = json.loads(line)
        if command["do"] == "wait":
            _answer(_waited(command["pid"]))
        elif command["do"] == "go on":
            os.kill(command["pid"], signal.SIGCONT)
            _answer(_waited(command["pid"]))
        else:
            pid = os.fork()
            if pid == 0:
                _child(command, log)
            _answer({"pid": pid})


def _prepare() -> None:
    """Import all that a worker, a page and the timer need; open nothing that a fork would share."""
    django.setup()
    from django.db import connections

    from agent_core.runs.work import toolset
    from config.celery import app
    from tests.durability import acts

    app.loader.import_default_modules()
    toolset()
    assert acts.ACTS
    assert all(made.connection is None for made in connections.all(initialized_only=True))
    assert threading.active_count() == 1
    gc.collect()
    gc.freeze()


def _waited(pid: int) -> dict[str, Any]:
    """Wait until a child stops or ends, and say how."""
    _pid, status = os.waitpid(pid, os.WUNTRACED)
    if os.WIFSTOPPED(status):
        return {"stopped": True}
    return {"code": os.waitstatus_to_exitcode(status)}


def _child(command: dict[str, Any], log: int) -> None:
    """Do one act and end; never return to the loop."""
    os.dup2(log, 1)
    os.dup2(log, 2)
    code = 1
    try:
        faulthandler.dump_traceback_later(LONGEST_SECONDS, exit=True)
        _act(command)
        code = 0
    except BaseException as error:  # noqa: BLE001 - the boundary of the child: it ends
        traceback.print_exc()
        code = LET_GO if isinstance(error, OperationalError) else 1
    finally:
        sys.stderr.flush()
        os._exit(code)


def _act(command: dict[str, Any]) -> None:
    from django.conf import settings
    from django.db import connection

    from agent_core import faults
    from tests.durability.acts import ACTS

    for name, value in command["settings"].items():
        setattr(settings, name, value)
    connection.settings_dict["NAME"] = command["database"]
    faults.install(Trace(command["trace"], command["fault"]).reached)
    ACTS[command["do"]](**command["with"])


def _answer(answer: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(answer) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    os.chdir(Path(__file__).parents[2])
    main()
