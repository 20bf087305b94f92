"""Start the other generations early, on the core that the tests themselves leave idle."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from typing import IO

import pytest

from tests.conftest import FULL
from tests.versions.sets import ROOT, SETS

SHORT = ("a", "c", "--short")
"""`make test` runs on the lock, which is set b."""


@dataclass
class Background:
    """The runner as a process of its own, and what it says."""

    process: subprocess.Popen[str]
    said: IO[str]

    def ended(self, seconds: int) -> tuple[int, str]:
        """Wait for the end; return the exit code and everything that was said."""
        code = self.process.wait(seconds)
        self.said.seek(0)
        return code, self.said.read()

    def stop(self) -> None:
        """End the runner politely, so that it removes what it has built."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGTERM)
            self.process.wait(30)
        self.said.close()


_started: list[Background] = []


def _start() -> Background:
    said = tempfile.TemporaryFile("w+", encoding="utf-8")  # noqa: SIM115 - closed by `stop`
    asked = list(SETS) if FULL else SHORT
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.versions", *asked],
        cwd=ROOT,
        stdout=said,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    # The other tests come first: some of them measure time.
    os.setpriority(os.PRIO_PROCESS, process.pid, 15)
    return Background(process, said)


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Ask for the results at the end of the session, when they have long been there."""
    items.sort(key=_waits_for_versions)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Begin as soon as it is known that someone will ask for the results."""
    wanted = any(_waits_for_versions(item) for item in session.items)
    if wanted and not session.config.option.collectonly:
        _started.append(_start())


def _waits_for_versions(item: pytest.Item) -> bool:
    return "generations" in getattr(item, "fixturenames", ())


@pytest.fixture(scope="session")
def generations() -> Background:
    """Return the runner that was started when the tests were collected."""
    return _started[0]


def pytest_sessionfinish() -> None:
    """Leave nothing running, whatever ended the session."""
    while _started:
        _started.pop().stop()
