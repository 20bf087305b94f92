"""Sessions of Postgres, counted and cut off from beside the database that is tested."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import psycopg


def database_named(url: str, name: str) -> str:
    """Return the address of another database of the same server."""
    return urlunsplit(urlsplit(url)._replace(path=f"/{name}"))


def database_of(url: str) -> str:
    """Return the name of the database at an address."""
    return urlsplit(url).path.removeprefix("/")


@contextmanager
def administration(url: str) -> Iterator[psycopg.Connection[Any]]:
    """Connect to the server beside any database that a test may lock or end the sessions of."""
    with psycopg.connect(database_named(url, "postgres"), autocommit=True) as server:
        yield server


def sessions_end(server: psycopg.Connection[Any], database: str) -> int:
    """End every session of a database, as an idle cut-off does; return how many."""
    ended = server.execute(
        "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
        " WHERE datname = %s AND pid <> pg_backend_pid()",
        [database],
    )
    return len(ended.fetchall())


def sessions(url: str, name: str = "") -> int:
    """Count the database sessions of everybody, or of those who name themselves so."""
    with administration(url) as server:
        row = server.execute(
            "SELECT count(*) FROM pg_stat_activity"
            " WHERE datname = %s AND (%s = '' OR application_name = %s)",
            [database_of(url), name, name],
        ).fetchone()
    assert row is not None
    return int(row[0])
