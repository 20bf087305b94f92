"""Every read of exports: a person sees their own, while they have the right and the teams."""

from __future__ import annotations

import logging
from uuid import UUID

from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.utils import timezone

from exports.errors import ExportGone, ExportNotFound, ExportNotReady
from exports.models import Export
from exports.policies import EXPORT_RIGHT
from exports.states import EXPORT_ACTIVE, ExportState
from exports.words import export_sentence
from payments.selectors import scope_of

log = logging.getLogger("exports")


def export_for(user: User, export_id: UUID) -> Export:
    """Return an export to its owner, with the rights and teams they have right now.

    Raises:
        ExportNotFound: it is missing, somebody else's, or holds what they may no longer see.
    """
    export = Export.objects.filter(pk=export_id).select_related("owner").first()
    if export is None:
        raise ExportNotFound
    person = User.objects.filter(pk=user.pk, is_active=True).first()
    if person is None or export.owner_id != person.pk or not _may_see(person, export):
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


def _may_see(person: User, export: Export) -> bool:
    if not person.has_perm(EXPORT_RIGHT):
        return False
    return set(export.team_ids) <= {str(team) for team in scope_of(person)}
