"""What the audit keeps of exports: who asked, what became of the file, and who fetched it."""

from __future__ import annotations

from typing import Any, Final
from uuid import UUID

from django.contrib.auth.models import User

from agent_core.errors import CountersignError
from exports.models import Export
from exports.states import ExportState
from reviews.audit.services import Actor, Subject, Trail, assistant_for, audit_write, person, task
from reviews.audit.words import Action

MOVED: Final = {
    ExportState.READY: Action.EXPORT_READY,
    ExportState.CANCELLED: Action.EXPORT_CANCELLED,
}
"""The moves that are recorded; the others are steps of its worker."""


def export_recorded(
    action: Action, export: Export, actor: Actor, *, rule: str = "", **after: Any
) -> None:
    """Write an entry about an export, in the caller's transaction."""
    audit_write(
        action,
        actor=actor,
        subject=Subject("export", export.pk, export.reference),
        rule=rule,
        after={"kind": export.kind, "format": export.format, **export.filters, **after},
        trail=Trail(export.run_id, export.conversation_id, export.call_id),
    )


def move_recorded(export_id: UUID, to: ExportState, actor: User | None) -> None:
    """Write an entry for a move that is recorded."""
    if to in MOVED:
        export = Export.objects.get(pk=export_id)
        by = person(actor) if actor is not None else task("exports.export_write")
        export_recorded(MOVED[to], export, by, state=to, rows=export.rows_done)


def asker_of(owner: User, run_id: UUID | None) -> Actor:
    """Name who asked: the assistant within a run, else the person."""
    if run_id is None:
        return person(owner)
    return assistant_for(owner.pk, owner.get_username())


def refusal_recorded(owner: User, refusal: CountersignError, trail: Trail, **wanted: Any) -> None:
    """Write why an export was refused; nothing was written that could be rolled back."""
    audit_write(
        Action.EXPORT_REFUSED,
        actor=asker_of(owner, trail.run_id),
        subject=Subject("export"),
        rule=refusal.code,
        after=wanted,
        trail=trail,
    )


def denial_recorded(actor: User, export_id: UUID) -> None:
    """Write a try on an export that is missing or out of reach: both take equally long."""
    audit_write(Action.EXPORT_DENIED, actor=person(actor), subject=Subject("export", export_id))
