"""The documents that customers got: what each says is kept as data and never changes.

A database trigger refuses to change or delete one (migration 0002), whoever asks.
"""

from __future__ import annotations

import uuid

from django.db import models
from django.db.models import F, Q

from payments.models import Customer, Payment, Refund
from payments.receipts.wording import DocumentKind


class Series(models.Model):
    """How far the numbers of one kind and year have come; its row is the lock of the series."""

    kind = models.CharField(max_length=20, choices=DocumentKind.choices)
    year = models.PositiveIntegerField()
    last = models.PositiveIntegerField(default=0)

    class Meta:
        default_permissions = ()
        constraints = (
            models.UniqueConstraint(fields=["kind", "year"], name="series_one_per_kind_and_year"),
        )

    def __str__(self) -> str:
        return f"{self.get_kind_display()} {self.year}: {self.last}"


class Document(models.Model):
    """One issued document. `content` is all that it says, in the customer's language.

    HTML and PDF are made from `content` and `issued_at` alone, so that a copy made years later
    says what the first one said.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    kind = models.CharField(max_length=20, choices=DocumentKind.choices)
    year = models.PositiveIntegerField()
    sequence = models.PositiveIntegerField()
    number = models.CharField(max_length=40, unique=True)
    customer = models.ForeignKey(Customer, on_delete=models.PROTECT, related_name="documents")
    payment = models.OneToOneField(
        Payment, on_delete=models.PROTECT, related_name="document", null=True, blank=True
    )
    refund = models.OneToOneField(
        Refund, on_delete=models.PROTECT, related_name="document", null=True, blank=True
    )
    language = models.CharField(max_length=10)
    content = models.JSONField()
    issued_at = models.DateTimeField()

    class Meta:
        default_permissions = ("view",)
        constraints = (
            models.UniqueConstraint(
                fields=["kind", "year", "sequence"], name="document_one_per_number"
            ),
            models.CheckConstraint(
                condition=Q(kind=DocumentKind.RECEIPT, payment__isnull=False, refund=None)
                | Q(kind=DocumentKind.REFUND_RECEIPT, payment=None, refund__isnull=False),
                name="document_of_one_thing",
            ),
        )
        indexes = (models.Index(F("issued_at").desc(), name="document_by_time"),)

    def __str__(self) -> str:
        return self.number
