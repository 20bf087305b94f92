"""How a run comes to be: for a new message, or going on where an earlier one ended."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, Final
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agent_core import faults
from agent_core.runs.claims import run_next
from agent_core.runs.errors import NotFound, RunRefused
from agent_core.runs.journal import conversation_lock, event_of_run, events_write
from agent_core.runs.models import Conversation, Event, Message, Run
from agent_core.runs.queue import run_send_after_commit
from agent_core.runs.recording import pushed_recorded
from agent_core.runs.settling import unknown_settle
from agent_core.runs.states import RUN_WORKING, RunState
from reviews.audit.words import Action

logger = logging.getLogger(__name__)

OPERATE: Final = "runs.operate"
"""The right to send work on its way again."""

RETRIED: Final = frozenset({RunState.FAILED, RunState.CANCELLED})
"""Ends after which the requester may try again."""

REQUEUED: Final = frozenset({RunState.PARKED})
"""Ends after which only an operator lets the work go on."""


_STATES: Final[Mapping[str, Any]] = {
    "before": [str(each) for each in (*RUN_WORKING, RunState.DECIDED, RunState.PENDING)],
    "pending": str(RunState.PENDING),
    "queued": str(RunState.QUEUED),
}
"""What a new run of the same conversation waits for, and where it stands if so, and if not."""

_START: Final = """
WITH line AS (
    SELECT EXISTS (
        SELECT 1 FROM runs_run
        WHERE conversation_id = %(conversation_id)s AND state = ANY(%(before)s)
    ) AS busy
)
INSERT INTO runs_run (
    id, conversation_id, requester_id, message_id, continues_id, quarantined, language, stop_mode,
    model, created_at, state, enqueued_at,
    attempt, strikes, worked_seconds, failure_reference
) SELECT
    %(id)s, %(conversation_id)s, %(requester_id)s, %(message_id)s, %(continues_id)s,
    %(quarantined)s, %(language)s, %(stop_mode)s, %(model)s, %(created_at)s,
    CASE WHEN busy THEN %(pending)s ELSE %(queued)s END,
    CASE WHEN busy THEN NULL ELSE statement_timestamp() END,
    0, 0, 0, ''
FROM line RETURNING state, enqueued_at
"""
"""Stores a run behind those before it, or as one that is sent to its queue now."""


_CHECKING: Final = gettext_lazy(
    "A part of this request is still being checked. A message here tells how it ended; until then "
    "nothing is tried again, so that nothing is done twice."
)


def run_start(
    conversation: Conversation,
    sender: User,
    message: Message,
    *,
    continues: Run | None,
    stop_mode: str = "",
    quarantined: bool = False,
    after: Event | None = None,
) -> Run:
    """Store a run in the caller's transaction, and bring it on if its conversation is free.

    The caller holds the conversation's lock. `after` is what is to be told before the run.
    """
    run = Run(
        quarantined=quarantined,
        conversation=conversation,
        requester=sender,
        message=message,
        continues=continues,
        language=conversation.language,
        stop_mode=str(stop_mode or conversation.stop_mode or settings.STOP_MODE),
        model=settings.CHAT_MODEL,
        created_at=timezone.now(),
    )
    with connection.cursor() as cursor:
        cursor.execute(_START, {**vars(run), **_STATES})
        run.state, run.enqueued_at = cursor.fetchone()
    run._state.adding = False
    told = event_of_run(run)
    events_write([after, told] if after else [told])
    if run.state == RunState.QUEUED:
        run_send_after_commit(run)
    else:
        run_next(conversation.pk)
        run.refresh_from_db()
    return run


def run_of_key(conversation_id: UUID, client_key: UUID) -> Run | None:
    """Return the run that a message with this key of its sender's page has begun, if it has."""
    with connection.cursor() as cursor:
        # Of nearly every message it finds nothing.
        cursor.execute(
            "SELECT run.id FROM runs_run AS run JOIN runs_message AS said ON said.id = message_id"
            " WHERE said.conversation_id = %s AND client_key = %s AND continues_id IS NULL",
            [conversation_id, client_key],
        )
        begun = cursor.fetchone()
    return Run.objects.get(pk=begun[0]) if begun else None


def run_retry(*, run: Run, actor: User) -> Run:
    """Start a new run that continues a failed or cancelled one: same question, no effect twice.

    A second press gives the run that the first one started.

    Raises:
        NotFound: the run is somebody else's.
        RunRefused: the run did not fail, or a part of it is still being checked.
    """
    if run.requester_id != actor.pk:
        raise NotFound
    said = _("Only a request that failed or was stopped can be tried again.")
    return _run_again(run, RETRIED, said)


def run_requeue(*, run: Run, actor: User) -> Run:
    """Start a new run that continues one that was set aside; a second press gives the same run.

    It stays its requester's: the operator's rights play no part in it.

    Raises:
        NotFound: the actor is no operator.
        RunRefused: the run was not set aside, or a part of it is still being checked.
    """
    if not (actor.is_active and actor.has_perm(OPERATE)):
        raise NotFound
    said = _("Only a request that was set aside can be requeued.")
    again = _run_again(run, REQUEUED, said, operator=actor)
    logger.warning("run.requeued", extra={"run": str(run.pk), "actor": actor.pk})
    return again


def _run_again(
    run: Run, states: frozenset[RunState], otherwise: str, *, operator: User | None = None
) -> Run:
    """Start the run that continues this one if it ended in one of the states, or return it.

    Raises:
        RunRefused: it did not (`otherwise`), or a part of it is still being checked.
    """
    checking = unknown_settle(run)
    with faults.commit("run.retry", transaction.atomic()):
        conversation = conversation_lock(run.conversation_id)
        current = Run.objects.select_related("message", "requester").get(pk=run.pk)
        existing = Run.objects.filter(continues=current).first()
        if existing is not None:
            return existing
        if checking:
            raise RunRefused(str(_CHECKING))
        if current.message.removed_at is not None or current.state not in states:
            raise RunRefused(otherwise)
        # What has taken several processes down begins where it takes nobody else along.
        suspect = current.state == RunState.PARKED
        if operator is not None:
            pushed_recorded(Action.RUN_REQUEUED, current, operator)
        return run_start(
            conversation,
            current.requester,
            current.message,
            continues=current,
            quarantined=suspect,
        )
