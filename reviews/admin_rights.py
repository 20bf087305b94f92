"""Who gets where in the administration of reviews: to look, to decide, never to edit."""

from typing import Any, cast

from django.contrib import admin
from django.contrib.admin.utils import flatten_fieldsets
from django.contrib.auth.models import User
from django.http import HttpRequest

from reviews.models import Review


def actor_of(request: HttpRequest) -> User:
    """Return the person behind a request; the administration lets only known people in."""
    return cast("User", request.user)


class ByWhatIsShown:
    """Lets a list be filtered by what its pages show, for `ModelAdmin`.

    Django lets it be filtered by any field, and what no page shows would be read letter by letter.
    """

    def lookup_allowed(self, lookup: str, value: str, request: HttpRequest) -> bool:
        """Refuse a field that is not in the list, on the page or among the filters."""
        page = cast("admin.ModelAdmin[Any]", self)
        # Where no fields are named, the page is one of our own, or Django would name them all.
        named = page.get_fieldsets(request) if page.fields or page.fieldsets else ()
        shown = {"id", "pk", *page.list_display, *flatten_fieldsets(named)}
        filters = (each[0] if isinstance(each, tuple) else each for each in page.list_filter)
        shown |= {each.partition("__")[0] for each in filters if isinstance(each, str)}
        if lookup.partition("__")[0] not in shown:
            return False
        allowed: bool = super().lookup_allowed(lookup, value, request)  # type: ignore[misc]
        return allowed


class LookOnlyAdmin(ByWhatIsShown, admin.ModelAdmin[Review]):
    """An administration page that adds, edits and deletes nothing, whatever rights somebody has."""

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Show the section to whoever may look at a review."""
        return self.has_view_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: Review | None = None) -> bool:
        """Let people look who hold the view right or the right to decide."""
        user = actor_of(request)
        return user.has_perm("reviews.view_review") or user.has_perm("reviews.decide_review")

    def has_add_permission(self, request: HttpRequest) -> bool:
        """Reviews come from the gate only."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Review | None = None) -> bool:
        """A review is decided, never edited, whatever rights somebody holds."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Review | None = None) -> bool:
        """What was asked and decided stays."""
        return False

    def has_decide_permission(self, request: HttpRequest) -> bool:
        """Offer the actions to whoever may decide; each review is checked again by itself."""
        return actor_of(request).has_perm("reviews.decide_review")
