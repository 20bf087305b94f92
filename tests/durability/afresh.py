"""Puts a database back to how it was, for the next playing of a case.

A copy for each playing would cost several times that: what is copied is nearly all catalogue.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import psycopg
from psycopg import sql

from tests.journeys.databases import let_go

_TABLES = "SELECT tablename FROM pg_tables WHERE schemaname = 'public' ORDER BY 1"
_COLUMNS = (
    "SELECT column_name FROM information_schema.columns WHERE table_schema = 'public'"
    " AND table_name = %s AND is_generated = 'NEVER' ORDER BY ordinal_position"
)
_OTHERS = (
    "SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity"
    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
)
# Some refuse to let rows go, others note each new one: all stand aside while rows are put back.
_TRIGGERS = (
    "SELECT relname, tgname, tgenabled::text"
    " FROM pg_trigger JOIN pg_class ON pg_class.oid = tgrelid"
    " WHERE tgenabled IN ('O', 'A') AND NOT tgisinternal"
    " AND relnamespace = 'public'::regnamespace"
)
_BACK = {"O": "ENABLE", "A": "ENABLE ALWAYS"}
_SUM = "SELECT {name}, md5(string_agg(t::text, ',' ORDER BY t::text)) FROM public.{table} t"


class Afresh:
    """Keeps what every table holds now; `again` brings it back."""

    def __init__(self, address: str) -> None:
        self._address = address
        let_go()
        with psycopg.connect(address) as connection:
            connection.execute("CREATE SCHEMA kept")
            self._columns: dict[str, list[str]] = {}
            for (table,) in connection.execute(_TABLES).fetchall():
                named = sql.Identifier(table)
                connection.execute(
                    sql.SQL("CREATE TABLE kept.{t} AS TABLE public.{t}").format(t=named)
                )
                columns = connection.execute(_COLUMNS, [table]).fetchall()
                self._columns[table] = [column for (column,) in columns]
            self._sums = self._summed(connection)

    def again(self) -> None:
        """End whoever is still there, and bring back the rows of every table that has changed."""
        let_go()
        with psycopg.connect(self._address) as connection, self._untriggered(connection):
            connection.execute(_OTHERS)
            before, now = self._sums, self._summed(connection)
            # Foreign keys are looked at when all is back: at the end of the transaction.
            for table in (each for each in now if now[each] != before[each]):
                columns = sql.SQL(", ").join(map(sql.Identifier, self._columns[table]))
                names = {"t": sql.Identifier(table), "columns": columns}
                connection.execute(sql.SQL("DELETE FROM public.{t}").format(**names))
                back = "INSERT INTO public.{t} ({columns}) SELECT {columns} FROM kept.{t}"
                connection.execute(sql.SQL(back).format(**names))

    @contextmanager
    def _untriggered(self, connection: psycopg.Connection) -> Iterator[None]:
        triggers = connection.execute(_TRIGGERS).fetchall()
        _switch(connection, [(table, name, "DISABLE") for table, name, _on in triggers])
        yield
        _switch(connection, [(table, name, _BACK[on]) for table, name, on in triggers])

    def _summed(self, connection: psycopg.Connection) -> dict[str, str | None]:
        each = [
            sql.SQL(_SUM).format(name=sql.Literal(table), table=sql.Identifier(table))
            for table in self._columns
        ]
        found = connection.execute(sql.SQL(" UNION ALL ").join(each)).fetchall()
        return dict(found)


def _switch(connection: psycopg.Connection, triggers: Iterable[tuple[str, str, str]]) -> None:
    """Switch triggers in a transaction of their own: none may be pending on their tables."""
    connection.commit()
    for table, name, how in triggers:
        names = {"table": sql.Identifier(table), "name": sql.Identifier(name)}
        switch = f"ALTER TABLE public.{{table}} {how} TRIGGER {{name}}"
        connection.execute(sql.SQL(switch).format(**names))
    connection.commit()
