"""The sandbox's books in SQLite: payments, refunds, stored answers by idempotency key.

One writer at a time, and one transaction for a rule's check, its effect and its stored answer.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from payments.sandbox.tokens import earlier_of

KEY_SECONDS: Final = 24 * 3600

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS payment_intents (
    position INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE NOT NULL, amount INTEGER NOT NULL,
    currency TEXT NOT NULL, status TEXT NOT NULL, payment_method TEXT NOT NULL,
    refunded INTEGER NOT NULL DEFAULT 0 CHECK (refunded <= amount), metadata TEXT NOT NULL,
    created INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS refunds (
    position INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE NOT NULL,
    payment_intent TEXT NOT NULL REFERENCES payment_intents (id), amount INTEGER NOT NULL,
    currency TEXT NOT NULL, status TEXT NOT NULL, metadata TEXT NOT NULL, created INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS keys (
    key TEXT PRIMARY KEY, request TEXT NOT NULL, status INTEGER NOT NULL, answer TEXT NOT NULL,
    created INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS lost (key TEXT PRIMARY KEY);
CREATE TABLE IF NOT EXISTS faults (
    position INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, times INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS requests (
    position INTEGER PRIMARY KEY AUTOINCREMENT, route TEXT NOT NULL, key TEXT NOT NULL);
"""


@dataclass(frozen=True, slots=True)
class Answer:
    """What goes back over the line."""

    status: int
    body: Mapping[str, Any]


class Books:
    """The store of one sandbox. Every public method is one transaction."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._db.row_factory = sqlite3.Row
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA foreign_keys = ON")
        self._db.executescript(_SCHEMA)

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Hold the only writer; what raises leaves no trace."""
        with self._lock:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
            except BaseException:  # Whatever ends the body, even an interrupt, must undo it.
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")

    def answer_once(
        self, key: str, request: str, work: Callable[[sqlite3.Connection], Answer]
    ) -> Answer:
        """Do the work, or give the stored answer of its key; other parameters are a conflict."""
        with self.transaction() as db:
            if key:
                db.execute("DELETE FROM keys WHERE created < ?", (_now() - KEY_SECONDS,))
                row = db.execute("SELECT * FROM keys WHERE key = ?", (key,)).fetchone()
                if row is not None and row["request"] != request:
                    return refused("idempotency_error", "", "This key was used otherwise.")
                if row is not None:
                    return Answer(row["status"], json.loads(row["answer"]))
            answer = work(db)
            if key:
                db.execute(
                    "INSERT INTO keys VALUES (?, ?, ?, ?, ?)",
                    (key, request, answer.status, json.dumps(answer.body), _now()),
                )
            return answer

    def loses(self, key: str) -> bool:
        """Tell whether this is the first try under the key, and note that there was one."""
        with self.transaction() as db:
            return db.execute("INSERT OR IGNORE INTO lost VALUES (?)", (key,)).rowcount == 1

    def has_key(self, key: str) -> bool:
        """Tell whether an answer is stored under the key."""
        with self.transaction() as db:
            return db.execute("SELECT 1 FROM keys WHERE key = ?", (key,)).fetchone() is not None

    def method_of(self, payment_intent: str) -> str:
        """Return the token a payment was made with; empty when there is none."""
        with self.transaction() as db:
            row = find(db, payment_intent)
            return "" if row is None else str(row["payment_method"])

    def note_request(self, route: str, key: str) -> str:
        """Count a request; return the switched-on fault that it meets, if any."""
        with self.transaction() as db:
            db.execute("INSERT INTO requests (route, key) VALUES (?, ?)", (route, key))
            row = db.execute("SELECT * FROM faults WHERE times > 0 ORDER BY position").fetchone()
            if row is None:
                return ""
            db.execute("UPDATE faults SET times = times - 1 WHERE position = ?", (row["position"],))
            return str(row["kind"])

    def switch_fault(self, kind: str, times: int) -> None:
        """Let the next requests fail in this way."""
        with self.transaction() as db:
            db.execute("INSERT INTO faults (kind, times) VALUES (?, ?)", (kind, times))

    def forget_keys(self) -> None:
        """Let every key have reached its end."""
        with self.transaction() as db:
            db.execute("DELETE FROM keys")

    def clear(self) -> None:
        """Empty the books and switch every fault off."""
        with self.transaction() as db:
            for table in ("refunds", "payment_intents", "keys", "lost", "faults", "requests"):
                db.execute(f"DELETE FROM {table}")  # noqa: S608 - names of ours

    def read(self) -> dict[str, Any]:
        """Return everything, for a test to compare with the ledger."""
        with self.transaction() as db:
            payments = [_payment(row) for row in db.execute("SELECT * FROM payment_intents")]
            refunds = [_refund(row) for row in db.execute("SELECT * FROM refunds")]
            requests = [dict(row) for row in db.execute("SELECT route, key FROM requests")]
        return {"payment_intents": payments, "refunds": refunds, "requests": requests}

    def list_rows(self, table: str, query: Mapping[str, str]) -> Answer:
        """List payments or refunds, the newest first, by the filters and pages that Stripe has."""
        limit = min(max(int(query.get("limit", "10")), 1), 100)
        with self.transaction() as db:
            rows = db.execute(f"SELECT * FROM {table} ORDER BY position DESC").fetchall()  # noqa: S608 - one of two names of ours
        shown = [_payment(row) if table == "payment_intents" else _refund(row) for row in rows]
        wanted = query.get("payment_intent", "")
        since = int(query.get("created[gte]", "0"))
        shown = [
            row
            for row in shown
            if row["created"] >= since and wanted in ("", row.get("payment_intent", row["id"]))
        ]
        after = query.get("starting_after", "")
        ids = [row["id"] for row in shown]
        start = ids.index(after) + 1 if after in ids else 0
        page = shown[start : start + limit]
        more = start + limit < len(shown)
        url = f"/v1/{table}"
        return Answer(200, {"object": "list", "data": page, "has_more": more, "url": url})


def find(db: sqlite3.Connection, payment_intent: str) -> sqlite3.Row | None:
    """Return a payment's row; one of earlier days is entered when it is first named."""
    query = "SELECT * FROM payment_intents WHERE id = ?"
    row: sqlite3.Row | None = db.execute(query, (payment_intent,)).fetchone()
    earlier = earlier_of(payment_intent)
    if row is not None or earlier is None or not 0 <= earlier.refunded <= earlier.amount:
        return row
    _enter(
        db,
        payment_intent,
        amount=earlier.amount,
        currency=earlier.currency,
        status="succeeded",
        method=earlier.method,
        metadata="{}",
    )
    db.execute(
        "UPDATE payment_intents SET refunded = ? WHERE id = ?", (earlier.refunded, payment_intent)
    )
    return find(db, payment_intent)


def pay(
    db: sqlite3.Connection, *, amount: int, currency: str, method: str, status: str, metadata: str
) -> dict[str, Any]:
    """Enter a payment and return it as it goes over the line."""
    name = f"pi_{secrets.token_hex(12)}"
    _enter(
        db,
        name,
        amount=amount,
        currency=currency,
        status=status,
        method=method,
        metadata=metadata,
    )
    return _payment(db.execute("SELECT * FROM payment_intents WHERE id = ?", (name,)).fetchone())


def give_back(
    db: sqlite3.Connection, payment: sqlite3.Row, amount: int, metadata: str
) -> dict[str, Any]:
    """Enter a refund and return it as it goes over the line."""
    name = f"re_{secrets.token_hex(12)}"
    db.execute(
        "INSERT INTO refunds (id, payment_intent, amount, currency, status, metadata, created)"
        " VALUES (?, ?, ?, ?, 'succeeded', ?, ?)",
        (name, payment["id"], amount, payment["currency"], metadata, _now()),
    )
    db.execute(
        "UPDATE payment_intents SET refunded = refunded + ? WHERE id = ?", (amount, payment["id"])
    )
    return _refund(db.execute("SELECT * FROM refunds WHERE id = ?", (name,)).fetchone())


def refused(kind: str, code: str, message: str, *, status: int = 400, **more: Any) -> Answer:
    """Say no in Stripe's words."""
    error = {"type": kind, "message": message, **({"code": code} if code else {}), **more}
    return Answer(status, {"error": error})


def _enter(
    db: sqlite3.Connection,
    name: str,
    *,
    amount: int,
    currency: str,
    status: str,
    method: str,
    metadata: str,
) -> None:
    db.execute(
        "INSERT INTO payment_intents"
        " (id, amount, currency, status, payment_method, metadata, created)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        (name, amount, currency, status, method, metadata, _now()),
    )


def _payment(row: sqlite3.Row) -> dict[str, Any]:
    return {
        "id": row["id"],
        "object": "payment_intent",
        "amount": row["amount"],
        "amount_received": row["amount"] if row["status"] == "succeeded" else 0,
        "currency": row["currency"],
        "status": row["status"],
        "payment_method": row["payment_method"],
        "metadata": json.loads(row["metadata"]),
        "created": row["created"],
        "livemode": False,
    }


def _refund(row: sqlite3.Row) -> dict[str, Any]:
    return {
        "id": row["id"],
        "object": "refund",
        "amount": row["amount"],
        "currency": row["currency"],
        "payment_intent": row["payment_intent"],
        "status": row["status"],
        "metadata": json.loads(row["metadata"]),
        "created": row["created"],
    }


def _now() -> int:
    return int(time.time())
