"""The chain over what was written: each link signs its entry and the link before.

Entries carry no hash, so that no writer waits for another. One task at a time gives every committed
entry the next position, in the order in which it finds them; numbers of entries are drawn before a
commit and may come late, positions are not. Whoever has the database but not the key can break the
chain, not mend it.
"""

import hashlib
import hmac
import json
import logging
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any, Final

from django.conf import settings
from django.db import connection, transaction

from agent_core import faults
from reviews.audit.models import Link, Unlinked

log = logging.getLogger("audit")

BEGINNING: Final = "0" * 64
"""What the first link has before it."""

PORTION: Final = 500
"""Entries of one transaction."""

PORTIONS_A_TICK: Final = 40
"""More than anybody writes between two ticks; what is left waits for the next."""

_LOCK: Final = (0x436F, 0x4175)

FIELDS: Final = (
    "id",
    "at",
    "action",
    "actor_kind",
    "actor_id",
    "actor_name",
    "subject_kind",
    "subject_id",
    "reference",
    "rule",
    "before",
    "after",
    "run_id",
    "conversation_id",
    "call_id",
    "origin",
    "address",
)
"""Every column of an entry. One that is empty signs nothing, so a later column breaks no link."""

_RENDERED: Final[Mapping[str, str]] = {
    "id": "e.id",
    "actor_id": "e.actor_id",
    "at": "to_char(e.at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS.US\"Z\"')",
    "address": "host(e.address)",
}
ENTRY_SQL: Final = ", ".join(_RENDERED.get(name, f"e.{name}::text") for name in FIELDS)
"""The columns as the database writes them, so that no session's settings change a byte."""


@dataclass(frozen=True, slots=True)
class Head:
    """The last link: whoever keeps it elsewhere can tell when the end was cut off."""

    position: int
    digest: str
    at: datetime | None = None

    def __str__(self) -> str:
        return f"{self.position}:{self.digest}"


def canonical(row: tuple[Any, ...]) -> bytes:
    """Write an entry, as selected by `ENTRY_SQL`, in the one form that is signed."""
    fields = {
        name: value for name, value in zip(FIELDS, row, strict=True) if value not in (None, "")
    }
    for name in ("before", "after"):
        fields[name] = json.loads(fields.get(name, "{}"))
    text = json.dumps(fields, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return text.encode()


def digest_of(previous: str, row: tuple[Any, ...]) -> str:
    """Return the signature of an entry that follows this link."""
    key = settings.AUDIT_KEY.encode()
    return hmac.new(key, previous.encode() + canonical(row), hashlib.sha256).hexdigest()


def chain_head() -> Head:
    """Return the last link; position 0 when nothing is chained."""
    last = Link.objects.order_by("-position").first()
    return Head(last.position, last.digest, last.at) if last else Head(0, BEGINNING)


def chain_extend() -> int:
    """Give every committed entry its link and export the head; return how many got one.

    A second one at the same time does nothing.
    """
    made = 0
    for _portion in range(PORTIONS_A_TICK):
        with faults.commit("audit.chain", transaction.atomic()):
            linked = _portion_link() if _alone() else 0
        made += linked
        if linked < PORTION:
            break
    if made:
        _head_export(chain_head())
    return made


def _alone() -> bool:
    """Be the only one until the transaction ends; a session's lock would be lost in a pooler."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_xact_lock(%s, %s)", _LOCK)
        return bool(cursor.fetchone()[0])


def _portion_link() -> int:
    head = chain_head()
    position, previous = head.position, head.digest
    links = []
    for row in _rows_waiting():
        position, before = position + 1, previous
        previous = digest_of(before, row)
        links.append(Link(position=position, entry_id=row[0], previous=before, digest=previous))
    Link.objects.bulk_create(links)
    Unlinked.objects.filter(pk__in=[link.entry_id for link in links]).delete()
    return len(links)


def _rows_waiting() -> list[tuple[Any, ...]]:
    with connection.cursor() as cursor:
        cursor.execute(
            f"SELECT {ENTRY_SQL} FROM audit_unlinked u JOIN audit_entry e ON e.id = u.entry_id"  # noqa: S608 — constants
            " ORDER BY e.id LIMIT %s",
            [PORTION],
        )
        rows: list[tuple[Any, ...]] = cursor.fetchall()
        return rows


def _head_export(head: Head) -> None:
    """Put the head where the database's owner cannot reach it: the log, and a file if one is named.

    A file that cannot be written keeps nobody from chaining; the log has the head, too.
    """
    log.info("audit.head", extra={"position": head.position, "digest": head.digest})
    if not settings.AUDIT_HEAD_FILE:
        return
    path = Path(settings.AUDIT_HEAD_FILE)
    fresh = path.with_name(f"{path.name}.{os.getpid()}.new")
    try:
        fresh.write_text(f"{head} {head.at and head.at.isoformat()}\n", "ascii")
        fresh.replace(path)
    except OSError:
        log.exception("audit.head_unwritten", extra={"path": str(path)})
