"""A ticket and its notes. Customer, payment, team and conversation are named by UUID, never by key.

Texts are plain text and stay as they were written; every page that shows them escapes them.
"""

import uuid

from django.conf import settings
from django.db import models
from django.db.models import Q

from tickets.states import Priority, State

SUBJECT_LENGTH = 200


class Ticket(models.Model):
    """Something that somebody has to look at; one per conversation and identity."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    reference = models.CharField(max_length=20, unique=True)
    subject = models.CharField(max_length=SUBJECT_LENGTH)
    body = models.TextField(blank=True)
    state = models.CharField(max_length=10, choices=State.choices, default=State.OPEN)
    priority = models.CharField(max_length=10, choices=Priority.choices, default=Priority.NORMAL)
    team_id = models.UUIDField(null=True, blank=True, db_index=True)
    customer_id = models.UUIDField(null=True, blank=True, db_index=True)
    conversation_id = models.UUIDField()
    payment_id = models.UUIDField(null=True, blank=True, db_index=True)
    payment_reference = models.CharField(max_length=60, blank=True)
    requester = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="tickets"
    )
    call_id = models.UUIDField(null=True, blank=True, unique=True)
    identity = models.CharField(max_length=64)
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ("-created_at",)
        constraints = (
            models.UniqueConstraint(
                fields=("conversation_id", "identity"), name="ticket_conversation_identity"
            ),
            models.CheckConstraint(condition=Q(state__in=State.values), name="ticket_state_known"),
            # Nothing that could end a line may stand in what other programs take for a header.
            models.CheckConstraint(
                condition=~Q(subject="") & ~Q(subject__regex=r"[\x01-\x1f\x7f\u0085\u2028\u2029]"),
                name="ticket_subject_one_line",
            ),
        )

    def __str__(self) -> str:
        return f"{self.reference}: {self.subject}"


class Note(models.Model):
    """What somebody added to a ticket later; rows are only ever added."""

    id = models.BigAutoField(primary_key=True)
    ticket = models.ForeignKey(Ticket, on_delete=models.PROTECT, related_name="notes")
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="ticket_notes"
    )
    text = models.TextField()
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("id",)

    def __str__(self) -> str:
        return self.text[:60]
