"""Postgres and Redis: the named ones, else the embedded ones of the running product."""

import sys
from pathlib import Path

import dj_database_url

from config import env, runtime
from config.home import home, postgres_url, redis_url

_running = runtime.read() or runtime.Runtime()

DATABASE_URL = (
    env.url("DATABASE_URL", ("postgresql", "postgres"), "")
    or _running.database_url
    or postgres_url(home())
)
REDIS_URL = (
    env.url("REDIS_URL", ("redis", "rediss", "unix"), "") or _running.redis_url or redis_url(home())
)

DATABASE_POOL_SIZE = env.number("DATABASE_POOL_SIZE", 10, minimum=2, maximum=500)
DATABASE_POOL_IDLE_SECONDS = env.number("DATABASE_POOL_IDLE_SECONDS", 60, minimum=1)

DATABASES = {
    # One connection a piece of work: none is held across a model or processor call.
    # Whether it lives is asked by the backend, at less cost than by `conn_health_checks`.
    "default": dj_database_url.parse(DATABASE_URL, engine="config.postgres", conn_max_age=0),
}
# A cursor that outlives its transaction is lost behind a transaction pooler. Exports open theirs
# within one, on a connection of their own.
DATABASES["default"]["DISABLE_SERVER_SIDE_CURSORS"] = True
DATABASES["default"].setdefault("OPTIONS", {}).setdefault("connect_timeout", 5)
# By this the sweep knows sessions of our processes from those of commands and people at a terminal,
# which may well think for a while in mid-transaction.
_COMMAND = Path(sys.argv[0]).name == "manage.py"
DATABASES["default"]["OPTIONS"].setdefault(
    "application_name", "countersign-command" if _COMMAND else "countersign"
)
DATABASES["default"]["OPTIONS"]["pool"] = {
    # Of each process, beside the one for checkpoints: bounded, and empty again after a burst.
    "min_size": 0,
    "max_size": DATABASE_POOL_SIZE,
    # One connection is given up in this time, and no more: the whole pool in the time above.
    "max_idle": DATABASE_POOL_IDLE_SECONDS / DATABASE_POOL_SIZE,
    # Whoever waits longer than this for a connection is told that the database is away.
    "timeout": 15,
    # A pool that tries in vain waits longer each time, for minutes; then who asks next begins anew.
    "reconnect_timeout": 5,
}

DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
