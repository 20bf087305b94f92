"""Browsers, cheaply: one process that posts messages and reads event streams on plain sockets.

It shares the machine with what it measures, so it knows just enough of HTTP: a kept connection for
the posts and one for the stream of each conversation. Orders come as lines of JSON on the standard
input, times go back as lines on the standard output. It reads the events and fetches no fragments.
"""

from __future__ import annotations

import asyncio
import json
import sys
import time
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass
from typing import Any, Final
from uuid import uuid4

TURN_SECONDS: Final = 180.0
CSRF: Final = "benchbenchbenchbenchbenchbench32"
BOUNDARY: Final = "bench-boundary"


class Broken(Exception):
    """The product answered with something else than what was expected."""


@dataclass(frozen=True, slots=True)
class Times:
    """One turn, in seconds after the post was begun."""

    first_event: float
    first_token: float
    answered: float
    whole: float


@dataclass(frozen=True, slots=True)
class Frame:
    """One event of a stream, and when it was read."""

    kind: str
    data: dict[str, Any]
    at: float


class Browser:
    """One signed-in person in one conversation."""

    def __init__(self, port: int, seat: dict[str, str]) -> None:
        self._port = port
        self._path = f"/api/conversations/{seat['conversation']}"
        self._cookies = f"sessionid={seat['session']}; csrftoken={CSRF}"

    async def open(self) -> None:
        """Open the stream, and the connection for posts."""
        self._events, self._line = await self._connect()
        head = f"GET {self._path}/stream HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        head += f"Accept: text/event-stream\r\nCookie: {self._cookies}\r\n\r\n"
        self._line.write(head.encode())
        await _answer_head(self._events, 200)
        # The first frame only says how long to wait before a reconnect.
        await self._events.readuntil(b"\n\n")
        self._posts, self._out = await self._connect()

    async def close(self) -> None:
        """Close both connections."""
        for line in (self._line, self._out):
            line.close()

    async def send(self, text: str) -> None:
        """Post a message as the page does, and read the answer."""
        fields = {"text": text, "client_key": str(uuid4()), "csrfmiddlewaretoken": CSRF}
        body = "".join(
            f'--{BOUNDARY}\r\nContent-Disposition: form-data; name="{name}"\r\n\r\n{value}\r\n'
            for name, value in fields.items()
        )
        body += f"--{BOUNDARY}--\r\n"
        head = f"POST {self._path}/messages HTTP/1.1\r\nHost: 127.0.0.1\r\n"
        head += f"Accept: application/json\r\nCookie: {self._cookies}\r\n"
        head += f"Content-Type: multipart/form-data; boundary={BOUNDARY}\r\n"
        head += f"Content-Length: {len(body.encode())}\r\n\r\n"
        self._out.write((head + body).encode())
        length = await _answer_head(self._posts, 200)
        await self._posts.readexactly(length)

    async def turn(self, text: str) -> Times:
        """Play one turn: post, and read events up to the last one.

        Raises:
            Broken: the turn did not end with its ticket.
        """
        began = time.perf_counter()
        # Whichever fails ends the turn: without its message no last event would ever come.
        answered, seen = await asyncio.gather(self._sent(text), self._seen())
        event, token, last = (at - began for at in seen)
        return Times(event, token, answered - began, last)

    async def _sent(self, text: str) -> float:
        # A server closes a connection that was idle for a while; a browser then makes a new one.
        if self._posts.at_eof():
            self._out.close()
            self._posts, self._out = await self._connect()
        await self.send(text)
        return time.perf_counter()

    async def _seen(self) -> tuple[float, float, float]:
        """Return when the first event, the first piece of text and the last event were read."""
        first_event = first_token = 0.0
        async for frame in self._frames():
            first_event = first_event or frame.at
            if frame.kind == "delta":
                first_token = first_token or frame.at
            if frame.kind == "stop":
                if frame.data["rule"] != "completed":
                    raise Broken(f"A turn ended by {frame.data['rule']}.")
                return first_event, first_token, frame.at
        raise Broken("The stream ended.")

    async def _frames(self) -> AsyncIterator[Frame]:
        while raw := await self._events.readuntil(b"\n\n"):
            at = time.perf_counter()
            kind, data = "", {}
            for line in raw.split(b"\n"):
                if line.startswith(b"event: "):
                    kind = line[7:].decode().strip()
                elif line.startswith(b"data: "):
                    data = json.loads(line[6:])
            if kind:
                yield Frame(kind, data, at)

    async def _connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self._port, limit=2**20)


async def _answer_head(answer: asyncio.StreamReader, wanted: int) -> int:
    """Read the head of an answer and return how long its body is, 0 when it does not say.

    Raises:
        Broken: another status than the wanted one.
    """
    head = (await answer.readuntil(b"\r\n\r\n")).decode("latin-1")
    status = int(head.split(" ", 2)[1])
    if status != wanted:
        raise Broken(f"The product answered {status}: {head.splitlines()[0]}")
    for line in head.splitlines():
        name, _colon, value = line.partition(":")
        if name.lower() == "content-length":
            return int(value)
    return 0


async def _played(port: int, seats: list[dict[str, str]], turns: int, text: str) -> dict[str, Any]:
    """Let every seat play so many turns, each after the last event of the one before."""
    browsers = [Browser(port, seat) for seat in seats]
    for browser in browsers:
        await browser.open()
    cpu, began = time.process_time(), time.perf_counter()
    async with asyncio.timeout(TURN_SECONDS * turns):
        times = await asyncio.gather(*(_turns(browser, turns, text) for browser in browsers))
    seconds, used = time.perf_counter() - began, time.process_time() - cpu
    for browser in browsers:
        await browser.close()
    flat = [asdict(each) for mine in times for each in mine]
    return {"seconds": seconds, "cpu": used, "turns": flat}


async def _turns(browser: Browser, turns: int, text: str) -> list[Times]:
    return [await browser.turn(f"{text} {uuid4().hex[:12]}") for _turn in range(turns)]


def start() -> None:
    """Play what each line asks for."""
    for line in sys.stdin:
        order = json.loads(line)
        found = asyncio.run(_played(order["port"], order["seats"], order["turns"], order["text"]))
        print(json.dumps(found), flush=True)


if __name__ == "__main__":
    start()
