"""A process that has imported the product and opened nothing: it forks a worker for each task.

Commands are lines of JSON, `{"task", "argument", "die_at"}`; each is answered with the exit code of
the child, -9 when it was killed. `die_at` names a fault point at which the child is killed as if
from outside.

`python -m tests.durability.poison.nursery`
"""

from __future__ import annotations

import json
import os
import signal
import sys
import traceback
from typing import Any

import django


def main() -> None:
    """Answer commands until the input ends."""
    django.setup()
    from config.celery import app

    app.loader.import_default_modules()
    print(json.dumps({"ready": True}), flush=True)
    for line in sys.stdin:
        command = json.loads(line)
        pid = os.fork()
        if pid == 0:
            _child(command)
        _pid, status = os.waitpid(pid, 0)
        print(json.dumps({"code": os.waitstatus_to_exitcode(status)}), flush=True)


def _child(command: dict[str, Any]) -> None:
    """Work one task off and end; never return to the loop."""
    from agent_core import faults
    from config.celery import app

    def act(name: str) -> None:
        if name == command["die_at"]:
            os.kill(os.getpid(), signal.SIGKILL)

    faults.install(act)
    code = 1
    try:
        app.tasks[command["task"]](command["argument"])
        code = 0
    except BaseException:  # noqa: BLE001 - the boundary of the child: it ends, whatever it was
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


if __name__ == "__main__":
    main()
