"""Early pytest plugin: real Postgres and Redis for the session, before Django's settings load.

Named by `-p tests.services`; a set DATABASE_URL or REDIS_URL is used as it is.
"""

import atexit
import os
import shutil
import signal
import tempfile
from pathlib import Path

import pytest

_children: list[object] = []
_owner = 0


def _start() -> None:
    global _owner
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings.test")
    if os.environ.get("DATABASE_URL") and os.environ.get("REDIS_URL"):
        return
    from config.children import Child
    from config.embedded import postgres, redis
    from config.home import redis_url

    # A short path: it holds sockets.
    folder = Path(tempfile.mkdtemp(prefix="cs-test-", dir="/tmp"))
    folder.chmod(0o711)
    _owner = os.getpid()
    atexit.register(_stop, folder)
    # A runner that ends us politely must still leave no server behind.
    signal.signal(signal.SIGTERM, lambda *_: pytest.exit("told to stop", returncode=143))
    if not os.environ.get("REDIS_URL"):
        child = Child(redis.prepare(folder), folder / "log" / "redis.log")
        _children.append(child)
        child.start()
        child.wait_ready(20)
        os.environ["REDIS_URL"] = redis_url(folder)
    if not os.environ.get("DATABASE_URL"):
        child = Child(postgres.prepare(folder, durable=False), folder / "log" / "postgres.log")
        _children.append(child)
        child.start()
        child.wait_ready(60)
        os.environ["DATABASE_URL"] = postgres.create_database(folder)
    # Files of the product under test; never those of a product that runs in this folder.
    os.environ["COUNTERSIGN_HOME"] = str(folder / "home")


def _stop(folder: Path) -> None:
    from config.children import Child

    if os.getpid() != _owner:
        return
    while _children:
        child = _children.pop()
        assert isinstance(child, Child)
        child.stop()
    shutil.rmtree(folder, ignore_errors=True)


_start()
