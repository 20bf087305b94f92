"""Write one export: claim it, count, write, check, make it ready. The worker's only entry.

A claim sets a lease and raises the attempt; every later change names the attempt, so a worker that
was taken over, or whose export was cancelled, finds zero rows and leaves without a trace.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from tempfile import TemporaryFile
from time import monotonic
from typing import Any, BinaryIO, Final, cast
from uuid import UUID

from django.conf import settings
from django.core.files import File
from django.core.files.storage import default_storage
from django.db import InterfaceError, OperationalError, transaction
from django.db.models import F, Q
from django.utils import timezone, translation
from django.utils.translation import gettext as _

from agent_core import faults
from agent_core.runs import drain
from exports.cells import Format
from exports.errors import ExportBroken, ExportTaken
from exports.formats import FORMATS
from exports.kinds import KINDS, Kind
from exports.models import Export
from exports.moves import conversation_first, export_enqueue, export_move, export_told
from exports.names import name_stored
from exports.policies import EXPORT_RIGHT
from exports.progress import progress_rebased, progress_shown
from exports.snapshot import snapshot
from exports.states import EXPORT_WORKING, ExportState
from payments.periods import Period
from payments.selectors import scope_of

log = logging.getLogger("exports")

LEASE_SECONDS: Final = 60
# Long enough that nobody waits for it, often enough that a slow disk keeps its lease.
BEAT_SECONDS: Final = 1.0
PROGRESS_ROWS: Final = 500
PROGRESS_STEPS: Final = 100
CHUNK_ROWS: Final = 2000
CHUNK_BYTES: Final = 1 << 16


@dataclass(slots=True)
class Job:
    """One claimed export: the row as it was claimed, and how far the bar stands."""

    export: Export
    kind: Kind
    format: Format
    shown: int
    beaten: float = 0.0

    @property
    def mine(self) -> Q:
        """The condition under which this worker may still write."""
        return Q(attempt=self.export.attempt, state__in=EXPORT_WORKING)


def export_write(export_id: UUID) -> bool:
    """Write the file of a queued export; False when there was nothing to do for this worker."""
    export = export_claim(export_id)
    if export is None:
        log.info("export.left", extra={"export": str(export_id)})
        return False
    fields = {"export": str(export_id), "attempt": export.attempt}
    with translation.override(export.language):
        try:
            _produce(export)
        except ExportTaken:
            log.info("export.taken", extra=fields)
            return False
        except ExportBroken as broken:
            log.warning("export.broken", extra={**fields, "why": broken.code})
            return _failed(export, str(broken))
        except (OperationalError, InterfaceError):
            # The database went away: nothing can be written down. The lease runs out and the
            # sweep hands the export to another worker.
            raise
        except Exception:
            # The boundary of the export worker: whatever it was, staff hear of it.
            mark = secrets.token_hex(4)
            text = _("The file could not be made. Please ask again, or name %(mark)s to support.")
            failed = _failed(export, text % {"mark": mark})
            # A worker that was taken over stumbles over what its successor has cleared away.
            level = logging.ERROR if failed else logging.INFO
            log.log(level, "export.failed", extra={**fields, "reference": mark}, exc_info=True)
            return failed
    return True


def export_claim(export_id: UUID) -> Export | None:
    """Take a queued export for this worker; None when it is not there, taken or ended."""
    with faults.commit("export.claim", transaction.atomic()):
        won = export_move(
            export_id,
            ExportState.COUNTING,
            attempt=F("attempt") + 1,
            lease_until=timezone.now() + timedelta(seconds=LEASE_SECONDS),
        )
        return Export.objects.select_related("owner").get(pk=export_id) if won else None


def leftovers_delete(export: Export) -> None:
    """Delete what earlier attempts may have left in the storage when their worker died."""
    extension = FORMATS[export.format].extension if export.format in FORMATS else "csv"
    for attempt in range(1, export.attempt + 1):
        name = name_stored(export.pk, attempt, extension)
        if name != export.file:
            default_storage.delete(name)


def _failed(export: Export, reason: str) -> bool:
    return export_move(
        export.pk,
        ExportState.FAILED,
        # Not when it was handed back to the line meanwhile: then another worker tries.
        where=Q(attempt=export.attempt, state__in=EXPORT_WORKING),
        failure=reason[:300],
        ended_at=timezone.now(),
        lease_until=None,
    )


def _produce(export: Export) -> None:
    kind, form = KINDS.get(export.kind), FORMATS.get(export.format)
    if kind is None or form is None:
        raise ExportBroken(_("This kind of export does not exist any more."))
    owner = export.owner
    if not owner.is_active or not owner.has_perm(EXPORT_RIGHT):
        raise ExportBroken(_("Your role may no longer export, so the file was not made."))
    with faults.around("export.clear"):
        leftovers_delete(export)
    job = Job(export, kind, form, shown=export.rows_done)
    with TemporaryFile(prefix="export-") as local:
        total = _written(job, cast("BinaryIO", local))
        _step(job, ExportState.CHECKING)
        size = local.tell()
        local.seek(0)
        _stored(job, cast("BinaryIO", local), total, size)


def _written(job: Job, local: BinaryIO) -> int:
    """Count the rows and write them, in one unchanging view of the database."""
    filters = job.export.filters
    days = (date.fromisoformat(filters["start"]), date.fromisoformat(filters["end"]))
    period = Period(*days, filters["label"])
    teams = scope_of(job.export.owner)
    with snapshot() as alias:
        rows = job.kind.rows(teams, period, filters["currency"]).using(alias)
        total = rows.order_by().count()
        if job.format.row_limit is not None and total > job.format.row_limit:
            raise ExportBroken(
                _("%(total)d rows are too many for %(format)s. Please ask for them as CSV.")
                % {"total": total, "format": job.format.label}
            )
        _counted(job, total, sorted(str(team) for team in teams))
        every = max(PROGRESS_ROWS, total // PROGRESS_STEPS)
        writer = job.format.writer(local, [str(column) for column in job.kind.columns])
        done = 0
        for done, row in enumerate(rows.iterator(chunk_size=CHUNK_ROWS), 1):
            writer.write(job.kind.cells(row))
            if done % every == 0:
                _progress(job, done, total)
            else:
                _beat(job)
        writer.close()
    if done != total:
        raise _rows_differ(done, total)
    return total


def _stored(job: Job, local: BinaryIO, total: int, size: int) -> None:
    """Put the file into the storage, read it back from there, and make the export ready."""
    name = wanted = name_stored(job.export.pk, job.export.attempt, job.format.extension)
    ready = False
    try:
        # The storage may choose another name, if this one is taken.
        with faults.around("storage.save"):
            name = default_storage.save(wanted, _Leased(local, lambda: _beat(job)))
        with faults.around("storage.check"):
            sha256 = _checked(job, name, total, size)
        now = timezone.now()
        ready = export_move(
            job.export.pk,
            ExportState.READY,
            where=job.mine,
            rows_done=total,
            bytes=size,
            sha256=sha256,
            file=name,
            lease_until=None,
            ended_at=now,
            expires_at=now + timedelta(hours=settings.EXPORT_HOURS),
        )
        if not ready:
            raise ExportTaken
    finally:
        if not ready:
            # Also what a storage left when it broke off in the middle.
            for left in {name, wanted}:
                default_storage.delete(left)


def _checked(job: Job, name: str, total: int, size: int) -> str:
    """Return the sum of the stored file once its size and its rows are what was written."""
    seen, digest = 0, hashlib.sha256()
    with default_storage.open(name, "rb") as stored:
        while chunk := stored.read(CHUNK_BYTES):
            seen += len(chunk)
            digest.update(chunk)
            _beat(job)
        if seen != size:
            raise ExportBroken(_("The stored file is not whole. Please ask for the export again."))
        stored.seek(0)
        # The first row read back holds the column names.
        rows = -1
        for _row in job.format.rows(cast("BinaryIO", stored.file)):
            rows += 1
            _beat(job)
    if rows != total:
        raise _rows_differ(rows, total)
    return digest.hexdigest()


def _rows_differ(found: int, counted: int) -> ExportBroken:
    return ExportBroken(
        _(
            "The file would hold %(found)d rows instead of %(counted)d, so it was not released. "
            "Please ask for the export again."
        )
        % {"found": max(found, 0), "counted": counted}
    )


def _counted(job: Job, total: int, teams: list[str]) -> None:
    """Begin to write. What a first attempt has shown as done is never taken back."""
    job.shown = progress_rebased(job.shown, job.export.rows_total, total)
    _step(job, ExportState.WRITING, rows_total=total, rows_done=job.shown, team_ids=teams)


def _step(job: Job, to: ExportState, **fields: Any) -> None:
    if not export_move(job.export.pk, to, where=job.mine, **fields):
        raise ExportTaken


def _progress(job: Job, done: int, total: int) -> None:
    """Move the bar, if forward, and keep the lease; in one transaction with the event."""
    _leave(job)
    shown = progress_shown(done, total)
    if shown <= job.shown:
        _beat(job)
        return
    with faults.commit("export.progress", transaction.atomic()):
        conversation_first(job.export.conversation_id)
        _keep(job, rows_done=shown)
        export_told(job.export.pk)
    job.shown = shown


def _beat(job: Job) -> None:
    """Keep the lease, at most once a second, and notice a cancel or another worker.

    Raises: ExportTaken.
    """
    if monotonic() - job.beaten >= BEAT_SECONDS:
        _leave(job)
        _keep(job)


def _keep(job: Job, **fields: object) -> None:
    until = timezone.now() + timedelta(seconds=LEASE_SECONDS)
    rows = Export.objects.filter(job.mine, pk=job.export.pk)
    if not rows.update(lease_until=until, **fields):
        raise ExportTaken
    job.beaten = monotonic()


def _leave(job: Job) -> None:
    """Give the export back to the line if the worker leaves: another writes the file anew.

    Raises: ExportTaken, when it was given back.
    """
    if not drain.leaving():
        return
    with faults.commit("export.hand_back", transaction.atomic()):
        # The lease stays: by it the sweep finds what is left behind if nobody goes on.
        if export_move(
            job.export.pk, ExportState.QUEUED, where=job.mine, enqueued_at=timezone.now()
        ):
            export_enqueue(job.export.pk)
    raise ExportTaken


class _Leased(File):  # type: ignore[type-arg]
    """A file that keeps the lease while a storage reads it."""

    def __init__(self, file: BinaryIO, beat: Callable[[], None]) -> None:
        super().__init__(file)
        self._bytes, self._beat = file, beat

    def read(self, size: int = -1, /) -> bytes:
        """Read on, and say that the worker lives."""
        self._beat()
        return self._bytes.read(size)
