"""Runs and conversations in Django admin: to look at, never to change."""

from __future__ import annotations

from typing import Any

from django.contrib import admin
from django.http import HttpRequest

from agent_core.runs.models import Call, Conversation, ModelCall, Run, StopRecord
from agent_core.runs.wording import explain


class LookOnly:
    """Nothing here is added, changed or deleted by hand: the records are the evidence."""

    def has_add_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Refuse to add."""
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Refuse to change."""
        return False

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        """Refuse to delete."""
        return False


class CallInline(LookOnly, admin.TabularInline[Call, Run]):
    """The calls of a run."""

    model = Call
    fields = ("batch", "position", "label", "state", "verdict", "rule", "content")


class ModelCallInline(LookOnly, admin.TabularInline[ModelCall, Run]):
    """The model calls of a run."""

    model = ModelCall
    fields = ("number", "attempt", "model", "input_tokens", "output_tokens", "milliseconds")


@admin.register(Run)
class RunAdmin(LookOnly, admin.ModelAdmin[Run]):
    """Runs with why they ended; interrupted ones are decided under reviews."""

    list_display = (
        "created_at",
        "requester",
        "state",
        "rule",
        "stop_mode",
        "attempt",
        "failure_reference",
    )
    list_filter = ("state", "stop_mode", "stop__rule")
    search_fields = ("id", "requester__username", "failure_reference", "message__text")
    list_select_related = ("requester", "stop")
    inlines = (CallInline, ModelCallInline)
    readonly_fields = ("why",)

    @admin.display(description="rule")
    def rule(self, run: Run) -> str:
        """Return the rule that ended the run."""
        return run.stop.rule if hasattr(run, "stop") else ""

    @admin.display(description="why it ended")
    def why(self, run: Run) -> str:
        """Return why the run ended, in words."""
        record = StopRecord.objects.filter(run=run).first()
        if record is None:
            return "It has not ended."
        words = explain(record)
        told = " ".join([words["rule_words"], *words["notes"]])
        return f"{words['cause']}. {told} {words['calls']}."


@admin.register(Conversation)
class ConversationAdmin(LookOnly, admin.ModelAdmin[Conversation]):
    """Conversations by owner and customer."""

    list_display = ("title", "owner", "customer_label", "updated_at")
    search_fields = ("title", "owner__username", "customer_label")
