"""The one way in which a run's state moves: a conditional update along the table of moves."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar
from uuid import UUID

from django.db import connection
from django.db.models import Model, QuerySet

from agent_core.runs.models import Conversation, Message, Run
from agent_core.runs.states import RunState, run_moves_to

RowT = TypeVar("RowT", bound=Model)


def run_move(rows: QuerySet[Run], to: RunState, **values: Any) -> bool:
    """Move the selected run if the table lets it; False when another was first."""
    return bool(rows.filter(state__in=run_moves_to(to)).update(state=to, **values))


def _columns(table: str, model: type[Model]) -> list[str]:
    return [f"{table}.{field.column}" for field in model._meta.concrete_fields]


_RUN: Final = _columns("run", Run)
_MESSAGE: Final = _columns("message", Message)
_CONVERSATION: Final = _columns("conversation", Conversation)

_TAKE: Final = " ".join(
    [
        "UPDATE runs_run run SET state = %s, attempt = run.attempt + 1,",
        "lease_until = statement_timestamp() + make_interval(secs => %s),",
        "claimed_at = %s, worker = %s",
        "FROM runs_message message, runs_conversation conversation",
        "WHERE run.id = %s AND run.quarantined = %s AND run.state = ANY(%s)",
        "AND message.id = run.message_id AND conversation.id = run.conversation_id",
        "RETURNING",
        ", ".join([*_RUN, *_MESSAGE, *_CONVERSATION]),
    ]
)


def run_take(
    run_id: UUID, *, quarantined: bool, lease: timedelta, claimed_at: datetime, worker: str
) -> Run | None:
    """Move a run to the worker that claims it and return it with its message and conversation.

    One statement; the conversation is locked before it begins, so that it sees the message as it
    was edited last. None when another was first.
    """
    sources = [str(state) for state in run_moves_to(RunState.RUNNING)]
    with connection.cursor() as cursor:
        values = (RunState.RUNNING, lease.total_seconds(), claimed_at, worker)
        cursor.execute(_TAKE, (*values, run_id, quarantined, sources))
        row = cursor.fetchone()
    if row is None:
        return None
    run = _from(Run, row[: len(_RUN)])
    run.message = _from(Message, row[len(_RUN) : -len(_CONVERSATION)])
    run.conversation = _from(Conversation, row[-len(_CONVERSATION) :])
    return run


def _from(model: type[RowT], values: Sequence[Any]) -> RowT:
    return model.from_db(
        connection.alias, [field.attname for field in model._meta.concrete_fields], values
    )
