"""The sandbox's books in SQLite: payments, refunds, disputes, stored answers by idempotency key.

One writer at a time, and one transaction for a rule's check, its effect and its stored answer.
"""

from __future__ import annotations

import json
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from payments.sandbox import events, shapes
from payments.sandbox.shapes import Answer, Shape, refused
from payments.sandbox.tokens import DISPUTED, earlier_of, fault_of

KEY_SECONDS: Final = 24 * 3600

_SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS payment_intents (
    position INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE NOT NULL, amount INTEGER NOT NULL,
    currency TEXT NOT NULL, status TEXT NOT NULL, payment_method TEXT NOT NULL,
    refunded INTEGER NOT NULL DEFAULT 0 CHECK (refunded <= amount), metadata TEXT NOT NULL,
    created INTEGER NOT NULL, customer TEXT NOT NULL DEFAULT '', error TEXT NOT NULL DEFAULT '');
CREATE TABLE IF NOT EXISTS refunds (
    position INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE NOT NULL,
    payment_intent TEXT NOT NULL REFERENCES payment_intents (id), amount INTEGER NOT NULL,
    currency TEXT NOT NULL, status TEXT NOT NULL, metadata TEXT NOT NULL, created INTEGER NOT NULL,
    pending_reason TEXT NOT NULL DEFAULT '', failure_reason TEXT NOT NULL DEFAULT '');
CREATE TABLE IF NOT EXISTS disputes (
    position INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE NOT NULL,
    payment_intent TEXT NOT NULL REFERENCES payment_intents (id), amount INTEGER NOT NULL,
    currency TEXT NOT NULL, reason TEXT NOT NULL, status TEXT NOT NULL, created INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS keys (
    key TEXT PRIMARY KEY, request TEXT NOT NULL, status INTEGER NOT NULL, answer TEXT NOT NULL,
    created INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS lost (key TEXT PRIMARY KEY);
CREATE TABLE IF NOT EXISTS faults (
    position INTEGER PRIMARY KEY AUTOINCREMENT, kind TEXT NOT NULL, times INTEGER NOT NULL,
    content TEXT NOT NULL DEFAULT '');
CREATE TABLE IF NOT EXISTS requests (
    position INTEGER PRIMARY KEY AUTOINCREMENT, route TEXT NOT NULL, key TEXT NOT NULL);
"""
# Columns that books of an earlier version lack.
_LATER: Final = {
    "payment_intents": ("customer", "error"),
    "refunds": ("pending_reason", "failure_reason"),
    "faults": ("content",),
}
_TABLES: Final = (
    "refunds",
    "disputes",
    "payment_intents",
    "keys",
    "lost",
    "faults",
    "requests",
    "events",
    "hook",
)
_PAYMENT_EVENTS: Final[Mapping[str, tuple[str, ...]]] = {
    "succeeded": ("payment_intent.succeeded",),
    "requires_payment_method": ("payment_intent.payment_failed",),
}
SHAPES: Final[Mapping[str, Callable[[sqlite3.Row], Shape]]] = {
    "payment_intents": shapes.payment,
    "refunds": shapes.refund,
    "disputes": shapes.dispute,
}


class Books:
    """The store of one sandbox. Every public method is one transaction."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
        self._db.row_factory = sqlite3.Row
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("PRAGMA foreign_keys = ON")
        self._db.executescript(_SCHEMA + events.SCHEMA)
        for table, names in _LATER.items():
            there = {row["name"] for row in self._db.execute(f"PRAGMA table_info({table})")}
            for name in set(names) - there:
                self._db.execute(f"ALTER TABLE {table} ADD COLUMN {name} TEXT NOT NULL DEFAULT ''")

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
                    return _replayed(row)
            answer = work(db)
            if key and answer.kept:
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

    def note_request(self, route: str, key: str) -> tuple[str, str]:
        """Count a request; return the switched-on fault that it meets, and its content, if any."""
        with self.transaction() as db:
            db.execute("INSERT INTO requests (route, key) VALUES (?, ?)", (route, key))
            row = db.execute("SELECT * FROM faults WHERE times > 0 ORDER BY position").fetchone()
            if row is None:
                return "", ""
            db.execute("UPDATE faults SET times = times - 1 WHERE position = ?", (row["position"],))
            return str(row["kind"]), str(row["content"])

    def switch_fault(self, kind: str, times: int, content: str = "") -> None:
        """Let the next requests fail in this way."""
        with self.transaction() as db:
            query = "INSERT INTO faults (kind, times, content) VALUES (?, ?, ?)"
            db.execute(query, (kind, times, content))

    def forget_keys(self) -> None:
        """Let every key have reached its end."""
        with self.transaction() as db:
            db.execute("DELETE FROM keys")

    def clear(self) -> None:
        """Empty the books and switch every fault off."""
        with self.transaction() as db:
            for table in _TABLES:
                db.execute(f"DELETE FROM {table}")  # noqa: S608 - names of ours

    def read(self) -> dict[str, Any]:
        """Return everything, for a test to compare with the ledger."""
        with self.transaction() as db:
            kept: dict[str, Any] = {
                table: [shape(row) for row in db.execute(f"SELECT * FROM {table}")]  # noqa: S608 - names of ours
                for table, shape in SHAPES.items()
            }
            requests = [dict(row) for row in db.execute("SELECT route, key FROM requests")]
            told = events.events_read(db)
        return {**kept, "requests": requests, "events": told}

    def get(self, name: str, expand: Collection[str] = ()) -> Answer:
        """Return one object by its name, whatever it is."""
        with self.transaction() as db:
            shape = _shape(db, name)
            if shape is None:
                return shapes.unfit("resource_missing", f"No such object: {name}", status=404)
            return Answer(200, shapes.expanded(shape, expand, lambda other: _shape(db, other)))

    def list_rows(self, table: str, query: Mapping[str, str], expand: Collection[str]) -> Answer:
        """List what a table has, the newest first, by the filters and pages that Stripe has."""
        limit = min(max(int(query.get("limit", "10")), 1), 100)
        wanted = query.get("payment_intent") or shapes.payment_name(query.get("charge", ""))
        with self.transaction() as db:
            rows = db.execute(f"SELECT * FROM {table} ORDER BY position DESC").fetchall()  # noqa: S608 - one of three names of ours
            shown = [
                row
                for row in map(SHAPES[table], rows)
                if _within(row, query) and wanted in ("pi_", row.get("payment_intent", row["id"]))
            ]
            ids = [row["id"] for row in shown]
            after = query.get("starting_after", "")
            if after and after not in ids:
                return shapes.unfit("resource_missing", f"No such object: {after}")
            start = ids.index(after) + 1 if after else 0
            page = [
                shapes.expanded(row, expand, lambda name: _shape(db, name))
                for row in shown[start : start + limit]
            ]
        more = start + limit < len(shown)
        return Answer(
            200, {"object": "list", "data": page, "has_more": more, "url": f"/v1/{table}"}
        )


def find(db: sqlite3.Connection, payment_intent: str) -> sqlite3.Row | None:
    """Return a payment's row; one of earlier days is entered when it is first named."""
    query = "SELECT * FROM payment_intents WHERE id = ?"
    row: sqlite3.Row | None = db.execute(query, (payment_intent,)).fetchone()
    earlier = earlier_of(payment_intent)
    if row is not None or earlier is None or not 0 <= earlier.refunded <= earlier.amount:
        return row
    entered = {"currency": earlier.currency, "method": earlier.method, "metadata": "{}"}
    _enter(db, payment_intent, amount=earlier.amount, status="succeeded", **entered)
    db.execute(
        "UPDATE payment_intents SET refunded = ? WHERE id = ?", (earlier.refunded, payment_intent)
    )
    return find(db, payment_intent)


def pay(db: sqlite3.Connection, **facts: Any) -> Shape:
    """Enter a payment and return it as it goes over the line."""
    name = f"pi_{secrets.token_hex(12)}"
    _enter(db, name, **facts)
    row = db.execute("SELECT * FROM payment_intents WHERE id = ?", (name,)).fetchone()
    told = _PAYMENT_EVENTS.get(row["status"], ())
    return events.noted(db, shapes.payment(row), *told)


def give_back(
    db: sqlite3.Connection, payment: sqlite3.Row, amount: int, metadata: str, pending: str
) -> Shape:
    """Enter a refund and return it as it goes over the line; `pending` says why it is, if it is."""
    name = f"re_{secrets.token_hex(12)}"
    status = "pending" if pending else "succeeded"
    db.execute(
        "INSERT INTO refunds"
        " (id, payment_intent, amount, currency, status, metadata, created, pending_reason)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
        (name, payment["id"], amount, payment["currency"], status, metadata, _now(), pending),
    )
    db.execute(
        "UPDATE payment_intents SET refunded = refunded + ? WHERE id = ?", (amount, payment["id"])
    )
    charge = _shape(db, shapes.charge_name(payment["id"]))
    if charge is not None and not pending:
        events.noted(db, charge, "charge.refunded")
    row = db.execute("SELECT * FROM refunds WHERE id = ?", (name,)).fetchone()
    return events.noted(db, shapes.refund(row), "refund.created")


def refund_end(db: sqlite3.Connection, name: str, status: str, reason: str) -> Shape | None:
    """Let a refund end, or fail after it had succeeded; what failed is back on the payment."""
    row = db.execute("SELECT * FROM refunds WHERE id = ?", (name,)).fetchone()
    if row is None or row["status"] in ("failed", "canceled"):
        return None
    db.execute(
        "UPDATE refunds SET status = ?, pending_reason = '', failure_reason = ? WHERE id = ?",
        (status, reason, name),
    )
    if status != "succeeded":
        query = "UPDATE payment_intents SET refunded = refunded - ? WHERE id = ?"
        db.execute(query, (row["amount"], row["payment_intent"]))
    late = ("refund.failed",) if status == "failed" else ()
    told = ("refund.updated", "charge.refund.updated", *late)
    row = db.execute("SELECT * FROM refunds WHERE id = ?", (name,)).fetchone()
    return events.noted(db, shapes.refund(row), *told)


def dispute_open(db: sqlite3.Connection, payment: sqlite3.Row, reason: str, status: str) -> Shape:
    """Let the bank dispute a payment, or ask about it."""
    name = f"dp_{secrets.token_hex(12)}"
    db.execute(
        "INSERT INTO disputes (id, payment_intent, amount, currency, reason, status, created)"
        " VALUES (?, ?, ?, ?, ?, ?, ?)",
        (name, payment["id"], payment["amount"], payment["currency"], reason, status, _now()),
    )
    row = db.execute("SELECT * FROM disputes WHERE id = ?", (name,)).fetchone()
    taken = () if status.startswith("warning_") else ("charge.dispute.funds_withdrawn",)
    return events.noted(db, shapes.dispute(row), "charge.dispute.created", *taken)


def dispute_close(db: sqlite3.Connection, name: str, status: str) -> Shape | None:
    """Let a dispute end."""
    db.execute("UPDATE disputes SET status = ? WHERE id = ?", (status, name))
    shape = _shape(db, name)
    back = ("charge.dispute.funds_reinstated",) if status == "won" else ()
    return shape and events.noted(db, shape, "charge.dispute.closed", *back)


def holds_refunds(db: sqlite3.Connection, payment_intent: str) -> bool:
    """Tell whether a dispute keeps a payment from being refunded; an inquiry does not."""
    rows = db.execute("SELECT * FROM disputes WHERE payment_intent = ?", (payment_intent,))
    return not all(shapes.dispute(row)["is_charge_refundable"] for row in rows)


def tampered(db: sqlite3.Connection, name: str, values: Mapping[str, str]) -> Shape | None:
    """Let an object read otherwise than it came to be; without values it was never there."""
    table = {"pi": "payment_intents", "re": "refunds", "dp": "disputes"}[name[:2]]
    if not values:
        db.execute(f"DELETE FROM {table} WHERE id = ?", (name,))  # noqa: S608 - names of ours
        return {}
    find(db, name)
    for column in values.keys() & {"amount", "currency", "created", "status"}:
        query = f"UPDATE {table} SET {column} = ? WHERE id = ?"  # noqa: S608 - names of ours
        db.execute(query, (values[column], name))
    return _shape(db, name)


def _shape(db: sqlite3.Connection, name: str) -> Shape | None:
    if name.startswith("ch_"):
        row = find(db, shapes.payment_name(name))
        query = "SELECT 1 FROM disputes WHERE payment_intent = ?"
        disputed = row is not None and db.execute(query, (row["id"],)).fetchone() is not None
        return None if row is None else shapes.charge(row, disputed=disputed)
    if name.startswith("pi_"):
        row = find(db, name)
        return None if row is None else shapes.payment(row)
    for table in ("refunds", "disputes"):
        row = db.execute(f"SELECT * FROM {table} WHERE id = ?", (name,)).fetchone()  # noqa: S608 - names of ours
        if row is not None:
            return SHAPES[table](row)
    return None


def _enter(
    db: sqlite3.Connection,
    name: str,
    *,
    amount: int,
    currency: str,
    status: str,
    method: str,
    metadata: str,
    customer: str = "",
    error: str = "",
) -> None:
    db.execute(
        "INSERT INTO payment_intents"
        " (id, amount, currency, status, payment_method, metadata, created, customer, error)"
        " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (name, amount, currency, status, method, metadata, _now(), customer, error),
    )
    if status == "succeeded" and fault_of(method) == DISPUTED:
        row = db.execute("SELECT * FROM payment_intents WHERE id = ?", (name,)).fetchone()
        dispute_open(db, row, "fraudulent", "needs_response")


def _within(row: Shape, query: Mapping[str, str]) -> bool:
    created: int = row["created"]
    since, until = query.get("created[gte]", "0"), query.get("created[lte]")
    return created >= int(since) and (until is None or created <= int(until))


def _replayed(row: sqlite3.Row) -> Answer:
    answer = Answer(row["status"], json.loads(row["answer"]))
    again = {"Idempotent-Replayed": "true"}
    # To ask again under this key would bring the same for a day.
    stop = {"Stripe-Should-Retry": "false"} if row["status"] >= 500 else {}
    return replace(answer, headers=again | stop)


def _now() -> int:
    return int(time.time())
