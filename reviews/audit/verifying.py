"""Check the chain against the entries, a portion at a time: a million rows take no more memory."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from django.db import connection, transaction

from reviews.audit.chain import BEGINNING, ENTRY_SQL, FIELDS, Head, digest_of

PORTION: Final = 2000
YOUNG: Final = "interval '1 minute'"
"""How long an entry may wait for its link."""


@dataclass(slots=True)
class Report:
    """What one check saw: findings go to the caller as they come, figures stay here."""

    head: Head = field(default_factory=lambda: Head(0, BEGINNING))
    waiting: int = 0


def chain_verify(report: Report, expected: Head | None = None) -> Iterator[str]:
    """Yield one sentence per finding, in one view of the database; fill the report in."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ, READ ONLY")
        yield from _links(report, expected)
        yield from _end(report, expected)
        yield from _unlinked(report)
        yield from _gone()


def _rows(sql: str) -> Iterator[tuple[Any, ...]]:
    """Read through a cursor in the server, which ends with this transaction."""
    with connection.chunked_cursor() as cursor:
        cursor.execute(sql)
        while portion := cursor.fetchmany(PORTION):
            yield from portion


def _links(report: Report, expected: Head | None) -> Iterator[str]:
    position, digest = 0, BEGINNING
    for at, entry_id, previous, stored, *entry in _rows(
        f"SELECT l.position, l.entry_id, l.previous, l.digest, {ENTRY_SQL}"  # noqa: S608 — constants
        " FROM audit_link l LEFT JOIN audit_entry e ON e.id = l.entry_id ORDER BY l.position"
    ):
        if at != position + 1:
            yield _absent(position + 1, at - 1)
        elif previous != digest:
            yield (
                f"Link {at} does not follow link {position}: the chain was broken there, or rows"
                " were put in another order."
            )
        if entry[0] is None:
            yield f"Entry {entry_id} (link {at}) is missing: it was deleted after it was chained."
        elif digest_of(previous, tuple(entry)) != stored:
            yield (
                f"Entry {entry_id} (link {at}) is not what was signed: the entry or its link was"
                f" changed. It now reads: {_said(entry)}."
            )
        if expected is not None and at == expected.position and stored != expected.digest:
            yield f"Link {at} is not the one of the given head: the chain was written anew."
        position, digest = at, stored
    report.head = Head(position, digest)


def _absent(first: int, last: int) -> str:
    if first == last:
        return f"Link {first} is missing from the chain."
    return f"Links {first} to {last} are missing from the chain."


def _said(entry: list[Any]) -> str:
    row = dict(zip(FIELDS, entry, strict=True))
    return f"{row['at']} {row['actor_name'] or 'nobody named'}, {row['action']} {row['reference']}"


def _end(report: Report, expected: Head | None) -> Iterator[str]:
    if expected is not None and report.head.position < expected.position:
        yield (
            f"The chain ends at {report.head.position}, but the given head is at"
            f" {expected.position}: its end was cut off."
        )


def _unlinked(report: Report) -> Iterator[str]:
    young = f"e.at BETWEEN now() - {YOUNG} AND now() + {YOUNG}"
    for entry_id, waits, *entry in _rows(
        f"SELECT e.id, {young}, {ENTRY_SQL} FROM audit_entry e"  # noqa: S608 — constants
        " LEFT JOIN audit_link l ON l.entry_id = e.id WHERE l.entry_id IS NULL ORDER BY e.id"
    ):
        if waits:
            report.waiting += 1
        else:
            yield (
                f"Entry {entry_id} is in no chain: it was put in past the product, or nothing has"
                f" chained for a while. It reads: {_said(entry)}."
            )


def _gone() -> Iterator[str]:
    """Find what was deleted before it was chained, while its mark was left."""
    for (entry_id,) in _rows(
        "SELECT u.entry_id FROM audit_unlinked u LEFT JOIN audit_entry e ON e.id = u.entry_id"
        " WHERE e.id IS NULL ORDER BY u.entry_id"
    ):
        yield f"Entry {entry_id} is missing: it was deleted before it was chained."
