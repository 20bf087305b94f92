"""Ask for an export, cancel one. `services_write` is the worker's part, `services_sweep` beat's.

Called by the tool, the views and the admin; the row is committed first, then the worker is told.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable
from datetime import date
from typing import Final
from uuid import UUID

from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from agent_core import faults
from exports.cells import Format
from exports.errors import (
    ExportEmpty,
    ExportFinished,
    ExportInvalid,
    ExportNotAllowed,
    ExportNotFound,
    ExportTooLarge,
)
from exports.formats import FORMATS
from exports.kinds import KINDS, Kind
from exports.models import Export, ExportCall
from exports.moves import conversation_first, export_enqueue, export_move, export_told
from exports.policies import EXPORT_RIGHT
from exports.recording import asker_of, export_recorded, refusal_recorded
from exports.states import EXPORT_ACTIVE, EXPORT_TERMINAL, ExportState
from payments.currencies import currency_code
from payments.periods import Period, period_parse
from payments.selectors import scope_of
from reviews.audit.services import Trail
from reviews.audit.words import Action

CANCEL_RIGHT: Final = "exports.cancel_export"
_SIGNS: Final = "23456789ABCDEFGHJKMNPQRSTVWXYZ"
_TRIES: Final = 5


def _no_fence() -> None:
    """Stand in where no run asks."""


def export_request(
    *,
    owner: User,
    kind: str,
    period: str,
    currency: str = "",
    format: str = "csv",
    language: str = "en",
    conversation_id: UUID | None = None,
    run_id: UUID | None = None,
    call_id: UUID | None = None,
    fence: Callable[[], object] = _no_fence,
    today: date | None = None,
) -> tuple[Export, bool]:
    """Start an export, or return the one that already does the same, and whether it did.

    The same call again returns what it returned first.

    Raises:
        ExportNotAllowed: the owner may not export.
        PeriodUnclear, ExportInvalid, ExportTooLarge: it has to be asked differently.
        ExportEmpty: there is nothing in that period.
    """
    if (replay := _replay(call_id)) is not None:
        return replay
    try:
        export = _wanted(
            owner=owner, kind=kind, format=format, period=period, currency=currency, today=today
        )
    except (ExportNotAllowed, ExportTooLarge) as refusal:
        trail = Trail(run_id, conversation_id, call_id)
        refusal_recorded(owner, refusal, trail, kind=kind, format=format, period=period)
        raise
    export.language = language
    export.conversation_id, export.run_id, export.call_id = conversation_id, run_id, call_id
    return _started_or_attached(export, fence)


def _wanted(
    *, owner: User, kind: str, format: str, period: str, currency: str, today: date | None
) -> Export:
    """Read what is asked for, and refuse what cannot be made."""
    _allowed(owner)
    what, how, money = kind_named(kind), format_named(format), currency_named(currency)
    when = period_parse(period, today or timezone.localdate())
    return Export(
        owner=owner,
        kind=what.name,
        format=how.name,
        filters=filters_of(when, money),
        rows_total=_counted(owner, what, how, when, money),
    )


def _allowed(owner: User) -> None:
    if not owner.is_active or not owner.has_perm(EXPORT_RIGHT):
        raise ExportNotAllowed(_("Your role may not export. Nothing was exported."))


def export_cancel(*, export_id: UUID, actor: User) -> Export:
    """Cancel an export that is not finished; cancelling it twice changes nothing.

    Raises:
        ExportNotFound: it is missing, or not the actor's to cancel.
        ExportFinished: it had already ended otherwise.
    """
    export = Export.objects.filter(pk=export_id).first()
    if export is None or not (export.owner_id == actor.pk or actor.has_perm(CANCEL_RIGHT)):
        raise ExportNotFound
    moved = export_move(export_id, ExportState.CANCELLED, actor=actor, ended_at=timezone.now())
    export.refresh_from_db()
    if not moved and export.state != ExportState.CANCELLED:
        raise ExportFinished(_("This export had already ended, so it was not cancelled."))
    return export


def kind_named(text: str) -> Kind:
    """Return the kind that a person or a model wrote.

    Raises: ExportInvalid with a sentence that lists what there is.
    """
    word = str(text).strip().lower()
    kind = KINDS.get(word) or KINDS.get(f"{word}s")
    if kind is None:
        known = ", ".join(str(one.label) for one in KINDS.values())
        raise ExportInvalid(_("Only these can be exported: %(known)s.") % {"known": known})
    return kind


def format_named(text: str) -> Format:
    """Return the format that a person or a model wrote.

    Raises: ExportInvalid with a sentence that lists what there is.
    """
    form = FORMATS.get(str(text).strip().lower().lstrip("."))
    if form is None:
        known = ", ".join(one.label for one in FORMATS.values())
        raise ExportInvalid(_("Exports can be made as: %(known)s.") % {"known": known})
    return form


def currency_named(text: str) -> str:
    """Return the currency as three letters, of those or of its own sign; empty means all.

    Raises: ExportInvalid when there is no such currency.
    """
    code = currency_code(str(text))
    if str(text).strip() and not code:
        raise ExportInvalid(_("Please name the currency by its three letters, such as EUR."))
    return code


def filters_of(period: Period, currency: str) -> dict[str, str]:
    """Return what an export stores of its request."""
    return {
        "start": period.start.isoformat(),
        "end": period.end.isoformat(),
        "label": period.label,
        "currency": currency,
    }


def fingerprint_of(export: Export) -> str:
    """Return what makes two requests the same: who, what, when, and how it is written."""
    same = (export.owner_id, export.kind, export.format, export.language)
    filters = [export.filters[key] for key in ("start", "end", "currency")]
    return hashlib.sha256(json.dumps([*same, *filters]).encode()).hexdigest()


def _counted(owner: User, kind: Kind, form: Format, period: Period, currency: str) -> int:
    """Count the rows as they are now, so that what cannot be made is refused before the start."""
    total = kind.rows(scope_of(owner), period, currency).order_by().count()
    words = {"kind": kind.label, "label": period.label, "total": total, "format": form.label}
    if not total:
        raise ExportEmpty(
            _("There are no %(kind)s in %(label)s, so there is nothing to export.") % words
        )
    if form.row_limit is not None and total > form.row_limit:
        raise ExportTooLarge(
            _("%(total)d %(kind)s are too many for %(format)s. They can be exported as CSV.")
            % words
        )
    return total


def _replay(call_id: UUID | None) -> tuple[Export, bool] | None:
    if call_id is None:
        return None
    made = Export.objects.filter(call_id=call_id).first()
    if made is not None:
        return made, False
    attached = ExportCall.objects.filter(call_id=call_id).select_related("export").first()
    return None if attached is None else (attached.export, True)


def _started_or_attached(export: Export, fence: Callable[[], object]) -> tuple[Export, bool]:
    """Insert the row; the constraint decides who is first when two ask at once."""
    export.fingerprint = fingerprint_of(export)
    for _try in range(_TRIES):
        with faults.commit("export.request", transaction.atomic()):
            conversation_first(export.conversation_id)
            fence()
            attached = _attach(export)
            if attached is not None:
                # The very same call may run twice at once, in a worker and in its successor.
                return attached, export.call_id is None or attached.call_id != export.call_id
            if _inserted(export):
                export_told(export.pk)
                by = asker_of(export.owner, export.run_id)
                export_recorded(Action.EXPORT_ASKED, export, by, rows=export.rows_total)
                export_enqueue(export.pk)
                return export, False
        # The other one was there first: by the same call, or the same request. Or it has
        # just ended, or two references were alike; then the next try inserts.
        replay = _replay(export.call_id)
        if replay is not None:
            return replay
    raise IntegrityError("no room for this export after several tries")


def _attach(export: Export) -> Export | None:
    active = Export.objects.filter(fingerprint=export.fingerprint, state__in=EXPORT_ACTIVE).first()
    if active is not None and export.call_id not in (None, active.call_id):
        ExportCall.objects.get_or_create(call_id=export.call_id, defaults={"export": active})
    return active


def _inserted(export: Export) -> bool:
    export.reference = "EXP-" + "".join(secrets.choice(_SIGNS) for _sign in range(8))
    try:
        with transaction.atomic():
            export.save(force_insert=True)
    except IntegrityError:
        return False
    return True


def cancellable(export: Export) -> bool:
    """Tell whether cancelling still makes sense."""
    return export.state not in EXPORT_TERMINAL | {ExportState.READY}
