"""Early pytest plugin: real Postgres and Redis for the session, before Django's settings load.

Named by `-p tests.services`; a set DATABASE_URL or REDIS_URL is used as it is.
"""

import atexit
import os
import shutil
import signal
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit, urlunsplit

import pytest

if TYPE_CHECKING:
    from tests.rig.servers import Server

OURS = "COUNTERSIGN_TEST_SERVERS"
"""Which of the two addresses the session made itself, and was not given from outside."""

_servers: list["Server"] = []
_owner = 0


def _start() -> None:
    global _owner
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.test")
    if worker := os.environ.get("PYTEST_XDIST_WORKER"):
        _apart(int(worker.removeprefix("gw")))
    if os.environ.get("DATABASE_URL") and os.environ.get("REDIS_URL"):
        return
    from tests.rig.servers import Postgres, folder_make, redis_own

    os.environ[OURS] = " ".join({"DATABASE_URL", "REDIS_URL"} - set(os.environ))
    folder = folder_make("cs-test-")
    _owner = os.getpid()
    atexit.register(_stop, folder)
    # A runner that ends us politely must still leave no server behind.
    signal.signal(signal.SIGTERM, lambda *_: pytest.exit("told to stop", returncode=143))
    if not os.environ.get("REDIS_URL"):
        _servers.append(redis_own(folder))
        os.environ["REDIS_URL"] = _servers[-1].start().url
    if not os.environ.get("DATABASE_URL"):
        _servers.append(Postgres(folder))
        os.environ["DATABASE_URL"] = _servers[-1].start().url
    # Files of the product under test; never those of a product that runs in this folder.
    os.environ["COUNTERSIGN_HOME"] = str(folder / "home")


def _apart(number: int) -> None:
    """Keep tests that run side by side out of each other's queues and databases.

    What this session made, each process makes anew. Of a Redis that was named each takes a database
    of its own; on a Postgres that was named pytest-django does that.
    """
    for name in os.environ.pop(OURS, "").split():
        del os.environ[name]
    if named := os.environ.get("REDIS_URL"):
        os.environ["REDIS_URL"] = urlunsplit(urlsplit(named)._replace(path=f"/{number + 1}"))


def _stop(folder: Path) -> None:
    if os.getpid() != _owner:
        return
    while _servers:
        _servers.pop().stop()
    shutil.rmtree(folder, ignore_errors=True)


_start()
