"""Look at comparisons and at what the processor told; nothing here can be altered."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.db.models import Model
from django.http import HttpRequest
from django.utils.html import format_html_join
from django.utils.safestring import SafeString
from django.utils.translation import gettext_lazy as _

from payments.processor.models import ProcessorEvent, Reconciliation
from payments.processor.wording import finding_sentence, total_sentence
from reviews.admin_rights import ByWhatIsShown


class _ReadOnly(ByWhatIsShown, admin.ModelAdmin[Any]):
    """Refuse adding, changing and deleting on every route."""

    actions = None
    list_per_page = 50
    show_full_result_count = False

    def has_add_permission(self, request: HttpRequest, *args: Any) -> bool:
        """Refuse: rows come from the processor and from comparisons."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Refuse: a row that a person may edit proves nothing."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Model | None = None) -> bool:
        """Refuse: what was compared was compared."""
        return False


@admin.register(Reconciliation)
class ReconciliationAdmin(_ReadOnly):
    """Comparisons of our books with the processor's."""

    list_display = ("since", "until", "result", "compared", "repaired", "open_findings", "begun_at")
    ordering = ("-begun_at",)
    list_filter = ("result", "daily", "gateway")
    fields = (
        "gateway",
        "since",
        "until",
        "result",
        "daily",
        "applied",
        "compared",
        "repaired",
        "open_findings",
        "sums",
        "sentences",
        "begun_at",
        "ended_at",
    )

    @admin.display(description=_("Totals"))
    def sums(self, row: Reconciliation) -> SafeString:
        """Write a line for each kind and currency."""
        return _lines(total_sentence(total) for total in row.totals)

    @admin.display(description=_("Findings"))
    def sentences(self, row: Reconciliation) -> SafeString:
        """Write a line for each finding that was kept."""
        return _lines(finding_sentence(finding) for finding in row.findings)


@admin.register(ProcessorEvent)
class ProcessorEventAdmin(_ReadOnly):
    """Events of the processor as they came in."""

    list_display = ("received_at", "kind", "object_ref", "handled_at", "tries", "outcome")
    ordering = ("-received_at",)
    list_filter = ("kind", "outcome")
    search_fields = ("id", "object_ref")
    fields = (
        "id",
        "gateway",
        "kind",
        "object_ref",
        "made_at",
        "received_at",
        "handled_at",
        "tries",
        "next_try_at",
        "outcome",
    )


def _lines(sentences: Any) -> SafeString:
    return format_html_join("", "<div>{}</div>", ((sentence,) for sentence in sentences))
