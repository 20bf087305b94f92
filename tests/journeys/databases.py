"""A database of its own for each test: a copy of one that was filled once.

Runs are worked off on connections of several threads, so a test's rows must be committed. Copying
a small database takes a fraction of the time that emptying and filling every table does.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import psycopg
from django.db import connection
from psycopg import sql

from agent_core.runs import leases
from agent_core.runs.work import saver_pool
from tests.rig.sessions import administration, database_of, sessions_end

_NUMBERS = itertools.count(1)
_STRATEGIES = 150000


@contextmanager
def template(address: str, name: str, fill: Callable[[], None]) -> Iterator[str]:
    """Copy the session's empty test database, fill the copy once, and drop it at the end."""
    made = f"{database_of(address)}_{name}"
    _copy(address, database_of(address), made)
    try:
        with switched(made):
            fill()
        yield made
    finally:
        _drop(address, made)


@contextmanager
def copied(address: str, source: str) -> Iterator[str]:
    """Let the whole process work on a fresh copy for the length of the body."""
    name = f"{source}_{next(_NUMBERS)}"
    _copy(address, source, name)
    try:
        with switched(name):
            yield name
    finally:
        _drop(address, name)


@contextmanager
def switched(name: str) -> Iterator[None]:
    """Point Django and the checkpoints at another database; every thread reads the same name."""
    before = connection.settings_dict["NAME"]
    let_go()
    connection.settings_dict["NAME"] = name
    try:
        yield
    finally:
        let_go()
        connection.settings_dict["NAME"] = before


def _copy(address: str, source: str, name: str) -> None:
    let_go()
    with administration(address) as server:
        # A source must have no visitor: connections that earlier tests left behind are ended.
        sessions_end(server, source)
        _say(server, "DROP DATABASE IF EXISTS {name} WITH (FORCE)", name=name)
        # From 15 on Postgres would write every page into its log: four times the work.
        how = " STRATEGY file_copy" if server.info.server_version >= _STRATEGIES else ""
        _say(server, "CREATE DATABASE {name} TEMPLATE {source}" + how, name=name, source=source)


def _drop(address: str, name: str) -> None:
    with administration(address) as server:
        _say(server, "DROP DATABASE IF EXISTS {name} WITH (FORCE)", name=name)


def _say(server: psycopg.Connection, text: str, **names: str) -> None:
    quoted = {key: sql.Identifier(name) for key, name in names.items()}
    server.execute(sql.SQL(text).format(**quoted))


def let_go() -> None:
    """Give back every connection that this process keeps."""
    # The present keeper of leases has a session of its own in the database that is left.
    leases._anew()
    connection.close()
    connection.close_pool()  # type: ignore[attr-defined]
    if saver_pool.cache_info().currsize:
        saver_pool().close()
        saver_pool.cache_clear()
