"""A conversation that grows: turns really played, and between them rows as played turns leave them.

A thousand turns cannot be played in a test. So one real turn is copied with new ids: messages, run,
calls, model calls, events, stop record, ticket and the thread's checkpoints.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from dataclasses import dataclass
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
    """Let the conversation have so many turns, by copies of its last one."""
    sample = _sample(conversation)
    said = conversation.messages.order_by("position").last()
    missing = upto - conversation.messages.filter(role=Role.STAFF).count()
    turns = [
        _turn(sample, conversation, (said.position if said else 0) + 1 + 2 * turn)
        for turn in range(missing)
    ]
    _stored(sample, turns)


def conversations_copied(conversation: Conversation, *, count: int, turns: int) -> list[UUID]:
    """Make so many conversations of so many turns, by copies of this one's last turn."""
    sample = _sample(conversation)
    made = [_again(conversation) for _copy in range(count)]
    Conversation.objects.bulk_create(made, batch_size=BATCH)
    _stored(sample, [_turn(sample, each, 1 + 2 * turn) for each in made for turn in range(turns)])
    return [each.pk for each in made]


@dataclass(frozen=True, slots=True)
class _Sample:
    """The turn that is copied, read once."""

    run: Run
    answer: Message
    stop: StopRecord
    calls: Sequence[Call]
    model_calls: Sequence[ModelCall]
    events: Sequence[Event]
    tickets: Sequence[Ticket]


def _sample(conversation: Conversation) -> _Sample:
    """Return the turn to copy.

    Raises:
        ValueError: there is none yet, or the last one did not end well.
    """
    run = conversation.runs.order_by("created_at").last()
    if run is None or run.stop.rule != "completed":
        raise ValueError("There is no played turn to copy.")
    calls = list(run.calls.all())
    return _Sample(
        run=run,
        answer=run.answers.get(role=Role.ASSISTANT),
        stop=run.stop,
        calls=calls,
        model_calls=list(run.model_calls.all()),
        events=list(run.events.all()),
        tickets=list(Ticket.objects.filter(call_id__in=[call.pk for call in calls])),
    )


def _turn(sample: _Sample, conversation: Conversation, place: int) -> list[models.Model]:
    """Return the rows of one more turn whose question stands at this position."""
    asked = _again(sample.run.message, conversation=conversation, position=place, client_key=None)
    run = _again(sample.run, conversation=conversation, message=asked)
    said = _again(sample.answer, conversation=conversation, position=place + 1, run=run)
    made = [asked, run, said, _again(sample.stop, run=run)]
    for call in sample.calls:
        again = _again(call, run=run)
        made.append(again)
        for ticket in (each for each in sample.tickets if each.call_id == call.pk):
            mark = uuid4().hex
            made.append(
                _again(ticket, call_id=again.pk, reference=f"TCK-{mark[:12]}", identity=mark)
            )
    made += [_again(each, run=run) for each in sample.model_calls]
    made += [_again(each, run=run, conversation=conversation) for each in sample.events]
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


def _stored(sample: _Sample, turns: Sequence[Sequence[models.Model]]) -> None:
    """Store turns kind by kind, those rows first that others refer to; then their threads."""
    rows = [row for turn in turns for row in turn]
    messages = [row for row in rows if isinstance(row, Message)]
    runs = [row for row in rows if isinstance(row, Run)]
    asked = [message for message in messages if message.role == Role.STAFF]
    Message.objects.bulk_create(asked, batch_size=BATCH)
    Run.objects.bulk_create(runs, batch_size=BATCH)
    answers = [message for message in messages if message.role != Role.STAFF]
    Message.objects.bulk_create(answers, batch_size=BATCH)
    kinds: tuple[type[models.Model], ...] = (StopRecord, Call, ModelCall, Event, Ticket)
    for kind in kinds:
        mine = [row for row in rows if isinstance(row, kind)]
        kind._default_manager.bulk_create(mine, batch_size=BATCH)
    threads_copied(sample.run.pk, [run.pk for run in runs])
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")


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
