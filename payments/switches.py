"""What holds new effects back for everybody: a resting gateway, and operations' pause.

Their own module only for its length; the rest of the project takes them from `payments.models`.
"""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from payments.states import Operation


class Breaker(models.Model):
    """How a gateway answers, for all processes: its streak of failures, and until when it rests.

    `rests_until` is empty while new effects may begin. Once it has passed one of them may, until
    `probe_until` is over. `refused_at`: since when the processor refuses our access.
    """

    gateway = models.CharField(max_length=40, primary_key=True)
    failures = models.PositiveIntegerField(default=0)
    since = models.DateTimeField(default=timezone.now)
    rests_until = models.DateTimeField(null=True, blank=True)
    probe_until = models.DateTimeField(null=True, blank=True)
    refused_at = models.DateTimeField(null=True, blank=True)
    refused_reference = models.CharField(max_length=20, blank=True)

    def __str__(self) -> str:
        return self.gateway


class Pause(models.Model):
    """A time in which operations let nothing new of an operation begin: who, when and why.

    The row stays as it is once it is over; the one that is not over is the switch.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    operation = models.CharField(max_length=20, choices=Operation.choices)
    reason = models.CharField(max_length=300)
    paused_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    paused_at = models.DateTimeField(default=timezone.now)
    resumed_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+", null=True, blank=True
    )
    resumed_at = models.DateTimeField(null=True, blank=True)
    resumed_reason = models.CharField(max_length=300, blank=True)

    class Meta:
        ordering = ("-paused_at",)
        permissions = (("pause_refunds", "Can pause all refunds and let them go on"),)
        constraints = (
            models.UniqueConstraint(
                fields=["operation"],
                condition=Q(resumed_at=None),
                name="pause_one_open_per_operation",
            ),
            models.CheckConstraint(
                condition=Q(operation__in=Operation.values), name="pause_operation_known"
            ),
            models.CheckConstraint(
                condition=Q(resumed_at=None, resumed_by=None)
                | Q(resumed_at__isnull=False, resumed_by__isnull=False),
                name="pause_resumed_by_someone",
            ),
        )

    def __str__(self) -> str:
        return f"{self.get_operation_display()} paused"
