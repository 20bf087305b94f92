"""What people read about an export: its title, how far it is, and until when it can be fetched."""

from __future__ import annotations

from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from exports.formats import FORMATS
from exports.kinds import KINDS
from exports.models import Export
from exports.states import ExportState


def kind_label(export: Export) -> str:
    """Return the plural of what the rows are."""
    kind = KINDS.get(export.kind)
    return str(kind.label) if kind else export.kind


def format_label(export: Export) -> str:
    """Return what people call the format."""
    known = FORMATS.get(export.format)
    return known.label if known else export.format


def export_title(export: Export) -> str:
    """Say what is exported: "Payments March 2026 EUR"."""
    label = str(export.filters.get("label", ""))
    currency = str(export.filters.get("currency", ""))
    title = " ".join(filter(None, (kind_label(export), label, currency)))
    return title[:1].upper() + title[1:]


def export_sentence(export: Export) -> str:
    """Say how the export stands, in one sentence."""
    match export.state:
        case ExportState.QUEUED | ExportState.COUNTING | ExportState.WRITING:
            return _("The export is being prepared.")
        case ExportState.CHECKING:
            return _("The file is being checked.")
        case ExportState.READY:
            return _("The file can be downloaded until %(when)s.") % {"when": _moment(export)}
        case ExportState.FAILED:
            return export.failure or _("The export failed. Please ask for it again.")
        case ExportState.CANCELLED:
            return _("The export was cancelled. There is no file.")
    return _("The time to download this file is over. Please ask for the export again.")


def _moment(export: Export) -> str:
    if export.expires_at is None:
        return ""
    local = timezone.localtime(export.expires_at)
    return _("%(day)s at %(time)s") % {
        "day": date_format(local, "j F Y"),
        "time": date_format(local, "H:i T"),
    }
