"""The backend of DATABASES; Django finds it by this name."""

from typing import Any

import psycopg
from django.db.backends.postgresql import base

from agent_core.checkpoints import session_lives


class DatabaseWrapper(base.DatabaseWrapper):
    """Takes connections from Django's pool; one whose server has hung up goes back and is dropped.

    In place of the pool's own check, which sends an empty statement each time: a turn takes
    connections a dozen times, and waits for the answer each time.
    """

    def get_new_connection(self, conn_params: dict[str, Any]) -> Any:
        """Return a connection that lives, as far as can be told without asking it."""
        while True:
            connection = super().get_new_connection(conn_params)
            if self.pool is None or _lives(connection):
                return connection
            self.pool.putconn(connection)


def _lives(connection: Any) -> bool:
    try:
        session_lives(connection)
    except psycopg.OperationalError:
        connection.close()
        return False
    return True
