"""The sandbox's line: HTTP with form bodies, idempotency keys, and faults on demand.

`/v1/` is what a client of Stripe speaks. `/control/` switches faults and reads the books; it exists
only where the process was started for tests.
"""

from __future__ import annotations

import json
import secrets
import sys
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

from payments.sandbox import rules
from payments.sandbox.books import SHAPES, Books
from payments.sandbox.control import BEFORE, BROKEN, controlled
from payments.sandbox.events import Deliveries
from payments.sandbox.shapes import Answer, refused
from payments.sandbox.tokens import SLOW_COMMITTED, SLOW_LOST, fault_of

MOST_BYTES: Final = 100_000
_WORK: Final = {"/v1/payment_intents": rules.charge, "/v1/refunds": rules.refund}
_NOWHERE: Final = refused("invalid_request_error", "", "Unrecognized request URL.", status=404)
_NO_KEY: Final = refused("invalid_request_error", "", "You did not provide an API key.", status=401)
_BAD_KEY: Final = refused("invalid_request_error", "", "Invalid API Key provided.", status=401)
_OLD_KEY: Final = refused("authentication_error", "api_key_expired", "Expired.", status=401)
_NO_RIGHT: Final = refused("invalid_request_error", "", "The key may not do this.", status=403)


class Sandbox(ThreadingHTTPServer):
    """The server with its books; a held line keeps its own thread and nobody else waits."""

    daemon_threads = True
    request_queue_size = 64

    def __init__(self, host: str, port: int, books: Books, *, hold: float, control: bool) -> None:
        self.books = books
        self.hold = hold
        self.control = control
        self._working: set[str] = set()
        self._working_lock = threading.Lock()
        super().__init__((host, port), Handler)
        self.deliveries = Deliveries(books.transaction)
        self.deliveries.start()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of clients that did not wait; that is what some of them are here for."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)

    def works_on(self, key: str) -> bool:
        """Tell whether a request with this key is being worked on."""
        with self._working_lock:
            return key in self._working

    @contextmanager
    def working(self, key: str) -> Iterator[None]:
        """Work on a request for as long as a slow line is held."""
        with self._working_lock:
            self._working.add(key)
        try:
            time.sleep(self.hold)
            yield
        finally:
            with self._working_lock:
                self._working.discard(key)


class Handler(BaseHTTPRequestHandler):
    """One request."""

    protocol_version = "HTTP/1.1"
    server: Sandbox

    def log_message(self, format: str, *args: Any) -> None:
        """Stay quiet: the books are the record."""

    def do_GET(self) -> None:
        """Read: a list, one object, or the books."""
        address = urlsplit(self.path)
        pairs = parse_qsl(address.query)
        expand = [value for name, value in pairs if name.startswith("expand[")]
        books = self.server.books
        if address.path == "/control/books" and self.server.control:
            return self._say(Answer(200, books.read()))
        table, _slash, name = address.path.removeprefix("/v1/").partition("/")
        if not address.path.startswith("/v1/") or table not in {*SHAPES, "charges"}:
            return self._say(_NOWHERE)
        if self._stranger() or self._met(*books.note_request(f"GET {address.path}", "")):
            return None
        if name:
            return self._say(books.get(name, expand))
        if table == "charges":
            return self._say(_NOWHERE)
        return self._say(books.list_rows(table, dict(pairs), expand))

    def do_POST(self) -> None:
        """Charge, refund, or switch a fault on."""
        length = int(self.headers.get("Content-Length") or 0)
        if length > MOST_BYTES:
            self.close_connection = True
            return self._say(Answer(413, {"error": {"type": "invalid_request_error"}}))
        form = dict(parse_qsl(self.rfile.read(length).decode("utf-8", "replace")))
        path = urlsplit(self.path).path
        if path.startswith("/control/") and self.server.control:
            self._say(controlled(self.server.books, path, form))
            return self.server.deliveries.wake()
        work = _WORK.get(path)
        if work is None:
            return self._say(_NOWHERE)
        key = self.headers.get("Idempotency-Key", "")
        if self._stranger():
            return None
        fault, content = self.server.books.note_request(f"POST {path}", key)
        if not self._met(fault, content):
            self._work(path, key, form, fault, lambda db: work(db, form))
        return None

    def _stranger(self) -> bool:
        """Refuse a request without a usable key; any secret key of test mode is one."""
        scheme, _space, key = self.headers.get("Authorization", "").partition(" ")
        if scheme != "Bearer" or not key:
            self._say(_NO_KEY)
        elif key.startswith("sk_test_expired"):
            self._say(_OLD_KEY)
        elif key.startswith("rk_test_"):
            self._say(_NO_RIGHT)
        elif not key.startswith("sk_test_"):
            self._say(_BAD_KEY)
        else:
            return False
        return True

    def _work(
        self, path: str, key: str, form: Mapping[str, str], fault: str, work: Callable[..., Answer]
    ) -> None:
        books = self.server.books
        saved = fault_of(
            form.get("payment_method") or books.method_of(form.get("payment_intent", ""))
        )
        if self.server.works_on(key):
            return self._say(replace(BEFORE["busy"], headers={"Stripe-Should-Retry": "true"}))
        if saved == SLOW_LOST and key and books.loses(key):
            # Nothing was committed and nobody hears of it; the next try under this key succeeds.
            return self._hang()
        first = not books.has_key(key)
        request = json.dumps([path, sorted(form.items())])
        if fault == "working":
            with self.server.working(key):
                answer = books.answer_once(key, request, work)
        else:
            answer = books.answer_once(key, request, _failing(fault, work))
        # An event need not wait for the reply of the request that made it happen.
        self.server.deliveries.wake()
        if saved == SLOW_COMMITTED and first:
            return self._hang()
        return self._told(fault, answer)

    def _told(self, fault: str, answer: Answer) -> None:
        """Answer, or meet a fault that comes after everything is done."""
        if fault == "drop_after":
            self._drop()
        elif fault == "garbage_after":
            self._send(200, b"<html>the proxy is not amused</html>", {})
        else:
            self._say(BROKEN if fault == "server_after" else answer)

    def _met(self, fault: str, content: str) -> bool:
        """Answer with a fault that comes before anything is done."""
        if fault == "drop_before":
            self._drop()
        elif fault in BEFORE:
            self._say(BEFORE[fault])
        elif fault.startswith("answer "):
            self._send(int(fault.removeprefix("answer ")), content.encode(), {})
        else:
            return False
        return True

    def _hang(self) -> None:
        time.sleep(self.server.hold)
        self._drop()

    def _drop(self) -> None:
        self.close_connection = True

    def _say(self, answer: Answer) -> None:
        self._send(answer.status, json.dumps(answer.body).encode(), answer.headers)

    def _send(self, status: int, content: bytes, headers: Mapping[str, str]) -> None:
        echoed = {
            name: self.headers.get(name, "") for name in ("Idempotency-Key", "Stripe-Version")
        }
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Request-Id", f"req_{secrets.token_hex(7)}")
        for name, value in {**echoed, **headers}.items():
            if value:
                self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)


def _failing(fault: str, work: Callable[..., Answer]) -> Callable[..., Answer]:
    """Let a failure of the processor's own be what its key keeps."""
    if fault == "server_kept_before":
        return lambda _db: BROKEN
    if fault != "server_kept_after":
        return work

    def done(db: Any) -> Answer:
        work(db)
        return BROKEN

    return done
