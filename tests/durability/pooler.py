"""A transaction pooler: many clients share few sessions of Postgres, a transaction at a time.

Like the poolers in use it gives a session back when the server says that it is in no transaction,
and hands sessions out in turn, so that a client rarely meets the same one again. Unlike them it
repairs nothing: no state is reset or carried over. Whoever relies on a session (prepared
statements, SET, LISTEN, advisory locks, cursors that are held) fails or leaves a trace here.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Final
from urllib.parse import urlsplit, urlunsplit

import psycopg

SSL_REQUEST: Final = 80877103
GSS_REQUEST: Final = 80877104
CANCEL_REQUEST: Final = 80877102
ENDS: Final = frozenset(b"QSF")
"""Query, Sync and FunctionCall: each is answered by one ReadyForQuery."""

FLUSH: Final = b"H"
"""Asks for what was answered so far; begins and ends nothing."""

KNOWN: Final = frozenset({"user", "database", "client_encoding", "application_name"})
"""What a client may ask for as it connects; poolers refuse the rest."""

PARAMETERS: Final = (
    b"server_version",
    b"server_encoding",
    b"client_encoding",
    b"DateStyle",
    b"TimeZone",
    b"IntervalStyle",
    b"integer_datetimes",
    b"is_superuser",
    b"standard_conforming_strings",
)
"""What the server says of itself as one connects."""

Pipe = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class Session:
    """One session of the server: signed in by a real client, whose socket was then taken over."""

    def __init__(self, client: psycopg.Connection, pipe: Pipe) -> None:
        self.reader, self.writer = pipe
        self._client = client
        values = {name: client.pgconn.parameter_status(name) for name in PARAMETERS}
        self.parameters = {name: value for name, value in values.items() if value}

    def close(self) -> None:
        """Leave the server."""
        self.writer.close()
        self._client.close()


class Pooler:
    """Listens on a port of its own; `url` is the address to give to clients."""

    def __init__(self, url: str, *, size: int) -> None:
        self._server_url = url
        self.url = ""
        self.size = size
        self.clients = 0
        self.most_clients = 0
        self.transactions = 0
        self.moves: Counter[str] = Counter()
        self._free: asyncio.Queue[Session | None] = asyncio.Queue()
        self._sessions: list[Session] = []
        self._parameters: dict[bytes, bytes] = {}

    async def serve(self, started: threading.Event, stop: asyncio.Event) -> None:
        """Serve until told to stop."""
        for _number in range(self.size):
            # A session is made when it is first needed, and anew when the server cut it.
            self._free.put_nowait(None)
        server = await asyncio.start_server(self._client, "127.0.0.1", 0, backlog=512)
        port = server.sockets[0].getsockname()[1]
        parts = urlsplit(self._server_url)
        place = f"{parts.username or 'postgres'}@127.0.0.1:{port}"
        self.url = urlunsplit(parts._replace(netloc=place))
        started.set()
        await stop.wait()
        server.close()
        self.close()

    async def _client(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.clients += 1
        self.most_clients = max(self.most_clients, self.clients)
        try:
            if await self._welcome(reader, writer):
                await _Client(self, reader, writer).run()
        except (OSError, EOFError):
            return
        finally:
            self.clients -= 1
            writer.close()

    async def _welcome(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        while True:
            (length,) = struct.unpack("!I", await reader.readexactly(4))
            body = await reader.readexactly(length - 4)
            (code,) = struct.unpack("!I", body[:4])
            if code not in (SSL_REQUEST, GSS_REQUEST):
                break
            writer.write(b"N")
        if code == CANCEL_REQUEST:
            return False
        words = body[4:].split(b"\0")
        asked = {name.decode() for name in words[:-2:2] if name}
        if unknown := asked - KNOWN:
            text = f"unsupported startup parameter: {', '.join(sorted(unknown))}"
            fields = f"SFATAL\0C08P01\0M{text}\0\0".encode()
            writer.write(_message(b"E", fields))
            return False
        if not self._parameters:
            session = await self.take()
            self.give(session)
            self._parameters = session.parameters
        writer.write(_message(b"R", struct.pack("!I", 0)))
        for name, value in self._parameters.items():
            writer.write(_message(b"S", name + b"\0" + value + b"\0"))
        writer.write(_message(b"K", struct.pack("!II", 1, 1)) + _message(b"Z", b"I"))
        return True

    async def take(self, last: Session | None = None) -> Session:
        """Take the session that was free the longest, and not the `last` one if others are."""
        session = await self._free.get()
        if session is not None and session is last and not self._free.empty():
            self._free.put_nowait(session)
            session = self._free.get_nowait()
        if session is not None:
            return session
        try:
            return await self._connected()
        except BaseException:
            self._free.put_nowait(None)
            raise

    def give(self, session: Session | None) -> None:
        """Give a session back; None for one that is lost."""
        self._free.put_nowait(session)

    async def _connected(self) -> Session:
        try:
            client = await asyncio.to_thread(self._sign_in)
        except psycopg.Error as error:
            raise EOFError from error
        taken = socket.socket(fileno=os.dup(client.pgconn.socket))
        taken.setblocking(False)
        session = Session(client, await asyncio.open_connection(sock=taken))
        self._sessions.append(session)
        return session

    def _sign_in(self) -> psycopg.Connection:
        return psycopg.connect(self._server_url, autocommit=True)

    def close(self) -> None:
        """End every session."""
        for session in self._sessions:
            session.close()


class _Client:
    """One client that has signed in; holds a session for as long as its transaction lasts."""

    def __init__(
        self, pooler: Pooler, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        self._pooler, self._reader, self._writer = pooler, reader, writer
        self._session: Session | None = None
        self._last: Session | None = None
        self._unanswered = 0
        self._open = False
        self._pump: asyncio.Task[None] | None = None

    async def run(self) -> None:
        """Pass on what the client says until it goes."""
        try:
            while True:
                kind, whole = await _read(self._reader)
                if kind == b"X":
                    return
                if self._session is None:
                    await self._attach()
                assert self._session is not None
                if kind != FLUSH:
                    self._open = kind[0] not in ENDS
                self._unanswered += kind[0] in ENDS
                self._session.writer.write(whole)
                await self._session.writer.drain()
        finally:
            if self._pump is not None:
                self._pump.cancel()
            if self._session is not None:
                # It left in the middle: nobody may meet what it left behind.
                self._session.close()
                self._pooler.give(None)

    async def _attach(self) -> None:
        session = await self._pooler.take(self._last)
        if self._last is not None:
            self._pooler.moves["other" if session is not self._last else "same"] += 1
        self._session = self._last = session
        self._pooler.transactions += 1
        self._pump = asyncio.create_task(self._answers(session))

    async def _answers(self, session: Session) -> None:
        """Pass on what the server says until the transaction is over."""
        try:
            while True:
                kind, whole = await _read(session.reader)
                self._writer.write(whole)
                if kind != b"Z":
                    continue
                self._unanswered -= 1
                if self._unanswered == 0 and not self._open and whole[-1:] == b"I":
                    self._session = None
                    self._pooler.give(session)
                    return
        except (OSError, EOFError):
            self._session = None
            session.close()
            self._pooler.give(None)
            self._writer.close()


async def _read(reader: asyncio.StreamReader) -> tuple[bytes, bytes]:
    head = await reader.readexactly(5)
    (length,) = struct.unpack("!I", head[1:])
    return head[:1], head + await reader.readexactly(length - 4)


def _message(kind: bytes, body: bytes) -> bytes:
    return kind + struct.pack("!I", len(body) + 4) + body


@contextmanager
def transaction_pooler(url: str, *, size: int) -> Iterator[Pooler]:
    """Run a pooler with so many sessions before the database at this address."""
    started, loop = threading.Event(), asyncio.new_event_loop()
    pooler, stop = Pooler(url, size=size), asyncio.Event()

    def serve() -> None:
        asyncio.set_event_loop(loop)
        loop.run_until_complete(pooler.serve(started, stop))
        for task in asyncio.all_tasks(loop):
            task.cancel()
        with suppress(asyncio.CancelledError):
            loop.run_until_complete(asyncio.sleep(0))
        loop.close()

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    assert started.wait(10)
    try:
        yield pooler
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join(10)
