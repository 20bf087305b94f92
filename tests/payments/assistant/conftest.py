"""The demo's own cast and the sandbox processor as a process; each test on fresh records."""

import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command

from tests.payments.assistant.stage import Conversation


@pytest.fixture(scope="session")
def sandbox_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Run the sandbox processor for the session."""
    folder = tmp_path_factory.mktemp("sandbox")
    ready = folder / "ready"
    command = [sys.executable, "-m", "payments.sandbox", "--store", str(folder / "books")]
    command += ["--ready-file", str(ready), "--hold", "3", "--control"]
    root = Path(__file__).resolve().parents[3]
    with subprocess.Popen(command, cwd=root) as process:
        until = time.monotonic() + 20
        while not ready.exists():
            assert process.poll() is None, "the sandbox processor ended"
            assert time.monotonic() < until, "the sandbox processor did not start"
            time.sleep(0.02)
        yield ready.read_text(encoding="utf-8")
        process.terminate()
        process.wait(10)


@pytest.fixture(autouse=True)
def wiring(settings: Any, sandbox_url: str) -> None:
    """Point the ledger at the sandbox, with a short patience, and leave the host out."""
    settings.SANDBOX_URL = sandbox_url
    settings.PAYMENT_TIMEOUT_SECONDS = 1
    settings.REVIEW_DECIDED = "tests.payments.assistant.stage.decided"
    settings.SAMPLE_LOADERS = ()


@pytest.fixture
def samples(db: None) -> None:
    """Load the sample data."""
    call_command("sample_data", verbosity=0)


@pytest.fixture
def agent(samples: None) -> User:
    """Return the support agent of Team North."""
    return User.objects.get(username="agent")


@pytest.fixture
def lead(samples: None) -> User:
    """Return the lead of Team North."""
    return User.objects.get(username="lead")


@pytest.fixture
def talk(agent: User) -> Conversation:
    """Return a new conversation of the support agent."""
    return Conversation(agent)
