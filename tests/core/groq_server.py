"""A small server on this machine that speaks Groq's chat completions, streamed and whole.

It plays the same steps as the scripted model, but on the wire: what a test gives it in order, or
one step for ever by the name of the model that is asked for.
"""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Final

from agent_core.chat_models.scripted import ScriptedCall, ScriptedStep, calls, says

USAGE: Final = {"prompt_tokens": 21, "completion_tokens": 9, "total_tokens": 30}
PLAYS: Final = "script"
"""The name of the model that plays the server's `steps`."""

_STEPS: Final[Mapping[str, ScriptedStep]] = {
    "say": says("Good morning."),
    "cut": says("Good morning.", cut_off=True),
    "calls": calls(
        ScriptedCall("refund_request", {"payment": "PAY-1", "amount": "5.00"}, "call_a"),
        ScriptedCall("refund_request", {"payment": "PAY-2"}, "call_b"),
    ),
    "malformed": calls(ScriptedCall("refund_request", '{"payment": PAY-1', "call_a")),
}
_REFUSALS: Final[Mapping[str, tuple[int, dict[str, str], dict[str, str]]]] = {
    "busy": (429, {"message": "slow down"}, {"retry-after": "7"}),
    "down": (503, {"message": "down"}, {}),
    "tool-refused": (
        400,
        {
            "message": "Failed to call a function. See 'failed_generation'.",
            "type": "invalid_request_error",
            "code": "tool_use_failed",
            "failed_generation": '<function=probe_payment>{"amount": "5"}</function>',
        },
        {},
    ),
}
_WORDS: Final = re.compile(r"\w+ ?|\W+")


@dataclass
class GroqServer:
    """What a test gives the server and what the server was sent: `bodies` as text, as it came.

    A step too many answers 500, so that a client that goes on alone fails its test.
    """

    address: str = ""
    steps: Sequence[ScriptedStep] = ()
    bodies: list[str] = field(default_factory=list)
    paths: list[str] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    let_go: threading.Event = field(default_factory=threading.Event)
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _played: int = 0

    @property
    def requests(self) -> list[dict[str, Any]]:
        """Return the bodies, read."""
        return [json.loads(body) for body in self.bodies]

    def note(self, body: str, path: str, key: str) -> None:
        """Keep one request."""
        with self._lock:
            self.bodies.append(body)
            self.paths.append(path)
            self.keys.append(key)

    def step(self, model: str) -> ScriptedStep | None:
        """Return what this model answers now; None when the script is over."""
        if model != PLAYS:
            return _STEPS[model]
        with self._lock:
            self._played += 1
            return self.steps[self._played - 1] if self._played <= len(self.steps) else None


def _asked(step: ScriptedStep, number: int) -> list[dict[str, Any]]:
    """Return the calls of a step as the format writes them; text arguments stand as they are."""
    return [
        {
            "id": call.id or f"call_{number}_{index}",
            "type": "function",
            "function": {
                "name": call.tool,
                "arguments": call.arguments
                if isinstance(call.arguments, str)
                else json.dumps(call.arguments),
            },
        }
        for index, call in enumerate(step.calls)
    ]


def _finish(step: ScriptedStep) -> str:
    return "tool_calls" if step.calls else "stop"


def _framed(kind: str, choice: dict[str, Any], **more: Any) -> dict[str, Any]:
    choice = {"index": 0, "logprobs": None, "finish_reason": None, **choice}
    frame = {"id": "chatcmpl-1", "object": kind, "created": 1, "model": "m"}
    return {**frame, "choices": [choice], **more}


def _whole(step: ScriptedStep, number: int) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": step.text}
    if step.calls:
        message["tool_calls"] = _asked(step, number)
    choice = {"message": message, "finish_reason": _finish(step)}
    return _framed("chat.completion", choice, usage=USAGE)


def _pieces(step: ScriptedStep, number: int) -> Iterator[dict[str, Any]]:
    deltas: list[dict[str, Any]] = [{"role": "assistant", "content": ""}]
    deltas += [{"content": word} for word in _WORDS.findall(step.text)]
    deltas += [
        {"tool_calls": [{"index": index, **call}]}
        for index, call in enumerate(_asked(step, number))
    ]
    for delta in deltas:
        yield _framed("chat.completion.chunk", {"delta": delta})
    if not step.cut_off:
        last = {"delta": {}, "finish_reason": _finish(step)}
        yield _framed("chat.completion.chunk", last, x_groq={"id": "r", "usage": USAGE})


class Handler(BaseHTTPRequestHandler):
    """Answers one request; each server gets a class of its own that knows it."""

    serving: GroqServer

    def do_POST(self) -> None:
        text = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.serving.note(text, self.path, self.headers.get("Authorization", ""))
        body, number = json.loads(text), len(self.serving.bodies)
        model = body["model"]
        if model == "hang":
            self.serving.let_go.wait(10)
            return
        if model in _REFUSALS:
            status, error, headers = _REFUSALS[model]
            self._send(status, {"error": error}, headers)
            return
        step = self.serving.step(model)
        if step is None:
            self._send(500, {"error": {"message": "the script is over"}}, {})
        elif body.get("stream"):
            self._send_events(_pieces(step, number), whole=not step.cut_off)
        else:
            self._send(200, _whole(step, number), {})

    def _send(self, status: int, body: dict[str, Any], headers: Mapping[str, str]) -> None:
        written = json.dumps(body).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(written)))
        for name, value in headers.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(written)

    def _send_events(self, pieces: Iterator[dict[str, Any]], *, whole: bool) -> None:
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
def groq_serve(*steps: ScriptedStep) -> Iterator[GroqServer]:
    """Serve on a free port until the block ends."""
    server = GroqServer(steps=steps)
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
