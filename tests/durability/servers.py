"""Servers of a test's own, to be killed and started again, and a database of its own."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

import dj_database_url
import psycopg
import redis
from django.db import connection

from config.children import Child, Spec
from config.embedded import postgres as embedded_postgres
from config.embedded import redis as embedded_redis
from config.home import redis_url
from tests.journeys.databases import let_go

ROOT: Final = Path(__file__).parents[2]
START_SECONDS: Final = 60


def until(holds: Callable[[], object], what: str, seconds: float = 60) -> None:
    """Wait until something holds; errors of servers that are away count as not yet."""
    deadline = time.monotonic() + seconds
    while True:
        try:
            if holds():
                return
        except (redis.RedisError, psycopg.Error):
            pass
        assert time.monotonic() < deadline, f"not within {seconds:.0f} seconds: {what}"
        time.sleep(0.05)


@contextmanager
def short_folder() -> Iterator[Path]:
    """Make a folder whose path is short enough for sockets."""
    folder = Path(tempfile.mkdtemp(prefix="cs-own-", dir="/tmp"))
    folder.chmod(0o711)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Server:
    """One server of a test's own."""

    def __init__(self, spec: Spec, url: str, folder: Path) -> None:
        self.url = url
        self._child = Child(spec, folder / "log" / f"{spec.name}.log")

    def start(self) -> None:
        """Start it and wait until it answers."""
        self._child.start()
        self._child.wait_ready(START_SECONDS)

    def kill(self) -> None:
        """End it with no warning (kill -9), and what it has forked."""
        record = self._child.record
        assert record is not None
        os.killpg(record.pid, signal.SIGKILL)
        self._child.wait_end()

    def restart(self, *, away: float = 0.0) -> None:
        """Kill it and start it again after it was away for a while."""
        self.kill()
        time.sleep(away)
        self.start()

    def stop(self) -> None:
        """End it in order."""
        self._child.stop()


def redis_own(folder: Path) -> Server:
    """Return a Redis of the test's own, not yet started."""
    return Server(embedded_redis.prepare(folder), redis_url(folder), folder)


def postgres_own(folder: Path) -> Server:
    """Return a Postgres of the test's own with all tables, started."""
    server = Server(embedded_postgres.prepare(folder, durable=False), "", folder)
    server.start()
    server.url = embedded_postgres.create_database(folder)
    for command in (("migrate", "--no-input", "-v0"), ("checkpoints_setup",)):
        environment = {**os.environ, "DATABASE_URL": server.url}
        subprocess.run(
            [sys.executable, "manage.py", *command],
            cwd=ROOT,
            env=environment,
            check=True,
            capture_output=True,
        )
    return server


@contextmanager
def administration(url: str) -> Iterator[psycopg.Connection[Any]]:
    """Connect to the server beside any database that a test may lock or end the sessions of."""
    with psycopg.connect(database_named(url, "postgres"), autocommit=True) as server:
        yield server


def sessions_end(server: psycopg.Connection[Any], database: str) -> int:
    """End every session of a database, as an idle cut-off does; return how many."""
    ended = server.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = %s", [database]
    )
    return len(ended.fetchall())


def sessions(url: str) -> int:
    """Count the database sessions of everybody."""
    with administration(url) as server:
        row = server.execute(
            "SELECT count(*) FROM pg_stat_activity WHERE datname = %s",
            [urlsplit(url).path.strip("/")],
        ).fetchone()
    assert row is not None
    return int(row[0])


def database_named(url: str, name: str) -> str:
    """Return the address of another database of the same server."""
    return urlunsplit(urlsplit(url)._replace(path=f"/{name}"))


@contextmanager
def orm_at(url: str) -> Iterator[None]:
    """Let this process's ORM speak to another database for a while."""
    kept = dict(connection.settings_dict)
    let_go()
    wanted = dj_database_url.parse(url)
    connection.settings_dict.update({key: wanted[key] for key in ("NAME", "HOST", "PORT", "USER")})
    connection.settings_dict["PASSWORD"] = wanted["PASSWORD"]
    try:
        yield
    finally:
        let_go()
        connection.settings_dict.clear()
        connection.settings_dict.update(kept)
