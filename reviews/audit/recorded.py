"""Record what is added, changed and deleted in the administration, with what it was before."""

from typing import TYPE_CHECKING, Any, cast

from django.contrib import admin
from django.contrib.auth.models import User
from django.db.models import Model, QuerySet
from django.http import HttpRequest

from reviews.audit.services import Subject, audit_write, person
from reviews.audit.words import Action

if TYPE_CHECKING:
    _Base = admin.ModelAdmin[Any]
else:
    _Base = object

_STASH = "_audit_changed"
_HIDDEN = {"password", "password1", "password2", "usable_password"}


class Recorded(_Base):
    """Put before an admin class whose rows people may edit; Django's own log stays as it is.

    Django keeps each of these in the transaction of the change.
    """

    def save_related(self, request: HttpRequest, form: Any, formsets: Any, change: bool) -> None:
        """Keep what the form changes; its row is written when Django logs the change."""
        super().save_related(request, form, formsets, change)
        before = {name: _shown(name, form.initial.get(name)) for name in form.changed_data}
        after = {name: _shown(name, form.cleaned_data.get(name)) for name in form.changed_data}
        setattr(request, _STASH, (before if change else {}, after))

    def log_addition(self, request: HttpRequest, obj: Model, message: Any) -> Any:
        """Record a new row."""
        self._record(request, Action.RECORD_ADDED, obj)
        return super().log_addition(request, obj, message)

    def log_change(self, request: HttpRequest, obj: Model, message: Any) -> Any:
        """Record a changed row; a new password has its own page and comes without fields."""
        self._record(request, Action.RECORD_CHANGED, obj)
        return super().log_change(request, obj, message)

    def log_deletions(self, request: HttpRequest, queryset: QuerySet[Any]) -> Any:
        """Record each row that goes."""
        for obj in queryset:
            self._record(request, Action.RECORD_DELETED, obj)
        return super().log_deletions(request, queryset)

    def _record(self, request: HttpRequest, action: Action, obj: Model) -> None:
        before, after = getattr(request, _STASH, ({}, {}))
        if action is Action.RECORD_CHANGED and not after:
            after = {"fields": "none of the form: a new password"}
        audit_write(
            action,
            actor=person(cast("User", request.user)),
            subject=Subject(obj._meta.label_lower, obj.pk, str(obj)),
            before=before,
            after=after,
        )


def _shown(name: str, value: Any) -> Any:
    if name in _HIDDEN:
        return "(hidden)"
    if isinstance(value, QuerySet | list | tuple | set):
        return sorted(str(item) for item in value)
    return value
