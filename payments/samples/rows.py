"""Store sample and imported records so that a second load changes nothing.

Every row has an id made from its reference; a row that is there already stays as it is, whatever
has happened to it since.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from django.db import models, transaction

from payments.models import Customer, Invoice, Payment, PaymentMethod, Refund, Team

NAMESPACE: Final = uuid.UUID("7f1d9a52-5d0c-4d53-9f0b-6f2f4c2a1a10")
BATCH: Final = 500
RowT = TypeVar("RowT", bound=models.Model)


def row_id(kind: str, key: str) -> uuid.UUID:
    """Return the id that belongs to this kind and key for ever."""
    return uuid.uuid5(NAMESPACE, f"{kind}:{key}")


def team_named(name: str) -> Team:
    """Return the team, made on first use."""
    team, _made = Team.objects.get_or_create(name=name)
    return team


@dataclass(slots=True)
class Rows:
    """Records to store together, parents before children."""

    customers: list[Customer] = field(default_factory=list)
    methods: list[PaymentMethod] = field(default_factory=list)
    invoices: list[Invoice] = field(default_factory=list)
    payments: list[Payment] = field(default_factory=list)
    refunds: list[Refund] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Stored:
    """How many records of each kind were new."""

    customers: int
    methods: int
    invoices: int
    payments: int
    refunds: int

    @property
    def total(self) -> int:
        """Return how many rows were new altogether."""
        return self.customers + self.methods + self.invoices + self.payments + self.refunds


def rows_store(rows: Rows) -> Stored:
    """Store what is not there yet, all or nothing; say how much that was."""
    with transaction.atomic():
        return Stored(
            customers=_add(Customer, rows.customers),
            methods=_add(PaymentMethod, rows.methods),
            invoices=_add(Invoice, rows.invoices),
            payments=_add(Payment, rows.payments),
            refunds=_add(Refund, rows.refunds),
        )


def _add(model: type[RowT], rows: Sequence[RowT]) -> int:
    manager = model._default_manager
    there = set(manager.filter(pk__in=[row.pk for row in rows]).values_list("pk", flat=True))
    fresh = [row for row in rows if row.pk not in there]
    manager.bulk_create(fresh, batch_size=BATCH)
    return len(fresh)
