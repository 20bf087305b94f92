"""The sandbox's line: HTTP with form bodies, idempotency keys, and faults on demand.

`/v1/` is what a client of Stripe speaks. `/control/` switches faults and reads the books; it exists
only where the process was started for tests.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from payments.sandbox import rules
from payments.sandbox.books import Answer, Books, refused
from payments.sandbox.tokens import SLOW_COMMITTED, SLOW_LOST, fault_of

MOST_BYTES: Final = 100_000
_WORK: Final = {"/v1/payment_intents": rules.charge, "/v1/refunds": rules.refund}
_UNTRIED: Final[Mapping[str, Answer]] = {
    "rate": refused("rate_limit_error", "rate_limit", "Too many requests.", status=429),
    "busy": refused("api_error", "idempotency_key_in_use", "Still working on it.", status=409),
    "server_before": refused("api_error", "", "Something went wrong.", status=500),
    "access": refused("authentication_error", "api_key_expired", "Expired.", status=401),
}
# What can be switched on: first those that happen before anything is committed.
FAULT_KINDS: Final = (*_UNTRIED, "drop_before", "server_after", "garbage_after", "drop_after")


class Sandbox(ThreadingHTTPServer):
    """The server with its books; a held line keeps its own thread and nobody else waits."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, host: str, port: int, books: Books, *, hold: float, control: bool) -> None:
        self.books = books
        self.hold = hold
        self.control = control
        super().__init__((host, port), Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that did not wait; that is what some of them are here for."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class Handler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
    server: Sandbox

    def log_message(self, format: str, *args: Any) -> None:
        """Stay quiet: the books are the record."""

    def do_GET(self) -> None:
        """Read: a list, one object, or the books."""
        address = urlsplit(self.path)
        query = dict(parse_qsl(address.query))
        books = self.server.books
        if address.path == "/control/books" and self.server.control:
            return self._say(Answer(200, books.read()))
        table = address.path.removeprefix("/v1/")
        if f"/v1/{table}" not in _WORK:
            return self._say(Answer(404, {"error": {"type": "invalid_request_error"}}))
        if self._met(books.note_request(f"GET {address.path}", "")):
            return None
        return self._say(books.list_rows(table, query))

    def do_POST(self) -> None:
        """Charge, refund, or switch a fault on."""
        length = int(self.headers.get("Content-Length") or 0)
        if length > MOST_BYTES:
            self.close_connection = True
            return self._say(Answer(413, {"error": {"type": "invalid_request_error"}}))
        form = dict(parse_qsl(self.rfile.read(length).decode("utf-8", "replace")))
        path = urlsplit(self.path).path
        if path.startswith("/control/") and self.server.control:
            return self._say(self._control(path, form))
        work = _WORK.get(path)
        if work is None:
            return self._say(Answer(404, {"error": {"type": "invalid_request_error"}}))
        key = self.headers.get("Idempotency-Key", "")
        fault = self.server.books.note_request(f"POST {path}", key)
        if not self._met(fault):
            self._work(path, key, form, fault, lambda db: work(db, form))
        return None

    def _work(
        self, path: str, key: str, form: Mapping[str, str], fault: str, work: Callable[..., Answer]
    ) -> None:
        books = self.server.books
        saved = fault_of(
            form.get("payment_method") or books.method_of(form.get("payment_intent", ""))
        )
        if saved == SLOW_LOST and key and books.loses(key):
            # Nothing was committed and nobody hears of it; the next try under this key succeeds.
            return self._hang()
        first = not books.has_key(key)
        request = json.dumps([path, sorted(form.items())])
        answer = books.answer_once(key, request, work)
        if saved == SLOW_COMMITTED and first:
            return self._hang()
        if fault == "drop_after":
            return self._drop()
        if fault == "server_after":
            return self._say(_UNTRIED["server_before"])
        if fault == "garbage_after":
            return self._send(200, b"<html>the proxy is not amused</html>")
        return self._say(answer)

    def _met(self, fault: str) -> bool:
        """Answer with a fault that comes before anything is done."""
        if fault == "drop_before":
            self._drop()
        elif fault in _UNTRIED:
            self._say(_UNTRIED[fault])
        return fault == "drop_before" or fault in _UNTRIED

    def _control(self, path: str, form: Mapping[str, str]) -> Answer:
        books = self.server.books
        if path == "/control/faults" and form.get("kind") in FAULT_KINDS:
            books.switch_fault(form["kind"], int(form.get("times", "1")))
        elif path == "/control/forget-keys":
            books.forget_keys()
        elif path == "/control/clear":
            books.clear()
        else:
            return Answer(400, {"error": {"type": "invalid_request_error"}})
        return Answer(200, {})

    def _hang(self) -> None:
        time.sleep(self.server.hold)
        self._drop()

    def _drop(self) -> None:
        self.close_connection = True

    def _say(self, answer: Answer) -> None:
        self._send(answer.status, json.dumps(answer.body).encode())

    def _send(self, status: int, content: bytes) -> None:
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)
