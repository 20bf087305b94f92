"""A review and every try to decide it. Other records are named by kind and UUID, never by key.

The constraints repeat what the services check: four eyes, one accepted decision, no approval that
is used before it is given.
"""

import uuid

from django.conf import settings
from django.db import models
from django.db.models import F, Q, Value

from reviews.states import Channel, Decision, State


class Review(models.Model):
    """One human decision about one call; `version` is the one that is asked for, or was approved.

    `original` keeps the arguments as they were asked, `changes` what a person changed in them.
    `proposed_version` never moves, so that a gate that runs again finds its own row.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    kind = models.CharField(max_length=40)
    subject_id = models.UUIDField(null=True, blank=True)
    subject_hash = models.CharField(max_length=128)
    run_id = models.UUIDField()
    call_id = models.UUIDField()
    conversation_id = models.UUIDField()
    version = models.PositiveIntegerField(default=1)
    proposed_version = models.PositiveIntegerField(default=1)
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="reviews_requested"
    )
    editor = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="reviews_raised",
    )
    requester_decides = models.BooleanField(default=False)
    team_id = models.UUIDField(null=True, blank=True)
    title = models.CharField(max_length=300)
    button = models.CharField(max_length=120)
    # What sent the call to a person, and what to be careful about; rows of earlier days name none.
    rule = models.CharField(max_length=60, blank=True, default="", db_default="")
    flags = models.JSONField(default=list, db_default=Value([], models.JSONField()))
    amount_minor = models.BigIntegerField(null=True, blank=True)
    currency = models.CharField(max_length=3, blank=True)
    card = models.JSONField(default=list)
    warnings = models.JSONField(default=list)
    fields = models.JSONField(default=dict)
    original = models.JSONField(default=dict)
    changes = models.JSONField(default=dict)
    state = models.CharField(max_length=12, choices=State.choices, default=State.PENDING)
    expires_at = models.DateTimeField()
    decided_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        null=True,
        blank=True,
        related_name="reviews_decided",
    )
    decided_at = models.DateTimeField(null=True, blank=True)
    sentence = models.TextField(blank=True)
    note = models.TextField(blank=True)
    consumed_at = models.DateTimeField(null=True, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("-created_at",)
        permissions = (("decide_review", "Can decide a review"),)
        indexes = (
            models.Index(fields=("expires_at",), condition=Q(state="pending"), name="review_due"),
            models.Index(fields=("run_id",), name="review_run"),
            models.Index(fields=("kind", "subject_id", "state"), name="review_subject"),
            models.Index(fields=("requested_by", "created_at"), name="review_requester"),
        )
        constraints = (
            models.UniqueConstraint(fields=("call_id", "version"), name="review_call_version"),
            models.UniqueConstraint(
                fields=("call_id", "proposed_version"), name="review_call_proposed"
            ),
            models.CheckConstraint(condition=Q(state__in=State.values), name="review_state_known"),
            models.CheckConstraint(
                condition=Q(state="pending", decided_at__isnull=True)
                | (~Q(state="pending") & Q(decided_at__isnull=False)),
                name="review_decided_when_final",
            ),
            models.CheckConstraint(
                condition=Q(decided_by__isnull=False)
                | ~Q(state__in=("approved", "rejected", "withdrawn")),
                name="review_decided_by_someone",
            ),
            models.CheckConstraint(
                condition=~Q(state="approved")
                | Q(requester_decides=True, decided_by=F("requested_by"))
                | (
                    Q(requester_decides=False)
                    & ~Q(decided_by=F("requested_by"))
                    & (Q(editor__isnull=True) | ~Q(decided_by=F("editor")))
                ),
                name="review_four_eyes",
            ),
            models.CheckConstraint(
                condition=Q(requester_decides=False) | Q(kind="charge"),
                name="review_confirmed_kind",
            ),
            models.CheckConstraint(
                condition=Q(consumed_at__isnull=True) | Q(state="approved"),
                name="review_used_when_approved",
            ),
            models.CheckConstraint(
                condition=Q(amount_minor__isnull=True) | Q(amount_minor__gt=0),
                name="review_amount_positive",
            ),
        )

    def __str__(self) -> str:
        return self.title


class ReviewDecision(models.Model):
    """One try to decide a review, accepted or refused; rows are only ever added."""

    id = models.BigAutoField(primary_key=True)
    review = models.ForeignKey(Review, on_delete=models.PROTECT, related_name="decisions")
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="review_decisions"
    )
    decision = models.CharField(max_length=12, choices=Decision.choices)
    accepted = models.BooleanField()
    refused_because = models.CharField(max_length=60, blank=True)
    note = models.TextField(blank=True)
    sentence = models.TextField(blank=True)
    changes = models.JSONField(default=dict)
    channel = models.CharField(max_length=12, choices=Channel.choices)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("id",)
        default_permissions = ("view",)
        constraints = (
            # A raise leaves the review open, so it is not the one final decision.
            models.UniqueConstraint(
                fields=("review",),
                condition=Q(accepted=True) & ~Q(decision="raise"),
                name="review_one_accepted",
            ),
            models.CheckConstraint(
                condition=Q(accepted=True, refused_because="")
                | (Q(accepted=False) & ~Q(refused_because="")),
                name="review_refused_why",
            ),
        )

    def __str__(self) -> str:
        return self.get_decision_display()
