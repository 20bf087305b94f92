"""Change an export by conditional update and tell its conversation, in one transaction.

Every change of state and every step of the progress bar goes through here.
"""

from __future__ import annotations

import logging
from functools import partial
from typing import Any, Final
from uuid import UUID

from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import Q

from agent_core import faults
from agent_core.runs.models import Conversation
from agent_core.runs.queue import task_send
from agent_core.runs.services import event_post
from exports.models import Export
from exports.recording import move_recorded
from exports.states import ExportState, states_before

log = logging.getLogger("exports")

WRITE_TASK: Final = "exports.export_write"


def export_move(
    export_id: UUID,
    to: ExportState,
    *,
    where: Q | None = None,
    actor: User | None = None,
    **fields: Any,
) -> bool:
    """Move the export if it still stands where it can; False when somebody else was first.

    `actor` is the person who moves it; without one it is the worker.
    """
    rows = Export.objects.filter(where or Q(), pk=export_id, state__in=states_before(to))
    with faults.commit("export.move", transaction.atomic()):
        asked_in = Export.objects.filter(pk=export_id).values_list("conversation_id", flat=True)
        conversation_first(asked_in.first())
        moved = rows.update(state=to, **fields)
        if moved:
            export_told(export_id)
            move_recorded(export_id, to, actor)
    if moved:
        log.info("export.moved", extra={"export": str(export_id), "state": str(to)})
    return bool(moved)


def conversation_first(conversation_id: UUID | None) -> None:
    """Lock the conversation, if there is one, before any other row.

    Its events are numbered under this lock. Everybody takes it first, so that a worker which
    holds an export, or a run, never waits for somebody who waits for that row.
    """
    if conversation_id is not None:
        Conversation.objects.select_for_update(of=("self",)).filter(pk=conversation_id).first()


def export_told(export_id: UUID) -> None:
    """Write into the conversation how the export stands; inside the caller's transaction."""
    export = Export.objects.get(pk=export_id)
    conversation = export.conversation_id
    if conversation is None or not Conversation.objects.filter(pk=conversation).exists():
        return
    event_post(
        conversation_id=conversation,
        kind="export",
        payload={
            "export": str(export.pk),
            "state": str(export.state),
            "done": export.rows_done,
            "total": export.rows_total,
        },
    )


def export_enqueue(export_id: UUID) -> None:
    """Send the export to its queue once the transaction has been committed."""
    transaction.on_commit(partial(_send, str(export_id)))


def _send(export_id: str) -> None:
    with faults.around("export.send"):
        sent = task_send(WRITE_TASK, export_id)
    if not sent:
        # Nothing is lost: the sweep sends again what stays in line.
        log.warning("export.not_enqueued", extra={"export": export_id})
