"""The assistant's tool for exports. It starts the job and says so; the worker writes the file."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Annotated, Any, Final

from django.contrib.auth.models import User
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop, ngettext

from agent_core.contract import (
    Artifact,
    RunContext,
    Tool,
    completed,
    policy_block,
    transient,
)
from exports.errors import ExportEmpty, ExportInvalid, ExportNotAllowed, ExportTooLarge
from exports.models import Export
from exports.policies import EXPORT_RIGHT, POLICIES
from exports.services import currency_named, export_request, format_named, kind_named
from exports.words import export_title, format_label
from payments.periods import PeriodUnclear, period_parse


def export_payments(
    context: RunContext,
    *,
    period: Annotated[
        str, "The period in words or days: last month, March 2026, 2026-01-01 to 2026-03-31"
    ],
    currency: Annotated[str, "Three letters such as EUR; empty for every currency"] = "",
    kind: Annotated[str, "What to export: payments or refunds"] = "payments",
    format: Annotated[str, "The file's format: csv"] = "csv",
) -> tuple[str, Artifact]:
    """Export all payments (or refunds) of a period as a file, prepared in the background.

    Covers every customer the staff member may see. The file appears in the conversation by itself.
    """
    try:
        export, already = export_request(
            owner=User.objects.get(pk=context.requester_id),
            kind=kind,
            period=period,
            currency=currency,
            format=format,
            language=context.language,
            conversation_id=context.conversation_id,
            run_id=context.run_id,
            call_id=context.call_id,
            fence=context.fence,
        )
    except PeriodUnclear as unclear:
        return str(unclear), transient("export.period_unclear")
    except ExportInvalid as invalid:
        return str(invalid), transient("export.invalid")
    except ExportTooLarge as large:
        return str(large), transient("export.too_large")
    except ExportEmpty as empty:
        return str(empty), completed("export.empty", stop=True)
    except ExportNotAllowed as refused:
        return str(refused), policy_block("right.missing", data={"right": EXPORT_RIGHT})
    return _text(export, already), _started(export, already)


def _started(export: Export, already: bool) -> Artifact:
    data = {"export": export.pk, "total": export.rows_total}
    return completed("export.started", stop=True, already_applied=already, data=data)


def _text(export: Export, already: bool) -> str:
    total = export.rows_total or 0
    words = {
        "reference": export.reference,
        "title": export_title(export),
        "rows": ngettext("%(total)d row", "%(total)d rows", total) % {"total": total},
        "format": format_label(export),
    }
    if already:
        text = _(
            "This export is already on its way as %(reference)s: %(title)s, %(format)s. "
            "The file will appear here when it is ready."
        )
    else:
        text = _(
            "Export %(reference)s is being prepared: %(title)s, %(format)s, %(rows)s. "
            "The file will appear here when it is ready."
        )
    return text % words


def export_identity(context: RunContext, arguments: Mapping[str, Any]) -> str:
    """Return what makes two calls the same export, however the period was worded."""
    try:
        period = period_parse(arguments.get("period", ""), timezone.localdate())
        parts = [
            kind_named(arguments.get("kind", "payments")).name,
            period.start.isoformat(),
            period.end.isoformat(),
            currency_named(arguments.get("currency", "")),
            format_named(arguments.get("format", "csv")).name,
        ]
    except (PeriodUnclear, ExportInvalid):
        # It will be asked back; only the very same words are the same call.
        parts = ["unclear", *(f"{key}={arguments[key]}" for key in sorted(arguments))]
    return hashlib.sha256("\x1f".join(["export", *parts]).encode()).hexdigest()


TOOLS: Final[tuple[Tool, ...]] = (
    Tool(
        name="export_payments",
        run=export_payments,
        doing=gettext_noop("Preparing the export"),
        done=gettext_noop("Started the export"),
        right=EXPORT_RIGHT,
        effect=True,
        may_stop=True,
        before_review=True,
        policies=POLICIES,
        identity=export_identity,
    ),
)
