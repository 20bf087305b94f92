"""A gateway that a test can hold between two steps: the real one, with gates around the line."""

from __future__ import annotations

import threading
from dataclasses import dataclass, field
from typing import Any, Final

from django.db import connection

from payments.gateways.base import Order, Reply
from payments.gateways.sandbox import SandboxGateway

PATIENCE: Final = 30


@dataclass
class Gates:
    """`sending` is set when a try has begun; the try goes on once `send` is set, and its reply is
    handed over once `reply` is set. `writing` is set when the first caller is in its transaction,
    all checks passed and no row written; it goes on once `write` is set. Only the first is held.
    `connected` notes, for each try, whether the caller held a connection or transaction.
    """

    writing: threading.Event = field(default_factory=threading.Event)
    write: threading.Event = field(default_factory=threading.Event)

    sending: threading.Event = field(default_factory=threading.Event)
    sent: threading.Event = field(default_factory=threading.Event)
    send: threading.Event = field(default_factory=threading.Event)
    reply: threading.Event = field(default_factory=threading.Event)
    held: list[str] = field(default_factory=list)
    connected: list[bool] = field(default_factory=list)

    def open(self) -> None:
        """Hold nobody any more."""
        self.write.set()
        self.send.set()
        self.reply.set()


GATES: list[Gates] = []


class GatedGateway(SandboxGateway):
    """The sandbox gateway, held at the gates of the running test."""

    def charge_body(self, **values: Any) -> dict[str, str]:
        """Wait where the transaction has checked everything and written nothing."""
        self._before_writing()
        return super().charge_body(**values)

    def refund_body(self, **values: Any) -> dict[str, str]:
        """Wait where the transaction has checked everything and written nothing."""
        self._before_writing()
        return super().refund_body(**values)

    def _before_writing(self) -> None:
        gates = GATES[-1]
        if not gates.writing.is_set():
            gates.writing.set()
            assert gates.write.wait(PATIENCE)

    def send(self, order: Order) -> Reply:
        """Wait at the gate before the line, and at the one behind it."""
        gates = GATES[-1]
        first = not gates.held
        gates.held.append(order.key)
        gates.connected.append(connection.connection is not None or connection.in_atomic_block)
        gates.sending.set()
        if first:
            assert gates.send.wait(PATIENCE)
        reply = super().send(order)
        gates.sent.set()
        if first:
            assert gates.reply.wait(PATIENCE)
        return reply
