"""Change an export by conditional update and tell its conversation, in one transaction.

Every change of state and every step of the progress bar goes through here.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from functools import partial
from typing import Any, Final
from uuid import UUID

from celery import current_app
from django.db import transaction
from django.db.models import Q

from agent_core.runs.models import Conversation
from agent_core.runs.services import event_post
from exports.models import Export
from exports.states import ExportState, states_before

log = logging.getLogger("exports")

WRITE_TASK: Final = "exports.export_write"


def export_move(
    export_id: UUID,
    to: ExportState,
    *,
    where: Q | None = None,
    sources: Collection[ExportState] | None = None,
    **fields: Any,
) -> bool:
    """Move the export if it still stands where it can; False when somebody else was first."""
    allowed = set(states_before(to))
    rows = Export.objects.filter(
        where or Q(), pk=export_id, state__in=allowed & set(sources or allowed)
    )
    with transaction.atomic():
        moved = rows.update(state=to, **fields)
        if moved:
            export_told(export_id)
    if moved:
        log.info("export.moved", extra={"export": str(export_id), "state": str(to)})
    return bool(moved)


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
            "state": export.state,
            "done": export.rows_done,
            "total": export.rows_total,
        },
    )


def export_enqueue(export_id: UUID) -> None:
    """Send the export to its queue once the transaction has been committed."""
    # A broker that is away loses nothing: the sweep sends what stays queued. `robust` logs it.
    transaction.on_commit(partial(_send, str(export_id)), robust=True)


def _send(export_id: str) -> None:
    current_app.send_task(WRITE_TASK, args=[export_id])
