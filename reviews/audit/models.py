"""What happened, one row each, and the chain over it. Triggers refuse every change of both.

Nothing refers to another table: a row must outlive whatever it names.
"""

from django.db import models
from django.db.models.functions import Now

from reviews.audit.words import Action, ActorKind, OriginKind


class Entry(models.Model):
    """One thing that somebody did, tried or looked at; written in the transaction that does it."""

    id = models.BigAutoField(primary_key=True)
    # The database's clock: a process cannot date a row back.
    at = models.DateTimeField(db_default=Now())
    action = models.CharField(max_length=40, choices=Action.choices)
    actor_kind = models.CharField(max_length=12, choices=ActorKind.choices)
    actor_id = models.BigIntegerField(null=True, blank=True)
    actor_name = models.CharField(max_length=200, blank=True)
    subject_kind = models.CharField(max_length=40, blank=True)
    subject_id = models.CharField(max_length=64, blank=True)
    reference = models.CharField(max_length=300, blank=True)
    rule = models.CharField(max_length=60, blank=True)
    before = models.JSONField(default=dict, blank=True)
    after = models.JSONField(default=dict, blank=True)
    run_id = models.UUIDField(null=True, blank=True)
    conversation_id = models.UUIDField(null=True, blank=True)
    call_id = models.UUIDField(null=True, blank=True)
    origin = models.CharField(max_length=12, choices=OriginKind.choices)
    address = models.GenericIPAddressField(null=True, blank=True)

    class Meta:
        ordering = ("-id",)
        default_permissions = ("view",)
        verbose_name = "audit entry"
        verbose_name_plural = "audit entries"
        indexes = (
            models.Index(fields=("subject_kind", "subject_id", "id"), name="audit_subject"),
            models.Index(fields=("actor_id", "id"), name="audit_actor"),
            models.Index(fields=("action", "id"), name="audit_action"),
            models.Index(fields=("at",), name="audit_at"),
        )

    def __str__(self) -> str:
        return f"{self.get_action_display()} {self.reference}".strip()


class Link(models.Model):
    """One entry's place in the chain; positions have no gap, whatever order entries came in."""

    position = models.BigIntegerField(primary_key=True)
    entry_id = models.BigIntegerField(unique=True)
    previous = models.CharField(max_length=64)
    digest = models.CharField(max_length=64)
    at = models.DateTimeField(db_default=Now())

    class Meta:
        ordering = ("position",)
        default_permissions = ()

    def __str__(self) -> str:
        return f"{self.position}:{self.digest}"


class Unlinked(models.Model):
    """An entry that has no place in the chain yet; a trigger adds it, the chaining task takes it.

    So the task looks at what is new only, and an entry that is committed late is found like any.
    """

    entry_id = models.BigIntegerField(primary_key=True)

    class Meta:
        default_permissions = ()

    def __str__(self) -> str:
        return str(self.entry_id)
