"""One unchanging view of the database for a whole export, on a connection of its own.

The rows are counted and read in one transaction; progress is committed beside it on the ordinary
connection, where everybody can see it.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from django.db import connection, connections, transaction

ALIAS: Final = "export_snapshot"


@contextmanager
def snapshot() -> Iterator[str]:
    """Open the view and give its alias, for `queryset.using(alias)`; read only."""
    # Connections are kept per thread, so two exports in one worker do not meet.
    reader = connection.copy(alias=ALIAS)
    # Portion by portion: the cursor ends with its transaction, which a transaction pooler allows.
    reader.settings_dict["DISABLE_SERVER_SIDE_CURSORS"] = False
    # A session of its own for as long as the export takes, and no pool that would outlive it.
    reader.settings_dict["OPTIONS"].pop("pool", None)
    connections[ALIAS] = reader
    try:
        with transaction.atomic(using=ALIAS):
            with reader.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
            yield ALIAS
    finally:
        reader.close()
        del connections[ALIAS]
