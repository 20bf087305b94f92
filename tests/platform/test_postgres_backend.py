"""A pooled connection whose server has hung up is not handed out."""

import psycopg
import pytest
from django.db import connection

from agent_core.runs.work import conninfo


def session() -> int:
    """Return the number of the session that Django's connection has, and give it back."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        number = int(cursor.fetchone()[0])
    connection.close()
    return number


@pytest.mark.django_db(transaction=True)
def test_sessions_that_were_ended_in_the_pool_are_replaced_unseen() -> None:
    connection.close()
    session()

    # Whichever of them the pool would hand out next.
    with psycopg.connect(conninfo(), autocommit=True) as other:
        found = other.execute(
            "SELECT pid FROM pg_stat_activity"
            " WHERE datname = current_database() AND pid <> pg_backend_pid()"
        ).fetchall()
        ended = [pid for (pid,) in found]
        other.execute("SELECT pg_terminate_backend(pid, 5000) FROM unnest(%s) AS pid", [ended])

    assert session() not in ended
