"""The real sandbox processor as a process of its own, and what a test asks it."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import httpx
import pytest

# A slow line is held this long and then dropped. Nearly all tests are more patient, so that a busy
# machine changes nothing; the one about patience itself is less.
HOLD_SECONDS: Final = 0.5
TIMEOUT_SECONDS: Final = 10
# The sandbox takes any secret key of test mode.
ACCESS: Final = {"Authorization": "Bearer sk_test_of_a_test"}
ROOT: Final = Path(__file__).parents[2]


class Processor:
    """One sandbox process with its books in a folder."""

    def __init__(self, folder: Path, *, control: bool = True) -> None:
        self.folder = folder
        self.control = control
        self.url = ""
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start it and wait for its address."""
        ready = self.folder / "ready"
        ready.unlink(missing_ok=True)
        command = [sys.executable, "-m", "payments.sandbox", "--port", "0"]
        command += ["--store", str(self.folder / "books.sqlite3"), "--ready-file", str(ready)]
        command += ["--hold", str(HOLD_SECONDS)] + ["--control"] * self.control
        self._process = subprocess.Popen(command, cwd=ROOT)
        until = time.monotonic() + 20
        while not ready.exists():
            assert time.monotonic() < until, "the sandbox did not come up"
            time.sleep(0.02)
        self.url = ready.read_text("utf-8")

    def stop(self) -> int:
        """End it politely and return its exit code."""
        assert self._process is not None
        self._process.terminate()
        return self._process.wait(10)

    def kill(self) -> None:
        """End it with no warning."""
        assert self._process is not None
        self._process.kill()
        self._process.wait(10)

    def fault(self, kind: str, times: int = 1) -> None:
        """Let the next requests fail."""
        self._control("faults", {"kind": kind, "times": str(times)})

    def answer(self, status: int, body: Any, times: int = 1) -> None:
        """Let the next requests be answered with this."""
        data = {"status": str(status), "body": json.dumps(body), "times": str(times)}
        self._control("answers", data)

    def refund_ends(self, refund_ref: str, status: str, reason: str = "") -> None:
        """Let a refund end, or fail after it had succeeded."""
        self._control("refunds", {"id": refund_ref, "status": status, "failure_reason": reason})

    def dispute(self, payment_ref: str, status: str = "needs_response") -> str:
        """Let the bank dispute a payment; return the dispute's name."""
        data = {"payment_intent": payment_ref, "status": status}
        return str(self._control("disputes", data)["id"])

    def dispute_ends(self, dispute_ref: str, status: str) -> None:
        """Let a dispute end, "won" or "lost"."""
        self._control("disputes/close", {"id": dispute_ref, "status": status})

    def hook(self, url: str, secret: str) -> None:
        """Let events be sent there, signed with this."""
        self._control("hook", {"url": url, "secret": secret})

    def hook_play(self, **how: int) -> None:
        """Hold events back, turn their order round, or send each several times."""
        self._control("hook/play", {name: str(value) for name, value in how.items()})

    def alter(self, name: str, **values: str | int) -> None:
        """Let an object read otherwise than it came to be."""
        self._control("alter", {"id": name} | {key: str(value) for key, value in values.items()})

    def lose(self, name: str) -> None:
        """Let an object never have been there."""
        self._control("gone", {"id": name})

    def forget_keys(self) -> None:
        """Let a day pass for every key."""
        self._control("forget-keys", {})

    def clear(self) -> None:
        """Empty the books and switch every fault off."""
        self._control("clear", {})

    def books(self) -> dict[str, Any]:
        """Read everything the processor knows."""
        read: dict[str, Any] = httpx.get(f"{self.url}/control/books", trust_env=False).json()
        return read

    def refunded(self, payment_ref: str) -> list[int]:
        """List the amounts that really went back on a payment, in the processor's own books."""
        rows = self.books()["refunds"]
        return [row["amount"] for row in rows if row["payment_intent"] == payment_ref]

    def charged(self) -> list[int]:
        """List the amounts that were really charged since the books were emptied."""
        rows = self.books()["payment_intents"]
        made = [row for row in rows if not row["id"].startswith("pi_earlier_")]
        return [row["amount"] for row in made if row["status"] == "succeeded"]

    def asked(self, route: str) -> int:
        """Count the requests to a route, like "POST /v1/refunds"."""
        return sum(row["route"] == route for row in self.books()["requests"])

    def _control(self, name: str, data: dict[str, str]) -> dict[str, Any]:
        answer = httpx.post(f"{self.url}/control/{name}", data=data, trust_env=False)
        read: dict[str, Any] = answer.raise_for_status().json()
        return read


@pytest.fixture(scope="session")
def processor_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processor]:
    """Run one sandbox for the session."""
    processor = Processor(tmp_path_factory.mktemp("processor"))
    processor.start()
    yield processor
    processor.stop()


@pytest.fixture
def processor(processor_process: Processor, settings: Any) -> Processor:
    """Give a test the sandbox with empty books, and point the ledger at it."""
    processor_process.clear()
    settings.SANDBOX_URL = processor_process.url
    settings.STRIPE_API_BASE = processor_process.url
    settings.STRIPE_API_KEY = "sk_test_for_the_sandbox"
    settings.PAYMENT_TIMEOUT_SECONDS = TIMEOUT_SECONDS
    return processor_process
