"""Every read of exports: a person sees their own, while they have the right and the teams."""

from __future__ import annotations

import logging
from datetime import datetime
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet
from django.utils import timezone

from exports.errors import ExportGone, ExportNotFound, ExportNotReady
from exports.models import Export
from exports.policies import EXPORT_RIGHT
from exports.states import EXPORT_ACTIVE, EXPORT_WORKING, ExportState
from exports.words import export_sentence
from payments.selectors import scope_of

log = logging.getLogger("exports")


def export_for(user: User, export_id: UUID) -> Export:
    """Return an export to its owner, with the rights and teams they have right now.

    Raises:
        ExportNotFound: it is missing, somebody else's, or holds what they may no longer see.
    """
    # The person is read anew and whole before the export, so that a miss costs what a refusal does.
    person = User.objects.filter(pk=user.pk, is_active=True).first()
    allowed = person is not None and person.has_perm(EXPORT_RIGHT)
    teams = {str(team) for team in scope_of(person)} if person is not None else set()
    export = Export.objects.filter(pk=export_id).select_related("owner").first()
    if export is None:
        raise ExportNotFound
    if not allowed or export.owner_id != user.pk or not set(export.team_ids) <= teams:
        log.warning("scope.denied", extra={"export": str(export_id), "actor": user.pk})
        raise ExportNotFound
    return export


def export_download(user: User, export_id: UUID) -> Export:
    """Return an export whose file its owner may fetch at this moment.

    Raises:
        ExportNotFound: as for a missing one.
        ExportNotReady: it is still being prepared.
        ExportGone: it expired, failed or was cancelled; the message says which.
    """
    export = export_for(user, export_id)
    if export.state in EXPORT_ACTIVE:
        raise ExportNotReady(export_sentence(export))
    # The link dies on time, also when nobody has swept yet.
    if export.state == ExportState.READY and (export.expires_at or timezone.now()) > timezone.now():
        return export
    if export.state == ExportState.READY:
        export.state = ExportState.EXPIRED
    raise ExportGone(export_sentence(export))


def exports_of_conversation(conversation_id: UUID) -> QuerySet[Export]:
    """List the exports of a conversation in the order in which they were asked."""
    return Export.objects.filter(conversation_id=conversation_id).order_by("created_at", "id")


def exports_stuck(before: datetime) -> QuerySet[Export]:
    """List the exports of everybody that nobody has taken since then, or whose worker is gone."""
    left = Q(state__in=EXPORT_WORKING, lease_until__lt=timezone.now())
    lying = Q(state=ExportState.QUEUED, created_at__lt=before)
    return Export.objects.filter(left | lying).select_related("owner").order_by("created_at")


def runs_exporting() -> frozenset[UUID]:
    """Return the runs that have asked for an export which is still being prepared."""
    live = Export.objects.filter(state__in=EXPORT_ACTIVE, run_id__isnull=False)
    return frozenset(run_id for run_id in live.values_list("run_id", flat=True) if run_id)
