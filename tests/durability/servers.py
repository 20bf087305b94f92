"""A Postgres of a test's own with all tables, and the ORM of this process on it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import dj_database_url
from django.db import connection

from tests.journeys.databases import let_go
from tests.rig.product import command_run
from tests.rig.servers import Postgres


def postgres_own(folder: Path) -> Postgres:
    """Return a Postgres with all tables, started."""
    server = Postgres(folder).start()
    for command in (("migrate", "--no-input", "-v0"), ("checkpoints_setup",)):
        command_run(folder / "log", *command, DATABASE_URL=server.url)
    return server


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
