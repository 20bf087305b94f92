"""The ledger's rows: who pays, what is owed, what was paid and given back, and what is wanted.

Fields, constraints and names only; every change of state goes through `payments.services`.
"""

from __future__ import annotations

import uuid

from django.conf import settings
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Lower
from django.utils import timezone

from payments.states import (
    DisputeState,
    IntentState,
    InvoiceState,
    MethodKind,
    Operation,
    PaymentState,
    RefundOrigin,
    RefundState,
)
from payments.switches import Breaker, Pause

__all__ = [
    "Breaker",
    "Customer",
    "Dispute",
    "Intent",
    "IntentCall",
    "Invoice",
    "Pause",
    "Payment",
    "PaymentMethod",
    "Refund",
    "Team",
]

CURRENCY = Q(currency__regex=r"^[A-Z]{3}$")


class Team(models.Model):
    """A group of staff members who see the same customers."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=100, unique=True)
    members = models.ManyToManyField(settings.AUTH_USER_MODEL, related_name="teams", blank=True)

    def __str__(self) -> str:
        return self.name


class Customer(models.Model):
    """A person or firm that pays; belongs to one team."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    reference = models.CharField(max_length=40, unique=True)
    team = models.ForeignKey(Team, on_delete=models.PROTECT, related_name="customers")
    name = models.CharField(max_length=200)
    email = models.EmailField(max_length=254)
    language = models.CharField(max_length=10, default="en")
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        constraints = (models.UniqueConstraint(Lower("email"), name="customer_email_unique"),)

    def __str__(self) -> str:
        return f"{self.name} ({self.reference})"


class PaymentMethod(models.Model):
    """A saved way to pay. `processor_ref` is the processor's token and is shown to nobody."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    customer = models.ForeignKey(Customer, on_delete=models.PROTECT, related_name="methods")
    kind = models.CharField(max_length=20, choices=MethodKind.choices, default=MethodKind.CARD)
    brand = models.CharField(max_length=40, blank=True)
    last4 = models.CharField(max_length=4, blank=True)
    processor_ref = models.CharField(max_length=120)
    is_default = models.BooleanField(default=False)

    class Meta:
        constraints = (
            models.UniqueConstraint(
                fields=["customer"], condition=Q(is_default=True), name="method_one_default"
            ),
        )

    def __str__(self) -> str:
        words = [self.brand or self.get_kind_display()]
        if self.last4:
            words.append(f"ending in {self.last4}")
        return " ".join(words)


class Invoice(models.Model):
    """What a customer owes; charged in full or not at all.

    `tax_minor` is the tax that `amount_minor` contains, at a rate in hundredths of a percent.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    reference = models.CharField(max_length=40, unique=True)
    customer = models.ForeignKey(Customer, on_delete=models.PROTECT, related_name="invoices")
    description = models.CharField(max_length=300, blank=True)
    amount_minor = models.BigIntegerField()
    currency = models.CharField(max_length=3)
    tax_minor = models.BigIntegerField(null=True, blank=True)
    tax_rate_basis_points = models.PositiveIntegerField(null=True, blank=True)
    state = models.CharField(max_length=20, choices=InvoiceState.choices, default=InvoiceState.OPEN)
    issued_on = models.DateField()
    due_on = models.DateField()

    class Meta:
        constraints = (
            models.CheckConstraint(condition=Q(amount_minor__gt=0), name="invoice_amount_positive"),
            models.CheckConstraint(condition=CURRENCY, name="invoice_currency_code"),
            models.CheckConstraint(
                condition=Q(state__in=InvoiceState.values), name="invoice_state_known"
            ),
            models.CheckConstraint(
                condition=Q(tax_minor=None, tax_rate_basis_points=None)
                | Q(
                    tax_minor__gte=0,
                    tax_minor__lte=F("amount_minor"),
                    tax_rate_basis_points__lte=10_000,
                ),
                name="invoice_tax_within_amount",
            ),
        )
        indexes = (models.Index(fields=["customer", "state"], name="invoice_by_customer"),)

    def __str__(self) -> str:
        return self.reference


class Intent(models.Model):
    """One outside effect that is wanted: committed before it is tried, settled once.

    `body` and `idempotency_key` are what is sent, at every try. `target_id` is the invoice of a
    charge and the payment of a refund. `call_id` is the call that made it; calls that attached
    are rows of IntentCall.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    operation = models.CharField(max_length=20, choices=Operation.choices)
    target_id = models.UUIDField()
    amount_minor = models.BigIntegerField()
    currency = models.CharField(max_length=3)
    state = models.CharField(max_length=20, choices=IntentState.choices, default=IntentState.OPEN)
    gateway = models.CharField(max_length=40)
    idempotency_key = models.CharField(max_length=100, unique=True)
    body = models.JSONField()
    call_id = models.UUIDField(unique=True, null=True, blank=True)
    run_id = models.UUIDField(null=True, blank=True)
    attempt = models.PositiveIntegerField(default=0)
    conversation_id = models.UUIDField(null=True, blank=True)
    review_id = models.UUIDField(unique=True, null=True, blank=True)
    requester = models.ForeignKey(
        settings.AUTH_USER_MODEL, on_delete=models.PROTECT, related_name="+"
    )
    tries = models.PositiveIntegerField(default=0)
    next_try_at = models.DateTimeField()
    unknown_at = models.DateTimeField(null=True, blank=True)
    processor_ref = models.CharField(max_length=120, blank=True)
    failure_code = models.CharField(max_length=60, blank=True)
    # What the bank said; only for those with the right, and in no text.
    decline_code = models.CharField(max_length=60, blank=True, default="", db_default="")
    result = models.JSONField(default=dict, blank=True)
    created_at = models.DateTimeField(default=timezone.now)
    settled_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        permissions = (("view_decline_code", "Can see why a bank declined a card"),)
        constraints = (
            models.UniqueConstraint(
                fields=["operation", "target_id"],
                condition=Q(state=IntentState.OPEN),
                name="intent_one_open_per_target",
            ),
            models.CheckConstraint(condition=Q(amount_minor__gt=0), name="intent_amount_positive"),
            models.CheckConstraint(condition=CURRENCY, name="intent_currency_code"),
            models.CheckConstraint(
                condition=Q(state__in=IntentState.values), name="intent_state_known"
            ),
            models.CheckConstraint(
                condition=Q(operation__in=Operation.values), name="intent_operation_known"
            ),
            models.CheckConstraint(
                condition=Q(state=IntentState.OPEN, settled_at=None)
                | (~Q(state=IntentState.OPEN) & Q(settled_at__isnull=False)),
                name="intent_settled_has_time",
            ),
            # Whoever writes the row: money goes back only for a review.
            models.CheckConstraint(
                condition=~Q(operation=Operation.REFUND) | Q(review_id__isnull=False),
                name="intent_refund_has_review",
            ),
        )
        indexes = (
            models.Index(
                fields=["next_try_at"],
                condition=Q(state=IntentState.OPEN),
                name="intent_open_by_next_try",
            ),
            models.Index(fields=["operation", "target_id"], name="intent_by_target"),
            models.Index(fields=["requester", "created_at"], name="intent_by_requester"),
        )

    def __str__(self) -> str:
        return f"{self.get_operation_display()} {self.get_state_display()}"


class IntentCall(models.Model):
    """A call that wanted an intent: the one that made it and each that attached to it.

    `waiting`: its conversation was told that the outcome is being checked and is owed a message.
    """

    intent = models.ForeignKey(Intent, on_delete=models.CASCADE, related_name="calls")
    call_id = models.UUIDField(unique=True, null=True, blank=True)
    conversation_id = models.UUIDField(null=True, blank=True)
    attached = models.BooleanField(default=False)
    waiting = models.BooleanField(default=False)
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        indexes = (
            models.Index(fields=["intent"], condition=Q(waiting=True), name="intentcall_waiting"),
        )

    def __str__(self) -> str:
        return "attached" if self.attached else "made"


class Payment(models.Model):
    """Money that a customer paid, or tried to.

    `disputed`: at least one dispute is open or lost, and the bank has `disputed_minor` of it.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    reference = models.CharField(max_length=40, unique=True)
    customer = models.ForeignKey(Customer, on_delete=models.PROTECT, related_name="payments")
    invoice = models.ForeignKey(
        Invoice, on_delete=models.PROTECT, related_name="payments", null=True, blank=True
    )
    method = models.ForeignKey(PaymentMethod, on_delete=models.PROTECT, related_name="payments")
    intent = models.OneToOneField(
        Intent, on_delete=models.PROTECT, related_name="payment", null=True, blank=True
    )
    amount_minor = models.BigIntegerField()
    currency = models.CharField(max_length=3)
    state = models.CharField(
        max_length=20, choices=PaymentState.choices, default=PaymentState.SUCCEEDED
    )
    disputed = models.BooleanField(default=False)
    disputed_minor = models.BigIntegerField(default=0, db_default=0)
    processor_ref = models.CharField(max_length=120, blank=True)
    paid_at = models.DateTimeField()

    class Meta:
        permissions = (
            ("request_charge", "Can ask for a charge"),
            ("request_refund", "Can ask for a refund"),
        )
        constraints = (
            models.CheckConstraint(condition=Q(amount_minor__gt=0), name="payment_amount_positive"),
            models.CheckConstraint(condition=CURRENCY, name="payment_currency_code"),
            models.CheckConstraint(
                condition=Q(state__in=PaymentState.values), name="payment_state_known"
            ),
            # Two charges at once make one, whatever the code above believes.
            models.UniqueConstraint(
                fields=["invoice"],
                condition=Q(state=PaymentState.SUCCEEDED),
                name="payment_one_per_invoice",
            ),
            models.UniqueConstraint(
                fields=["processor_ref"],
                condition=~Q(processor_ref=""),
                name="payment_processor_ref_unique",
            ),
        )
        indexes = (
            models.Index(fields=["customer", "-paid_at"], name="payment_by_customer"),
            models.Index(F("paid_at"), name="payment_by_time"),
        )

    def __str__(self) -> str:
        return self.reference


class Refund(models.Model):
    """Money given back, or on its way; `next_look_at`: when it is asked about again.

    `review_id` is empty for refunds of earlier days and for those made at the processor.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    reference = models.CharField(max_length=40, unique=True)
    payment = models.ForeignKey(Payment, on_delete=models.PROTECT, related_name="refunds")
    intent = models.OneToOneField(
        Intent, on_delete=models.PROTECT, related_name="refund", null=True, blank=True
    )
    amount_minor = models.BigIntegerField()
    currency = models.CharField(max_length=3)
    reason = models.CharField(max_length=500, blank=True)
    state = models.CharField(
        max_length=20, choices=RefundState.choices, default=RefundState.SENDING
    )
    review_id = models.UUIDField(unique=True, null=True, blank=True)
    requested_by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.PROTECT,
        related_name="+",
        null=True,
        blank=True,
    )
    origin = models.CharField(
        max_length=20,
        choices=RefundOrigin.choices,
        default=RefundOrigin.DESK,
        db_default=RefundOrigin.DESK,
    )
    processor_ref = models.CharField(max_length=120, blank=True)
    failure_code = models.CharField(max_length=60, blank=True, default="", db_default="")
    created_at = models.DateTimeField(default=timezone.now)
    accepted_at = models.DateTimeField(null=True, blank=True)
    settled_at = models.DateTimeField(null=True, blank=True)
    failed_at = models.DateTimeField(null=True, blank=True)
    looks = models.PositiveIntegerField(default=0, db_default=0)
    next_look_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = (
            models.CheckConstraint(condition=Q(amount_minor__gt=0), name="refund_amount_positive"),
            models.CheckConstraint(
                condition=Q(origin__in=RefundOrigin.values), name="refund_origin_known"
            ),
            # Only what the processor told of by name can have been made there.
            models.CheckConstraint(
                condition=~Q(origin=RefundOrigin.OUTSIDE)
                | (Q(intent=None, review_id=None) & ~Q(processor_ref="")),
                name="refund_outside_is_named",
            ),
            models.CheckConstraint(condition=CURRENCY, name="refund_currency_code"),
            models.CheckConstraint(
                condition=Q(state__in=RefundState.values), name="refund_state_known"
            ),
            models.CheckConstraint(
                condition=Q(intent=None) | Q(review_id__isnull=False),
                name="refund_sent_has_review",
            ),
            models.UniqueConstraint(
                fields=["processor_ref"],
                condition=~Q(processor_ref=""),
                name="refund_processor_ref_unique",
            ),
        )
        indexes = (
            models.Index(fields=["payment", "state"], name="refund_by_payment"),
            models.Index(
                fields=["next_look_at"],
                condition=Q(state=RefundState.ACCEPTED),
                name="refund_accepted_by_look",
            ),
        )

    def __str__(self) -> str:
        return self.reference


class Dispute(models.Model):
    """A customer's objection at their bank, as the processor tells of it; ours to read only."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    payment = models.ForeignKey(Payment, on_delete=models.PROTECT, related_name="disputes")
    processor_ref = models.CharField(max_length=120, unique=True)
    amount_minor = models.BigIntegerField()
    currency = models.CharField(max_length=3)
    state = models.CharField(max_length=20, choices=DisputeState.choices, default=DisputeState.OPEN)
    created_at = models.DateTimeField(default=timezone.now)
    closed_at = models.DateTimeField(null=True, blank=True)

    class Meta:
        constraints = (
            models.CheckConstraint(condition=Q(amount_minor__gt=0), name="dispute_amount_positive"),
            models.CheckConstraint(condition=CURRENCY, name="dispute_currency_code"),
            models.CheckConstraint(
                condition=Q(state__in=DisputeState.values), name="dispute_state_known"
            ),
        )

    def __str__(self) -> str:
        return f"{self.payment_id} {self.get_state_display()}"
