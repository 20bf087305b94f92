"""A conversation that grows: turns really played, and between them rows as played turns leave them.

A thousand turns cannot be played in a test. So one real turn is copied with new ids: messages, run,
calls, model calls, events, stop record, ticket and the thread's checkpoints.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Any, Final, TypeVar
from uuid import UUID, uuid4

from django.db import connection, models
from psycopg import sql

from agent_core.runs.models import Call, Conversation, Event, Message, ModelCall, Run, StopRecord
from agent_core.runs.states import Role
from tickets.models import Ticket

CHECKPOINTS: Final = ("checkpoints", "checkpoint_blobs", "checkpoint_writes")
BATCH: Final = 500
Row = TypeVar("Row", bound=models.Model)


def turns_copied(conversation: Conversation, *, upto: int) -> None:
    """Let the conversation have so many turns, by copies of its last one.

    Raises:
        ValueError: it has no turn yet, or its last one did not end with a ticket.
    """
    sample = conversation.runs.order_by("created_at").last()
    if sample is None or sample.stop.rule != "completed":
        raise ValueError("There is no played turn to copy.")
    missing = upto - conversation.messages.filter(role=Role.STAFF).count()
    answer = sample.answers.get(role=Role.ASSISTANT)
    rows: list[list[models.Model]] = []
    place = answer.position
    for _turn in range(missing):
        asked = _again(sample.message, position=place + 1, client_key=None)
        run = _again(sample, message=asked)
        said = _again(answer, position=place + 2, run=run)
        rows.append([asked, run, said, _again(sample.stop, run=run), *_of_run(sample, run)])
        place += 2
    _stored(row for turn in rows for row in turn)
    threads_copied(sample.pk, [turn[1].pk for turn in rows])
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


def _of_run(sample: Run, run: Run) -> list[models.Model]:
    """Copy what a run has several of."""
    made: list[models.Model] = []
    for call in sample.calls.all():
        again = _again(call, run=run)
        made.append(again)
        for ticket in Ticket.objects.filter(call_id=call.pk):
            mark = uuid4().hex
            made.append(
                _again(ticket, call_id=again.pk, reference=f"TCK-{mark[:12]}", identity=mark)
            )
    made += [_again(each, run=run) for each in sample.model_calls.all()]
    made += [_again(each, run=run) for each in sample.events.all()]
    return made


def _again(row: Row, **changes: Any) -> Row:
    made = copy.copy(row)
    made._state = copy.copy(row._state)
    made._state.adding = True
    made._state.fields_cache = dict(row._state.fields_cache)
    made.pk = uuid4() if isinstance(row.pk, UUID) else None
    for name, value in changes.items():
        setattr(made, name, value)
    return made


def _stored(rows: Iterable[models.Model]) -> None:
    """Store rows kind by kind, those that others refer to first."""
    kinds = (Message, Run, Message, StopRecord, Call, ModelCall, Event, Ticket)
    waiting = list(rows)
    for place, kind in enumerate(kinds):
        # An answer refers to its run, and a run to its question.
        mine = [
            row
            for row in waiting
            if isinstance(row, kind)
            and (not isinstance(row, Message) or (row.role == Role.STAFF) == (place == 0))
        ]
        kind.objects.bulk_create(mine, batch_size=BATCH)  # type: ignore[attr-defined]


def threads_copied(source: UUID, to: Sequence[UUID]) -> None:
    """Give the threads of other runs the same checkpoints as this one has."""
    with connection.cursor() as cursor:
        for table in CHECKPOINTS:
            cursor.execute(
                "SELECT column_name FROM information_schema.columns"
                " WHERE table_name = %s AND column_name <> 'thread_id'",
                [table],
            )
            others = [sql.Identifier(row[0]) for row in cursor.fetchall()]
            copied = sql.SQL(
                "INSERT INTO {table} (thread_id, {columns})"
                " SELECT made.id, {columns} FROM {table} CROSS JOIN unnest(%s::text[]) AS made (id)"
                " WHERE thread_id = %s"
            ).format(table=sql.Identifier(table), columns=sql.SQL(", ").join(others))
            cursor.execute(
                copied.as_string(),  # type: ignore[no-untyped-call, unused-ignore]
                [[str(each) for each in to], str(source)],
            )


def thread_bytes(run_id: UUID) -> int:
    """Return how many bytes the checkpoints of a run's thread take in their rows."""
    total = 0
    with connection.cursor() as cursor:
        for table in CHECKPOINTS:
            query = sql.SQL(
                "SELECT coalesce(sum(pg_column_size(kept.*)), 0) FROM {} kept WHERE thread_id = %s"
            ).format(sql.Identifier(table))
            cursor.execute(query.as_string(), [str(run_id)])
            total += int(cursor.fetchone()[0])
    return total
