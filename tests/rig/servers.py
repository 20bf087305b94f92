"""Postgres and Redis of a test's own in a folder, to be killed and started again.

Nothing here needs Django: the servers of the session start before its settings load.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from config.children import Spec
from config.embedded import postgres as embedded_postgres
from config.embedded import redis as embedded_redis
from config.home import postgres_url, redis_url
from tests.rig.processes import Process


def folder_make(prefix: str = "cs-own-") -> Path:
    """Make a folder whose path is short enough for sockets, open to a server's account."""
    folder = Path(tempfile.mkdtemp(prefix=prefix, dir="/tmp"))
    folder.chmod(0o711)
    return folder


@contextmanager
def short_folder(prefix: str = "cs-own-") -> Iterator[Path]:
    """Make such a folder for the length of the body."""
    folder = folder_make(prefix)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Server(Process):
    """A server with an address; once it is started it answers."""

    def __init__(self, spec: Spec, url: str, folder: Path) -> None:
        super().__init__(spec, folder / "log")
        self.url = url

    def start(self) -> Self:
        """Start it and wait until it answers."""
        return super().start().ready()

    def restart(self, *, away: float = 0.0) -> None:
        """Kill it and start it again after it was away for a while."""
        self.kill()
        time.sleep(away)
        self.start()


class Postgres(Server):
    """A Postgres with an empty database, made at the first start."""

    def __init__(self, folder: Path, *, durable: bool = False) -> None:
        spec = embedded_postgres.prepare(folder, durable=durable)
        super().__init__(spec, postgres_url(folder), folder)
        self._folder = folder

    def start(self) -> Self:
        """Start it and wait until its database is there."""
        super().start()
        embedded_postgres.create_database(self._folder)
        return self


def redis_own(folder: Path) -> Server:
    """Return a Redis, not yet started."""
    return Server(embedded_redis.prepare(folder), redis_url(folder), folder)
