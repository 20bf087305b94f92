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
def test_a_session_that_was_ended_in_the_pool_is_replaced_unseen() -> None:
    connection.close()
    before = session()
    assert session() == before

    with psycopg.connect(conninfo(), autocommit=True) as other:
        other.execute("SELECT pg_terminate_backend(%s, 5000)", [before])

    assert session() != before
