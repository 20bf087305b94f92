"""The rows of exports: what was asked, how far it is, which file came of it."""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.utils import timezone

from exports.states import EXPORT_ACTIVE, EXPORT_WORKING, ExportState


class Export(models.Model):
    """One document of many rows, asked by one person; `attempt` fences what a worker writes.

    `deaths` counts the attempts whose worker died, not those that a leaving one handed back.
    `filters` holds start, end (ISO days, both included), label and currency; `team_ids` whose
    rows the file holds. `conversation_id`, `run_id` and `call_id` are where it was asked.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    reference = models.CharField(max_length=20, unique=True)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    kind = models.CharField(max_length=20)
    filters = models.JSONField(default=dict)
    format = models.CharField(max_length=20)
    language = models.CharField(max_length=10, default="en")
    fingerprint = models.CharField(max_length=64)
    state = models.CharField(max_length=10, choices=ExportState.choices, default=ExportState.QUEUED)
    attempt = models.PositiveIntegerField(default=0)
    deaths = models.PositiveSmallIntegerField(default=0, db_default=0)
    lease_until = models.DateTimeField(null=True, blank=True)
    rows_total = models.PositiveBigIntegerField(null=True, blank=True)
    rows_done = models.PositiveBigIntegerField(default=0)
    bytes = models.PositiveBigIntegerField(default=0)
    sha256 = models.CharField(max_length=64, blank=True)
    file = models.CharField(max_length=200, blank=True)
    team_ids = models.JSONField(default=list)
    failure = models.CharField(max_length=300, blank=True)
    conversation_id = models.UUIDField(null=True, blank=True)
    run_id = models.UUIDField(null=True, blank=True)
    call_id = models.UUIDField(unique=True, null=True, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    # When a message to the worker was last sent; Redis may have lost it.
    enqueued_at = models.DateTimeField(default=timezone.now)
    ended_at = models.DateTimeField(null=True, blank=True)
    expires_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        permissions = (("cancel_export", "Can cancel anyone's export"),)
        constraints = (
            models.CheckConstraint(
                condition=Q(state__in=ExportState.values), name="export_state_known"
            ),
            models.UniqueConstraint(
                fields=["fingerprint"],
                condition=Q(state__in=sorted(EXPORT_ACTIVE)),
                name="export_one_active_per_request",
            ),
            models.CheckConstraint(
                condition=Q(rows_total__isnull=True) | Q(rows_done__lte=F("rows_total")),
                name="export_done_within_total",
            ),
            # Full only when it can be fetched, and then whole, with its sum and its end.
            models.CheckConstraint(
                condition=~Q(state=ExportState.READY)
                | (
                    Q(rows_total__isnull=False, rows_done=F("rows_total"))
                    & Q(expires_at__isnull=False)
                    & ~Q(sha256="")
                    & ~Q(file="")
                ),
                name="export_ready_is_whole",
            ),
            models.CheckConstraint(
                condition=~Q(state__in=sorted(EXPORT_WORKING)) | Q(lease_until__isnull=False),
                name="export_working_has_lease",
            ),
        )
        indexes = (
            models.Index(fields=["conversation_id", "created_at"], name="export_by_conversation"),
            models.Index(fields=["owner", "-created_at"], name="export_by_owner"),
            models.Index(fields=["state", "lease_until"], name="export_by_lease"),
        )

    def __str__(self) -> str:
        return self.reference


class ExportCall(models.Model):
    """A later call that meant the same and was given an export that was already on its way."""

    export = models.ForeignKey(Export, models.CASCADE, related_name="calls")
    call_id = models.UUIDField(unique=True)
    created_at = models.DateTimeField(default=timezone.now)

    def __str__(self) -> str:
        return "attached"
