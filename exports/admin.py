"""Exports in the administration: looked at, and cancelled by whoever has that right. No files."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from django.contrib import admin, messages
from django.contrib.auth.models import User
from django.db.models import QuerySet
from django.http import HttpRequest
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from exports.errors import ExportFinished
from exports.models import Export
from exports.services import CANCEL_RIGHT, export_cancel

if TYPE_CHECKING:
    _Base = admin.ModelAdmin[Export]
else:
    _Base = admin.ModelAdmin


@admin.register(Export)
class ExportAdmin(_Base):
    """Read only; the rows of an export are its owner's alone, so there is no link to the file."""

    list_display = ("reference", "owner", "kind", "state", "rows_done", "rows_total", "created_at")
    list_filter = ("state", "kind", "format")
    search_fields = ("reference",)
    date_hierarchy = "created_at"
    list_select_related = ("owner",)
    actions = ("cancel_selected",)
    exclude = ("fingerprint", "file")

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Refuse: exports are asked for in the chat."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Export | None = None) -> bool:
        """Refuse: an export is what its worker made of it."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Export | None = None) -> bool:
        """Refuse: the sweep deletes files; rows stay as a record."""
        return False

    def has_cancel_permission(self, request: HttpRequest) -> bool:
        """Tell whether the person may cancel exports of others."""
        return request.user.has_perm(CANCEL_RIGHT)

    @admin.action(description="Cancel the selected exports", permissions=["cancel"])
    def cancel_selected(self, request: HttpRequest, queryset: QuerySet[Export]) -> None:
        """Cancel each export through its service; one that has ended does not stop the rest."""
        cancelled = 0
        for export in queryset:
            try:
                export_cancel(export_id=export.pk, actor=cast("User", request.user))
                cancelled += 1
            except ExportFinished:
                text = _("%(reference)s had already ended.") % {"reference": export.reference}
                self.message_user(request, text, messages.WARNING)
        text = ngettext("%(n)d export cancelled.", "%(n)d exports cancelled.", cancelled)
        self.message_user(request, text % {"n": cancelled})
