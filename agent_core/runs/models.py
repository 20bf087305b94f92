"""Rows of the durable host: what was said, what ran, what came of it, and why it ended.

A field that comes after the first migration has a `db_default` beside its default: while a new
version is rolled out, processes of the one before write rows without it.
"""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models
from django.db.models import Q

from agent_core.runs.states import RUN_WORKING, CallState, Role, RunState, StopMode

CONVERSATION_STOP_MODES = (StopMode.HARD, StopMode.POLISH)
"""What a conversation may choose; `never` is for single runs of people who may measure."""


class Conversation(models.Model):
    """One chat of one staff member, bound to at most one customer (by UUID, never by key)."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    customer_id = models.UUIDField(null=True, blank=True)
    customer_label = models.CharField(max_length=200, blank=True)
    title = models.CharField(max_length=200, blank=True)
    language = models.CharField(max_length=10, default="en")
    # How its runs end; empty as the site's setting says.
    stop_mode = models.CharField(
        max_length=10,
        blank=True,
        default="",
        db_default="",
        choices=[(mode.value, mode.label) for mode in CONVERSATION_STOP_MODES],
    )
    created_at = models.DateTimeField(auto_now_add=True)
    updated_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = (
            models.CheckConstraint(
                condition=Q(stop_mode__in=("", *CONVERSATION_STOP_MODES)),
                name="conversation_stop_mode_known",
            ),
        )
        indexes = (models.Index(fields=["owner", "-updated_at"]),)

    def __str__(self) -> str:
        return self.title or f"Conversation of {self.created_at:%Y-%m-%d %H:%M}"


class Message(models.Model):
    """One line of the transcript. `stub` is what the model's window holds instead of `text`."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    conversation = models.ForeignKey(Conversation, models.CASCADE, related_name="messages")
    run = models.ForeignKey("Run", models.SET_NULL, null=True, blank=True, related_name="answers")
    position = models.PositiveIntegerField()
    role = models.CharField(max_length=10, choices=Role.choices)
    text = models.TextField()
    stub = models.TextField(blank=True)
    # What the sender's page sent along, so that a double click is one message.
    client_key = models.UUIDField(null=True, blank=True)
    # Keeps a notice that is posted again by a retried task from standing twice.
    dedupe = models.CharField(max_length=120, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    # While it waited in line; the events keep what it said before.
    edited_at = models.DateTimeField(null=True, blank=True)
    # Taken back before anybody read it: kept for the record, shown to no model, nobody's words.
    removed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("position",)
        constraints = (
            models.UniqueConstraint(
                fields=["conversation", "position"], name="message_position_unique"
            ),
            models.UniqueConstraint(
                fields=["conversation", "client_key"],
                condition=Q(client_key__isnull=False),
                name="message_client_key_unique",
            ),
            models.UniqueConstraint(
                fields=["conversation", "dedupe"],
                condition=~Q(dedupe=""),
                name="message_dedupe_unique",
            ),
        )

    def __str__(self) -> str:
        return f"{self.get_role_display()} {self.position}"


class Run(models.Model):
    """One message worked off. Its id is the LangGraph thread id; `attempt` fences every write."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    conversation = models.ForeignKey(Conversation, models.CASCADE, related_name="runs")
    requester = models.ForeignKey(settings.AUTH_USER_MODEL, models.PROTECT, related_name="+")
    message = models.ForeignKey(Message, models.PROTECT, related_name="runs")
    continues = models.OneToOneField(
        "self", models.PROTECT, null=True, blank=True, related_name="continued_by"
    )
    state = models.CharField(max_length=10, choices=RunState.choices, default=RunState.PENDING)
    attempt = models.PositiveIntegerField(default=0)
    lease_until = models.DateTimeField(null=True, blank=True)
    # The node name of the process that claimed it last, for the operator's eyes.
    worker = models.CharField(max_length=100, blank=True, default="", db_default="")
    # Deaths of a worker while it held this run alone in quarantine.
    strikes = models.PositiveSmallIntegerField(default=0)
    quarantined = models.BooleanField(default=False)
    cancel_requested_at = models.DateTimeField(null=True, blank=True)
    language = models.CharField(max_length=10, default="en")
    stop_mode = models.CharField(max_length=10, choices=StopMode.choices, default=StopMode.HARD)
    model = models.CharField(max_length=100, blank=True)
    # Seconds of work in earlier attempts; waiting for people is not counted.
    worked_seconds = models.PositiveIntegerField(default=0)
    failure_reference = models.CharField(max_length=20, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)
    claimed_at = models.DateTimeField(null=True, blank=True)
    # When it was last put into a queue; a lost message is sent again, but not at every tick.
    enqueued_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("created_at",)
        permissions = (
            ("view_all_runs", "Can see the runs of every staff member"),
            ("measure_runs", "Can let a run go on where it would stop, to measure"),
            ("operate", "Can see how all work stands and send work on its way again"),
        )
        constraints = (
            models.UniqueConstraint(
                fields=["conversation"],
                condition=Q(state__in=sorted(RUN_WORKING)),
                name="run_one_working_per_conversation",
            ),
            models.CheckConstraint(
                condition=Q(state=RunState.RUNNING, lease_until__isnull=False)
                | (~Q(state=RunState.RUNNING) & Q(lease_until__isnull=True)),
                name="run_lease_only_while_running",
            ),
            models.CheckConstraint(
                condition=Q(stop_mode__in=StopMode.values), name="run_stop_mode_known"
            ),
        )
        indexes = (models.Index(fields=["state", "lease_until"]),)

    def __str__(self) -> str:
        return f"Run of {self.created_at:%Y-%m-%d %H:%M} ({self.get_state_display()})"


class Call(models.Model):
    """One tool call of a run, keyed by the id that we minted when the model's message arrived."""

    id = models.UUIDField(primary_key=True, editable=False)
    run = models.ForeignKey(Run, models.CASCADE, related_name="calls")
    batch = models.PositiveSmallIntegerField()
    position = models.PositiveSmallIntegerField()
    tool = models.CharField(max_length=64)
    arguments = models.JSONField(default=dict)
    state = models.CharField(max_length=10, choices=CallState.choices, default=CallState.QUEUED)
    verdict = models.CharField(max_length=10, blank=True)
    rule = models.CharField(max_length=64, blank=True)
    # Plain words for staff: what is being done, and what came of it.
    label = models.CharField(max_length=200)
    content = models.TextField(blank=True)
    outcome = models.JSONField(null=True, blank=True)
    review_id = models.UUIDField(null=True, blank=True)
    # The business identity of an effect: what a retry must not do again.
    identity = models.CharField(max_length=64, blank=True)
    effect = models.BooleanField(default=False)
    started_at = models.DateTimeField(null=True, blank=True)
    ended_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        ordering = ("batch", "position")
        constraints = (
            models.UniqueConstraint(fields=["run", "batch", "position"], name="call_place_unique"),
        )

    def __str__(self) -> str:
        return self.label


class ModelCall(models.Model):
    """One call of the model: which, how long, how many tokens."""

    id = models.BigAutoField(primary_key=True)
    run = models.ForeignKey(Run, models.CASCADE, related_name="model_calls")
    attempt = models.PositiveIntegerField()
    number = models.PositiveSmallIntegerField()
    model = models.CharField(max_length=100)
    input_tokens = models.PositiveIntegerField(default=0)
    output_tokens = models.PositiveIntegerField(default=0)
    milliseconds = models.PositiveIntegerField(default=0)
    finish_reason = models.CharField(max_length=40, blank=True)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("number", "attempt")
        constraints = (
            models.UniqueConstraint(
                fields=["run", "attempt", "number"], name="model_call_number_unique"
            ),
        )

    def __str__(self) -> str:
        return f"Model call {self.number}"


class StopRecord(models.Model):
    """Why a run ended: rule, evidence, what it took and what it saved. Exactly one for each run."""

    run = models.OneToOneField(Run, models.CASCADE, related_name="stop", primary_key=True)
    rule = models.CharField(max_length=20)
    evidence = models.JSONField(default=dict)
    headline = models.TextField(blank=True)
    done = models.JSONField(default=list)
    not_done = models.JSONField(default=list)
    model_calls_made = models.PositiveSmallIntegerField(default=0)
    model_calls_saved = models.PositiveSmallIntegerField(default=0)
    # Input tokens of the one model call that was not made; estimated if the model cannot count.
    tokens_saved = models.PositiveIntegerField(default=0, db_default=0)
    tokens_estimated = models.BooleanField(default=False, db_default=False)
    created_at = models.DateTimeField(auto_now_add=True)

    def __str__(self) -> str:
        return self.rule


class Event(models.Model):
    """One durable event of a conversation; its id is the browser's Last-Event-ID."""

    id = models.BigAutoField(primary_key=True)
    conversation = models.ForeignKey(Conversation, models.CASCADE, related_name="events")
    run = models.ForeignKey(Run, models.CASCADE, null=True, blank=True, related_name="events")
    attempt = models.PositiveIntegerField(default=0)
    kind = models.CharField(max_length=20)
    payload = models.JSONField(default=dict)
    created_at = models.DateTimeField(auto_now_add=True)

    class Meta:
        ordering = ("id",)
        indexes = (models.Index(fields=["conversation", "id"]),)

    def __str__(self) -> str:
        return self.kind
