"""Looks before the start: folder, lock, port, named servers. Changes nothing that exists."""

import fcntl
import os
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import psycopg
import redis

from config import env
from config.launcher.problems import CannotStart


@dataclass(frozen=True)
class Wishes:
    """What the person at the terminal set: where to listen and which servers to use."""

    host: str
    port: int
    database_url: str
    redis_url: str


def wishes() -> Wishes:
    """Read the launcher's own variables.

    Raises: CannotStart when one of them is malformed.
    """
    try:
        return Wishes(
            host=env.text("HOST", "127.0.0.1"),
            port=env.number("PORT", 8000, minimum=1, maximum=65535),
            database_url=env.url("DATABASE_URL", ("postgresql", "postgres"), ""),
            redis_url=env.url("REDIS_URL", ("redis", "rediss", "unix"), ""),
        )
    except env.SettingRefused as problem:
        raise CannotStart(str(problem)) from None


def lock(folder: Path) -> IO[str]:
    """Take the folder for this launcher; the lock lives as long as the returned file.

    Raises: CannotStart when the folder is read-only or another launcher has it.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        file = (folder / "launcher.lock").open("a+", encoding="utf-8")
    except OSError as error:
        raise CannotStart(f"the folder {folder} cannot be written ({error.strerror}).") from None
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        file.seek(0)
        other = file.read().strip()
        file.close()
        tail = f" (process {other})" if other else ""
        raise CannotStart(
            f"it already runs in this folder{tail}; end that one with Ctrl-C first."
        ) from None
    file.truncate(0)
    file.write(str(os.getpid()))
    file.flush()
    return file


def check_port(host: str, port: int) -> None:
    """See that the port is free.

    Raises: CannotStart when somebody listens there or we may not.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family, socket.SOCK_STREAM) as probe:
        # As the web server will: a port in TIME_WAIT is free, one that is listened to is not.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
            probe.listen(1)
        except OSError as error:
            raise CannotStart(
                f"port {port} on {host} cannot be used ({error.strerror}); "
                "choose another with PORT=8001 make run."
            ) from None


def free_port() -> int:
    """Return a loopback port that nobody uses now."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def check_database(url: str) -> None:
    """See that the named database takes connections; the message never shows the password.

    Raises: CannotStart when it does not.
    """
    try:
        with psycopg.connect(url, connect_timeout=5) as connection:
            if connection.info.server_version < 140000:
                raise CannotStart("the server that DATABASE_URL names is older than Postgres 14.")
    except psycopg.Error as error:
        reason = (str(error).strip().splitlines() or ["no reason given"])[-1].strip()
        raise CannotStart(f"DATABASE_URL does not lead to a database: {reason}") from None


def check_redis(url: str) -> None:
    """See that the named Redis answers.

    Raises: CannotStart when it does not.
    """
    try:
        with redis.Redis.from_url(url, socket_connect_timeout=5, socket_timeout=5) as client:
            client.ping()
    except (redis.RedisError, ValueError) as error:
        raise CannotStart(f"REDIS_URL does not lead to a Redis server: {error}") from None
