"""A model server that answers when the test lets it: the product speaks to it as it does to Groq.

What the person wrote decides: `say …` is answered with those words, one piece at a time; all else
opens a ticket of that name.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar, Final
from urllib.parse import urlsplit

NAME: Final = "groq:held"
USAGE: Final = {"prompt_tokens": 400, "completion_tokens": 30, "total_tokens": 430}


class HeldModel:
    """What the model has been asked, and whether it may answer."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.asked = 0
        self.lock = threading.Lock()
        self.may_answer = threading.Event()
        self.may_answer.set()
        self.may_finish = threading.Event()
        self.may_finish.set()

    @property
    def variables(self) -> dict[str, str]:
        """Return how a process of the product is told of this model."""
        return {
            "CHAT_MODEL": NAME,
            "GROQ_API_KEY": "none",
            "GROQ_BASE_URL": self.url,
            "NO_PROXY": "127.0.0.1",
        }

    def hold(self) -> None:
        """Answer nobody until `release`."""
        self.may_answer.clear()

    def release(self) -> None:
        """Answer everybody."""
        self.may_answer.set()
        self.may_finish.set()


class _Handler(BaseHTTPRequestHandler):
    model: ClassVar[HeldModel]

    def do_POST(self) -> None:
        length = int(self.headers["Content-Length"])
        said = json.loads(self.rfile.read(length))["messages"][-1]["content"]
        with self.model.lock:
            self.model.asked += 1
        self.model.may_answer.wait(120)
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        try:
            self._answer(str(said))
        except OSError:
            # Who asked has gone.
            return

    def _answer(self, said: str) -> None:
        if said.startswith("say "):
            first, *more = said.removeprefix("say ").split()
            self._piece({"content": first})
            self.model.may_finish.wait(120)
            for word in more:
                self._piece({"content": f" {word}"})
            self._piece({}, finish="stop")
        else:
            call = {"name": "ticket_create", "arguments": json.dumps({"subject": said[:200]})}
            one = {"index": 0, "id": "call_0", "type": "function", "function": call}
            self._piece({"tool_calls": [one]})
            self._piece({}, finish="tool_calls")
        self._write("[DONE]")

    def _piece(self, delta: dict[str, Any], finish: str | None = None) -> None:
        choice = {"index": 0, "delta": {"role": "assistant", **delta}, "finish_reason": finish}
        chunk: dict[str, Any] = {"id": "c", "object": "chat.completion.chunk", "created": 1}
        chunk |= {"model": "held", "choices": [choice]}
        if finish:
            chunk["x_groq"] = {"id": "r", "usage": USAGE}
        self._write(json.dumps(chunk))

    def _write(self, text: str) -> None:
        self.wfile.write(f"data: {text}\n\n".encode())
        self.wfile.flush()

    def log_message(self, format: str, *args: object) -> None:
        """Say nothing."""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Say nothing of who hung up."""


@contextmanager
def held_model() -> Iterator[HeldModel]:
    """Run a model server for as long as the body runs."""

    class Handler(_Handler):
        """The handler of this one server."""

    server = _Server(("127.0.0.1", 0), Handler)
    host, port = server.server_address[:2]
    model = Handler.model = HeldModel(f"http://{host!s}:{port}")
    assert urlsplit(model.url).port == port
    thread = threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True)
    thread.start()
    try:
        yield model
    finally:
        model.release()
        server.shutdown()
        server.server_close()
        thread.join(5)
