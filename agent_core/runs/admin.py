"""Runs and conversations in Django admin: to look at, never to change.

What was interrupted is found here, with the review that it waits for; decisions are taken there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final, cast

from django.conf import settings
from django.contrib import admin
from django.contrib.admin.views.main import ChangeList
from django.contrib.auth.models import User
from django.db.models import Q, QuerySet
from django.http import HttpRequest
from django.urls import reverse
from django.utils.html import format_html_join
from django.utils.module_loading import import_string
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from agent_core.runs.models import Call, Conversation, ModelCall, Run, StopRecord
from agent_core.runs.states import RUN_FINAL, RunState
from agent_core.runs.wording import explain
from reviews.admin_rights import ByWhatIsShown
from reviews.models import Review
from reviews.selectors import reviews_visible

SEES_ALL: Final = "audit.view_entry"
SEES_TEAM: Final = "runs.view_all_runs"
"""The right by which somebody sees the runs of all colleagues in their teams, here as in Desk."""


class LookOnly:
    """Nothing here is added, changed or deleted by hand: the records are the evidence."""

    def has_module_permission(self, request: HttpRequest) -> bool:
        """Show the section to whoever may look at something in it."""
        return self.has_view_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Let look who holds the right of this kind of row, or sees the runs of the teams."""
        opts = cast("Any", self).opts
        user = request.user
        return user.has_perm(f"{opts.app_label}.view_{opts.model_name}") or user.has_perm(SEES_TEAM)

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Refuse to add."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Refuse to change."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Refuse to delete."""
        return False


def within_reach(
    rows: QuerySet[Any], request: HttpRequest, owner: str, customer: str
) -> QuerySet[Any]:
    """Keep a person's own, and what colleagues did for customers of the same teams.

    A superuser and an auditor see all.
    """
    user = request.user
    if not isinstance(user, User):
        return rows.none()
    if user.has_perm(SEES_ALL):
        return rows
    colleagues, customers = import_string(settings.RUN_REACH)(user)
    in_teams = Q(**{f"{customer}__isnull": True}) | Q(**{f"{customer}__in": customers.values("pk")})
    of_colleagues = Q(**{f"{owner}__in": colleagues.values("pk")}) & in_teams
    return rows.filter(Q(**{owner: user}) | of_colleagues)


class InterruptedFilter(admin.SimpleListFilter):
    """Keep what does not go on by itself, or was taken up again."""

    title = gettext_lazy("interrupted")
    parameter_name = "interrupted"

    def lookups(self, request: HttpRequest, model_admin: Any) -> list[tuple[str, str]]:
        """Offer the ways in which a run stands still."""
        return [
            ("any", _("any of these")),
            ("review", _("waits for a person")),
            ("parked", _("set aside")),
            ("again", _("taken up again after a worker was lost")),
        ]

    def queryset(self, request: HttpRequest, queryset: QuerySet[Run]) -> QuerySet[Run]:
        """Keep these."""
        waits = Q(state__in=(RunState.WAITING, RunState.DECIDED))
        parked = Q(state=RunState.PARKED)
        again = (Q(strikes__gt=0) | Q(quarantined=True)) & ~Q(state__in=RUN_FINAL)
        wanted = {"any": waits | parked | again, "review": waits, "parked": parked, "again": again}
        about = wanted.get(self.value() or "")
        return queryset if about is None else queryset.filter(about)


class CallInline(LookOnly, admin.TabularInline[Call, Run]):
    """The calls of a run."""

    model = Call
    fields = ("batch", "position", "label", "state", "verdict", "rule", "content")


class ModelCallInline(LookOnly, admin.TabularInline[ModelCall, Run]):
    """The model calls of a run."""

    model = ModelCall
    fields = ("number", "attempt", "model", "input_tokens", "output_tokens", "milliseconds")


@admin.register(Run)
class RunAdmin(LookOnly, ByWhatIsShown, admin.ModelAdmin[Run]):
    """Runs with what they wait for and why they ended."""

    list_display = (
        "created_at",
        "requester",
        "customer",
        "state",
        "reviews",
        "rule",
        "attempt",
        "failure_reference",
    )
    list_filter = (InterruptedFilter, "state", "stop_mode", "stop__rule", "created_at")
    search_fields = (
        "=id",
        "requester__username",
        "conversation__customer_label",
        "failure_reference",
        "message__text",
    )
    search_help_text = gettext_lazy("Who asked, a customer, words of the request, a failure.")
    list_select_related = ("requester", "stop", "conversation", "message")
    list_per_page = 50
    show_full_result_count = False
    ordering = ("-created_at",)
    actions = None
    inlines = (CallInline, ModelCallInline)
    fields = (
        "requester",
        "customer",
        "asked",
        "state",
        "reviews",
        "why",
        "stop_mode",
        "attempt",
        "strikes",
        "quarantined",
        "failure_reference",
        "created_at",
        "claimed_at",
        "ended_at",
    )
    readonly_fields = ("customer", "asked", "reviews", "why")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Run]:
        """Leave out what is out of reach, so that it is not found."""
        rows = super().get_queryset(request)
        return within_reach(rows, request, "requester", "conversation__customer_id")

    def get_object(
        self, request: HttpRequest, object_id: str, from_field: str | None = None
    ) -> Run | None:
        """Read the reviews beside the run."""
        run = super().get_object(request, object_id, from_field)
        if run is not None:
            self._reviews_add(request, [run])
        return run

    def get_changelist_instance(self, request: HttpRequest) -> ChangeList:
        """Read the reviews of a page at once."""
        changes = super().get_changelist_instance(request)
        self._reviews_add(request, list(changes.result_list))
        return changes

    @staticmethod
    def _reviews_add(request: HttpRequest, runs: Sequence[Run]) -> None:
        """Give each run the reviews that this person may look at."""
        visible = reviews_visible(cast("User", request.user))
        asked: dict[Any, list[Review]] = {}
        for review in visible.filter(run_id__in=[run.pk for run in runs]).order_by("created_at"):
            asked.setdefault(review.run_id, []).append(review)
        for run in runs:
            cast("Any", run).reviews_seen = asked.get(run.pk, [])

    @admin.display(description=gettext_lazy("reviews"))
    def reviews(self, run: Run) -> str:
        """Link to what people were asked, with how it stands."""
        rows = (
            (
                reverse("admin:reviews_review_change", args=[review.pk]),
                review.title,
                review.get_state_display(),
            )
            for review in getattr(run, "reviews_seen", ())
        )
        return format_html_join("; ", '<a href="{}"><bdi>{}</bdi></a> ({})', rows)

    @admin.display(description=gettext_lazy("customer"))
    def customer(self, run: Run) -> str:
        """Name the customer of the conversation."""
        return run.conversation.customer_label

    @admin.display(description=gettext_lazy("the request"))
    def asked(self, run: Run) -> str:
        """Return the message that asked for it."""
        return run.message.text

    @admin.display(description=gettext_lazy("rule"), ordering="stop__rule")
    def rule(self, run: Run) -> str:
        """Return the rule that ended the run."""
        return run.stop.rule if hasattr(run, "stop") else ""

    @admin.display(description=gettext_lazy("why it ended"))
    def why(self, run: Run) -> str:
        """Return why the run ended, in words."""
        record = StopRecord.objects.filter(run=run).first()
        if record is None:
            return _("It has not ended.")
        words = explain(record)
        told = " ".join([words["rule_words"], *words["notes"]])
        return f"{words['cause']}. {told} {words['calls']}."


@admin.register(Conversation)
class ConversationAdmin(LookOnly, ByWhatIsShown, admin.ModelAdmin[Conversation]):
    """Conversations by owner and customer."""

    list_display = ("title", "owner", "customer_label", "updated_at")
    list_select_related = ("owner",)
    list_per_page = 50
    show_full_result_count = False
    ordering = ("-updated_at",)
    actions = None
    search_fields = ("title", "owner__username", "customer_label")
    fields = ("title", "owner", "customer_label", "language", "created_at", "updated_at")

    def get_queryset(self, request: HttpRequest) -> QuerySet[Conversation]:
        """Leave out what is out of reach, so that it is not found."""
        return within_reach(super().get_queryset(request), request, "owner", "customer_id")
