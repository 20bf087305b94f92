"""The audit in the administration: looked at, by whoever has the right. Accounts are recorded."""

from typing import Any

from django.contrib import admin
from django.contrib.auth.admin import GroupAdmin, UserAdmin
from django.contrib.auth.models import Group, User
from django.http import HttpRequest

from reviews.audit.models import Entry
from reviews.audit.recorded import Recorded


@admin.register(Entry)
class EntryAdmin(admin.ModelAdmin[Entry]):
    """What happened, newest first; a trigger of the database refuses what this page cannot do."""

    list_display = ("at", "action", "actor", "subject", "rule", "origin", "address")
    list_display_links = ("at", "action")
    list_filter = ("action", "actor_kind", "subject_kind", "origin", "at")
    search_fields = ("=actor_name", "=reference", "=subject_id", "=run_id", "=conversation_id")
    search_help_text = "An account, a reference, or an id in full."
    date_hierarchy = "at"
    list_per_page = 50
    show_full_result_count = False
    actions = None

    @admin.display(description="by", ordering="actor_name")
    def actor(self, entry: Entry) -> str:
        """Name who acted, and on whose behalf."""
        if entry.actor_kind == "assistant":
            return f"assistant for {entry.actor_name}"
        return entry.actor_name or entry.get_actor_kind_display()

    @admin.display(description="what", ordering="reference")
    def subject(self, entry: Entry) -> str:
        """Name what was acted on."""
        return f"{entry.subject_kind} {entry.reference or entry.subject_id}".strip()

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Refuse: the product writes its own audit."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Refuse: what happened has happened."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Refuse: nothing is forgotten."""
        return False


# Rights are changed on these two pages.
admin.site.unregister(User)
admin.site.unregister(Group)


@admin.register(User)
class RecordedUserAdmin(Recorded, UserAdmin[User]):
    """Django's page of accounts, recorded."""


@admin.register(Group)
class RecordedGroupAdmin(Recorded, GroupAdmin):
    """Django's page of roles, recorded."""
