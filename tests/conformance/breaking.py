"""How the database fails under a tool, by the database's own means."""

from __future__ import annotations

from collections.abc import Callable

from django.db import connection
from psycopg import sql

from tests.conformance.scenes import Scene

Before = Callable[[Scene], None]


def table_gone(name: str) -> Before:
    """Return what takes a table away, so that reading it fails."""
    return _said("ALTER TABLE {table} RENAME TO gone", name)


def rows_refused(name: str) -> Before:
    """Return what makes a constraint refuse every new row of a table."""
    return _said("ALTER TABLE {table} ADD CONSTRAINT nothing_new CHECK (false) NOT VALID", name)


def _said(text: str, name: str) -> Before:
    def before(scene: Scene) -> None:
        with connection.cursor() as cursor:
            cursor.execute(sql.SQL(text).format(table=sql.Identifier(name)))

    return before
