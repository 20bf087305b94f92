"""An event for each change, entered in the books' transaction with it, and how it is delivered.

Nothing is entered while no hook is set. An event goes out until it is answered with 2xx, after
pauses that grow, and is given up after `MOST_TRIES`. What a test plays with, the order and
repeats, is switched in `/control/hook`.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
import sqlite3
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Final

Shape = dict[str, Any]
Transaction = Callable[[], AbstractContextManager[sqlite3.Connection]]

SCHEMA: Final = """
CREATE TABLE IF NOT EXISTS hook (
    url TEXT NOT NULL, secret TEXT NOT NULL, held INTEGER NOT NULL DEFAULT 0,
    backwards INTEGER NOT NULL DEFAULT 0, copies INTEGER NOT NULL DEFAULT 1);
CREATE TABLE IF NOT EXISTS events (
    position INTEGER PRIMARY KEY AUTOINCREMENT, id TEXT UNIQUE NOT NULL, body TEXT NOT NULL,
    tries INTEGER NOT NULL DEFAULT 0, next_at REAL NOT NULL DEFAULT 0,
    status INTEGER NOT NULL DEFAULT 0, done INTEGER NOT NULL DEFAULT 0);
"""
MOST_TRIES: Final = 12
LONGEST_SECONDS: Final = 60.0
PATIENCE_SECONDS: Final = 10.0
_IDLE_SECONDS: Final = 5.0


@dataclass(frozen=True, slots=True)
class Due:
    """An event that is to go out now, where to, and how often in one go."""

    id: str
    body: str
    url: str
    secret: str
    copies: int


def hook_set(db: sqlite3.Connection, url: str, secret: str) -> None:
    """Send what happens from now on to this address; an empty one ends it."""
    db.execute("DELETE FROM hook")
    if url:
        db.execute("INSERT INTO hook (url, secret) VALUES (?, ?)", (url, secret))


def hook_play(db: sqlite3.Connection, form: Mapping[str, str]) -> None:
    """Hold events back, let them go, the last first, or each several times."""
    for name in ("held", "backwards", "copies"):
        if name in form:
            db.execute(f"UPDATE hook SET {name} = ?", (int(form[name]),))  # noqa: S608 - names of ours


def noted(db: sqlite3.Connection, shape: Shape, *kinds: str) -> Shape:
    """Enter an event of each kind about an object, and return the object."""
    if db.execute("SELECT 1 FROM hook").fetchone() is None:
        return shape
    for kind in kinds:
        event = {
            "id": f"evt_{secrets.token_hex(12)}",
            "object": "event",
            "type": kind,
            "created": int(time.time()),
            "livemode": False,
            "pending_webhooks": 1,
            "data": {"object": shape},
        }
        db.execute("INSERT INTO events (id, body) VALUES (?, ?)", (event["id"], json.dumps(event)))
    return shape


def events_read(db: sqlite3.Connection) -> list[Shape]:
    """Return every event with how its delivery stands."""
    return [
        json.loads(row["body"])
        | {"tries": row["tries"], "answered": row["status"], "done": bool(row["done"])}
        for row in db.execute("SELECT * FROM events ORDER BY position")
    ]


def signature(secret: str, body: str, at: int) -> str:
    """Sign a body as Stripe does: https://docs.stripe.com/webhooks#verify-manually."""
    digest = hmac.new(secret.encode(), f"{at}.{body}".encode(), hashlib.sha256).hexdigest()
    return f"t={at},v1={digest}"


class Deliveries(threading.Thread):
    """Sends what is due, one after the other, for as long as the sandbox runs."""

    def __init__(self, transaction: Transaction) -> None:
        super().__init__(name="deliveries", daemon=True)
        self._transaction = transaction
        self._woken = threading.Event()
        self._over = False

    def wake(self) -> None:
        """Look for what is due now."""
        self._woken.set()

    def end(self) -> None:
        """Send nothing any more."""
        self._over = True
        self.wake()

    def run(self) -> None:
        """Send, and sleep until something happens or is due again."""
        while not self._over:
            self._woken.clear()
            due, pause = self._due()
            if due is None:
                self._woken.wait(pause)
            else:
                self._note(due, max(_posted(due) for _copy in range(due.copies)))

    def _due(self) -> tuple[Due | None, float]:
        now = time.time()
        with self._transaction() as db:
            hook = db.execute("SELECT * FROM hook WHERE NOT held").fetchone()
            if hook is None:
                return None, _IDLE_SECONDS
            order = "DESC" if hook["backwards"] else "ASC"
            query = (
                f"SELECT * FROM events WHERE NOT done AND next_at <= ? ORDER BY position {order}"  # noqa: S608 - one of two words of ours
            )
            row = db.execute(query, (now,)).fetchone()
            if row is None:
                query = "SELECT min(next_at) FROM events WHERE NOT done"
                first = db.execute(query).fetchone()[0]
                return None, _IDLE_SECONDS if first is None else max(first - now, 0.01)
        where = (hook["url"], hook["secret"], hook["copies"])
        return Due(row["id"], row["body"], *where), 0

    def _note(self, due: Due, status: int) -> None:
        with self._transaction() as db:
            db.execute(
                "UPDATE events SET tries = tries + 1, status = ? WHERE id = ?", (status, due.id)
            )
            row = db.execute("SELECT tries FROM events WHERE id = ?", (due.id,)).fetchone()
            if row is None:
                return  # The books were emptied meanwhile.
            done = 200 <= status < 300 or row["tries"] >= MOST_TRIES
            seconds = min(0.25 * 2 ** row["tries"], LONGEST_SECONDS)
            query = "UPDATE events SET done = ?, next_at = ? WHERE id = ?"
            db.execute(query, (done, time.time() + seconds, due.id))


def _posted(due: Due) -> int:
    """Send an event once; return what the answer's status was, 0 for none."""
    headers = {
        "Content-Type": "application/json; charset=utf-8",
        "Stripe-Signature": signature(due.secret, due.body, int(time.time())),
        "User-Agent": "Countersign-Sandbox/1.0",
    }
    request = urllib.request.Request(due.url, due.body.encode(), headers, method="POST")  # noqa: S310 - the address of the start or of a test
    # Neither proxies of the environment nor redirects: an event is for this address alone.
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}), _Stay())
    try:
        with opener.open(request, timeout=PATIENCE_SECONDS) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        return error.code
    except (OSError, ValueError):
        return 0


class _Stay(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_args: Any, **_more: Any) -> None:
        """Follow nothing."""
