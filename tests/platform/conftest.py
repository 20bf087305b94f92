"""A running product, shared by the tests that only look at it."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from config.launcher.preflight import free_port
from tests.platform.launching import Launch, all_ended


@pytest.fixture
def home() -> Iterator[Path]:
    """Return an empty home in a short folder, for its sockets; nothing of it may live on."""
    folder = Path(tempfile.mkdtemp(prefix="cs-home-", dir="/tmp"))
    folder.chmod(0o711)
    yield folder
    left = all_ended(folder)
    shutil.rmtree(folder, ignore_errors=True)
    assert left == []


@pytest.fixture(scope="module")
def product() -> Iterator[Launch]:
    """Return a started product."""
    folder = Path(tempfile.mkdtemp(prefix="cs-home-", dir="/tmp"))
    folder.chmod(0o711)
    launch = Launch(folder, free_port())
    try:
        launch.wait_for("end with Ctrl-C")
        yield launch
    finally:
        launch.interrupt()
        code = launch.end()
        left = all_ended(folder)
        shutil.rmtree(folder, ignore_errors=True)
    assert (code, left) == (0, [])
