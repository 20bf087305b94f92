"""A small web server that keeps what is posted to it, and answers as it is told."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

PATIENCE: Final = 30


class Listener(ThreadingHTTPServer):
    """Keeps bodies and signatures; the first answers are those of `statuses`, later ones 200."""

    daemon_threads = True

    def __init__(self, statuses: list[int]) -> None:
        self.statuses = statuses
        self.bodies: list[dict[str, Any]] = []
        self.signed: list[tuple[bytes, str]] = []
        self._more = threading.Condition()
        super().__init__(("127.0.0.1", 0), _Handler)

    @property
    def url(self) -> str:
        """Return where it listens."""
        return f"http://127.0.0.1:{self.server_port}/hooks/"

    def keep(self, raw: bytes, signature: str) -> int:
        """Keep what came, and say how to answer."""
        with self._more:
            self.bodies.append(json.loads(raw))
            self.signed.append((raw, signature))
            self._more.notify_all()
            return self.statuses.pop(0) if self.statuses else 200

    def wait(self, count: int) -> list[dict[str, Any]]:
        """Wait until so many have come, and return them."""
        with self._more:
            assert self._more.wait_for(lambda: len(self.bodies) >= count, PATIENCE), self.bodies
            return list(self.bodies)


class _Handler(BaseHTTPRequestHandler):
    server: Listener

    def log_message(self, format: str, *args: Any) -> None:
        """Stay quiet."""

    def do_POST(self) -> None:
        """Take one."""
        raw = self.rfile.read(int(self.headers["Content-Length"]))
        status = self.server.keep(raw, self.headers.get("Stripe-Signature", ""))
        self.send_response(status)
        if status in (301, 302):
            self.send_header("Location", self.server.url)
        self.send_header("Content-Length", "0")
        self.end_headers()


@contextmanager
def listening(*statuses: int) -> Iterator[Listener]:
    """Listen for as long as the body runs."""
    with Listener(list(statuses)) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join(PATIENCE)
