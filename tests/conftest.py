"""What every test has: database, Redis, no network, and the same randomness in CI."""

import os
import shutil
import socket
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import hypothesis
import pytest

# How fast a busy machine makes examples says nothing about the code.
_SLOW = [hypothesis.HealthCheck.too_slow]
hypothesis.settings.register_profile("local", deadline=None, suppress_health_check=_SLOW)
hypothesis.settings.register_profile(
    "ci", deadline=None, suppress_health_check=_SLOW, derandomize=True, print_blob=True
)
hypothesis.settings.load_profile("ci" if os.environ.get("CI") else "local")


FULL = os.environ.get("COUNTERSIGN_FULL") == "1"
NO_SKIP = os.environ.get("COUNTERSIGN_REQUIRE_BROWSER") == "1"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Let somebody write the golden files anew."""
    parser.addoption("--update-golden", action="store_true", help="write the golden files anew")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Leave the long forms to `make test-full`; refuse names that differ between processes."""
    unstable = [item.nodeid for item in items if " at 0x" in item.nodeid]
    if unstable:
        raise pytest.UsageError(f"An address in memory names a test: {', '.join(unstable)}.")
    if not FULL:
        # Minutes each: too long for every change. `make test-full` leaves none of them out.
        skip = pytest.mark.skip(reason="long form: runs in `make test-full`")
        for item in items:
            if item.get_closest_marker("full"):
                item.add_marker(skip)


@pytest.fixture(scope="session")
def chromium() -> str:
    """Return the path of a Chromium to drive; without one the test is skipped, in CI it fails."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    reason = "no Chromium on this machine, so no browser test runs: apt-get install chromium"
    if NO_SKIP:
        pytest.fail(reason)
    pytest.skip(reason)


class NetworkUsed(Exception):
    """A test tried to reach another machine."""


def _allowed_hosts() -> frozenset[str]:
    named = {urlsplit(os.environ[name]).hostname for name in ("DATABASE_URL", "REDIS_URL")}
    return frozenset({"localhost", "127.0.0.1", "::1", ""} | {host for host in named if host})


@pytest.fixture(autouse=True, scope="session")
def no_network() -> Iterator[None]:
    """Let sockets reach this machine (and the named servers) only."""
    allowed, patch = _allowed_hosts(), pytest.MonkeyPatch()

    def guarded(original: Any) -> Any:
        def connect(self: socket.socket, address: Any) -> Any:
            if self.family != socket.AF_UNIX and address[0] not in allowed:
                raise NetworkUsed(f"a test tried to reach {address[0]}")
            return original(self, address)

        return connect

    for name in ("connect", "connect_ex"):
        patch.setattr(socket.socket, name, guarded(getattr(socket.socket, name)))
    yield
    patch.undo()


@pytest.fixture(autouse=True, scope="session")
def senders_closed() -> Iterator[None]:
    """Close at the end what was kept to send messages over."""
    yield
    from agent_core.runs import queue

    queue.senders_close()


@pytest.fixture(scope="session")
def django_db_setup(django_db_setup: None, django_db_blocker: Any) -> Iterator[None]:
    """Add the checkpoint tables, which no migration makes; let go of them at the end."""
    from agent_core.checkpoints import setup
    from agent_core.runs.work import saver_pool

    with django_db_blocker.unblock():
        setup(_test_database_url())
        _flush_allow()
    yield
    if saver_pool.cache_info().currsize:
        saver_pool().close()


def _flush_allow() -> None:
    """Let the end of a test that commits empty the audit, too; every other change stays refused."""
    from django.db import connection

    with connection.cursor() as cursor:
        for table in ("audit_entry", "audit_link"):
            cursor.execute(f"ALTER TABLE {table} DISABLE TRIGGER {table}_whole")


def _test_database_url() -> str:
    from django.db import connection

    name = connection.settings_dict["NAME"]
    return urlunsplit(urlsplit(os.environ["DATABASE_URL"])._replace(path=f"/{name}"))


@pytest.fixture(scope="session")
def database_url(django_db_setup: None) -> str:
    """Return the address of the test database, for another process or a second connection."""
    return _test_database_url()


@pytest.fixture(scope="session")
def redis_url() -> str:
    """Return the address of the session's Redis."""
    return os.environ["REDIS_URL"]
