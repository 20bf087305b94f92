"""Put right what workers and time leave behind: lost messages, dead workers, old files."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from django.core.files.storage import default_storage
from django.db import transaction
from django.db.models import F, Q
from django.utils import timezone, translation
from django.utils.translation import gettext as _

from agent_core import faults
from exports.models import Export
from exports.moves import export_enqueue, export_move
from exports.services_write import leftovers_delete
from exports.states import EXPORT_WORKING, ExportState

log = logging.getLogger("exports")

MOST_DEATHS: Final = 3
LOST_SECONDS: Final = 60
# One sweep takes so many of each; the next one goes on.
BATCH: Final = 200


@dataclass(frozen=True, slots=True)
class Swept:
    """What one sweep has done."""

    requeued: int = 0
    failed: int = 0
    resent: int = 0
    expired: int = 0
    deleted: int = 0


def exports_sweep(*, now: datetime | None = None) -> Swept:
    """Requeue expired leases, send lost messages again, expire and delete; safe to run twice."""
    moment = now or timezone.now()
    requeued, failed = _leases(moment)
    return Swept(
        requeued=requeued,
        failed=failed,
        resent=_lost(moment),
        expired=_expire(moment),
        deleted=_delete(moment),
    )


def _leases(now: datetime) -> tuple[int, int]:
    """Hand the exports of dead workers to others; after the third death, give up and say so."""
    over = Q(lease_until__lt=now)
    requeued = failed = 0
    for export in Export.objects.filter(over, state__in=EXPORT_WORKING)[:BATCH]:
        # The lease may have been kept since it was read: ask again in the update.
        still = over & Q(attempt=export.attempt)
        if export.deaths + 1 >= MOST_DEATHS:
            failed += _give_up(export, still, now)
            continue
        with faults.commit("export.requeue", transaction.atomic()):
            # The old lease stays: by it the sweep finds what is left behind if nobody goes on.
            if export_move(
                export.pk,
                ExportState.QUEUED,
                where=still,
                enqueued_at=now,
                deaths=F("deaths") + 1,
            ):
                export_enqueue(export.pk)
                requeued += 1
    return requeued, failed


def _give_up(export: Export, still: Q, now: datetime) -> int:
    log.error("export.parked", extra={"export": str(export.pk), "attempt": export.attempt})
    with translation.override(export.language):
        reason = _("The export was interrupted %(times)d times. Please tell support.")
    return export_move(
        export.pk,
        ExportState.FAILED,
        where=still,
        failure=reason % {"times": export.deaths + 1},
        deaths=F("deaths") + 1,
        ended_at=now,
    )


def _lost(now: datetime) -> int:
    """Send again what has been in line so long that its message must be lost."""
    late = Q(state=ExportState.QUEUED, enqueued_at__lt=now - timedelta(seconds=LOST_SECONDS))
    resent = 0
    for pk in Export.objects.filter(late).values_list("pk", flat=True)[:BATCH]:
        with faults.commit("export.resend", transaction.atomic()):
            if Export.objects.filter(late, pk=pk).update(enqueued_at=now):
                export_enqueue(pk)
                resent += 1
    return resent


def _expire(now: datetime) -> int:
    over = Q(expires_at__lte=now)
    ready = Export.objects.filter(over, state=ExportState.READY)[:BATCH]
    return sum(export_move(one.pk, ExportState.EXPIRED, where=over) for one in ready)


def _delete(now: datetime) -> int:
    """Delete the files of expired exports, and what the workers of ended ones left behind."""
    expired = Q(state=ExportState.EXPIRED) & ~Q(file="")
    left = Q(state__in=(ExportState.FAILED, ExportState.CANCELLED), lease_until__lt=now)
    deleted = 0
    for export in Export.objects.filter(expired | left)[:BATCH]:
        with faults.around("export.delete"):
            if export.file:
                default_storage.delete(export.file)
            export.file = ""
            leftovers_delete(export)
        deleted += Export.objects.filter(pk=export.pk).update(file="", lease_until=None)
    return deleted
