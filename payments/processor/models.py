"""The processor's events as they came in, and every comparison of its books with ours."""

from __future__ import annotations

from django.db import models
from django.db.models import F, Q
from django.utils import timezone

from payments.processor.states import Result


class ProcessorEvent(models.Model):
    """One event of the processor; the id is its own, so that a repeat is no second row.

    `body` has the fields of its object that the ledger reads, and nothing else of it: no names and
    no addresses. `handled_at` is empty until the ledger has it.
    """

    id = models.CharField(max_length=120, primary_key=True)
    gateway = models.CharField(max_length=40)
    kind = models.CharField(max_length=80)
    object_ref = models.CharField(max_length=120, blank=True)
    body = models.JSONField(default=dict, blank=True)
    made_at = models.DateTimeField(null=True, blank=True)
    received_at = models.DateTimeField(default=timezone.now)
    handled_at = models.DateTimeField(null=True, blank=True)
    tries = models.PositiveIntegerField(default=0)
    next_try_at = models.DateTimeField(default=timezone.now)
    outcome = models.CharField(max_length=20, blank=True, default="")

    class Meta:
        db_table = "processor_event"
        default_permissions = ("view",)
        verbose_name = "event"
        indexes = (
            models.Index(
                fields=["next_try_at"], condition=Q(handled_at=None), name="event_open_by_next_try"
            ),
            models.Index(fields=["received_at"], name="event_by_time"),
            models.Index(fields=["object_ref"], name="event_by_object"),
        )

    def __str__(self) -> str:
        return f"{self.kind} {self.object_ref}"


class Reconciliation(models.Model):
    """One comparison of a period: what was counted, what differed and what was put right.

    `findings` are facts, the first of them if there are very many; `counts` counts all. `daily`:
    the beat's, of which there is one for each end of a period that came to a result.
    """

    gateway = models.CharField(max_length=40)
    since = models.DateTimeField()
    until = models.DateTimeField()
    result = models.CharField(max_length=20, choices=Result.choices, default=Result.RUNNING)
    daily = models.BooleanField(default=False)
    applied = models.BooleanField(default=False)
    compared = models.PositiveIntegerField(default=0)
    counts = models.JSONField(default=dict, blank=True)
    totals = models.JSONField(default=list, blank=True)
    findings = models.JSONField(default=list, blank=True)
    open_findings = models.PositiveIntegerField(default=0)
    repaired = models.PositiveIntegerField(default=0)
    begun_at = models.DateTimeField(default=timezone.now)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        default_permissions = ("view",)
        constraints = (
            models.CheckConstraint(
                condition=Q(result__in=Result.values), name="reconciliation_result_known"
            ),
            models.CheckConstraint(
                condition=Q(since__lt=F("until")), name="reconciliation_period_forward"
            ),
            models.UniqueConstraint(
                fields=["gateway", "until"],
                condition=Q(daily=True) & ~Q(result=Result.SILENT),
                name="reconciliation_one_a_day",
            ),
        )
        indexes = (models.Index(F("begun_at").desc(), name="reconciliation_by_time"),)

    def __str__(self) -> str:
        return f"{self.since:%Y-%m-%d} – {self.until:%Y-%m-%d}: {self.get_result_display()}"
