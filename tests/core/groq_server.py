"""A small server on this machine that speaks Groq's chat completions, streamed and whole."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

USAGE = {"prompt_tokens": 21, "completion_tokens": 9, "total_tokens": 30}


@dataclass
class GroqServer:
    """Answers by the name of the model it is asked for; `requests` holds the bodies it was sent."""

    address: str = ""
    requests: list[dict[str, Any]] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    let_go: threading.Event = field(default_factory=threading.Event)


def _piece(delta: dict[str, Any], finish: str | None = None, **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "created": 1,
        "model": "m",
        "choices": [choice],
        **more,
    }


def _call(index: int, key: str, name: str, arguments: str) -> dict[str, Any]:
    function = {"name": name, "arguments": arguments}
    return {"index": index, "id": key, "type": "function", "function": function}


def _stream_of(model: str) -> list[dict[str, Any]]:
    usage = {"x_groq": {"id": "r", "usage": USAGE}}
    first = _piece({"role": "assistant", "content": ""})
    if model == "calls":
        found = _call(0, "call_a", "refund_request", '{"payment":"PAY-1","amount":"5.00"}')
        other = _call(1, "call_b", "refund_request", '{"payment":"PAY-2"}')
        return [
            first,
            _piece({"tool_calls": [found]}),
            _piece({"tool_calls": [other]}),
            _piece({}, "tool_calls", **usage),
        ]
    if model == "malformed":
        broken = _call(0, "call_a", "refund_request", '{"payment": PAY-1')
        return [first, _piece({"tool_calls": [broken]}), _piece({}, "tool_calls", **usage)]
    words = [_piece({"content": word}) for word in ("Good ", "morning", ".")]
    return [first, *words] if model == "cut" else [first, *words, _piece({}, "stop", **usage)]


def _whole() -> dict[str, Any]:
    message = {"role": "assistant", "content": "Good morning."}
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": "stop"}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1,
        "model": "m",
        "choices": [choice],
        "usage": USAGE,
    }


class Handler(BaseHTTPRequestHandler):
    """Answers one request; each server gets a class of its own that knows it."""

    serving: GroqServer

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.serving.requests.append(body)
        self.serving.paths.append(self.path)
        self.serving.keys.append(self.headers.get("Authorization", ""))
        model = body["model"]
        if model == "hang":
            self.serving.let_go.wait(10)
        elif model == "busy":
            self._send(429, {"error": {"message": "slow down"}}, {"retry-after": "7"})
        elif model == "down":
            self._send(503, {"error": {"message": "down"}})
        elif body.get("stream"):
            self._send_events(_stream_of(model), whole=model != "cut")
        else:
            self._send(200, _whole())

    def _send(
        self, status: int, body: dict[str, Any], headers: dict[str, str] | None = None
    ) -> None:
        written = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(written)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(written)

    def _send_events(self, pieces: list[dict[str, Any]], *, whole: bool) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.end_headers()
        for piece in pieces:
            self.wfile.write(f"data: {json.dumps(piece)}\n\n".encode())
            self.wfile.flush()
        if whole:
            self.wfile.write(b"data: [DONE]\n\n")

    def log_message(self, format: str, *args: Any) -> None:
        """Say nothing: the test reads what was recorded."""


@contextmanager
def groq_serve() -> Iterator[GroqServer]:
    """Serve on a free port until the block ends."""
    server = GroqServer()
    handler = type("Serving", (Handler,), {"serving": server})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as http:
        server.address = f"http://127.0.0.1:{http.server_port}"
        thread = threading.Thread(target=http.serve_forever, daemon=True)
        thread.start()
        try:
            yield server
        finally:
            server.let_go.set()
            http.shutdown()
            thread.join()
