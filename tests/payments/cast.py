"""The ledger's cast: Ana asks, Lea approves; a customer of their team with one payment of 100.00.

Reviews are written as approved rows: how people decide is tested with the reviews.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

from django.contrib.auth.models import User
from django.utils import timezone

from agent_core.contract import RunContext
from payments.models import Customer, Invoice, Payment, PaymentMethod, Team
from payments.sandbox.tokens import earlier_ref, method_token
from payments.states import Operation, subject_hash
from reviews.models import Review

NOTICES: list[tuple[UUID, str, str]] = []


def notice_post(conversation_id: UUID, said: Callable[[], str], dedupe: str) -> None:
    """Stand where the host's notices are, and keep what was posted."""
    NOTICES.append((conversation_id, said(), dedupe))


class Desk:
    """Everything a ledger test starts from; made anew in each database."""

    def __init__(self, *, fault: str = "", currency: str = "EUR", amount: int = 10_000) -> None:
        self.ana = User.objects.create_user(f"ana-{uuid4().hex[:8]}")
        self.lea = User.objects.create_user(f"lea-{uuid4().hex[:8]}")
        self.team = Team.objects.create(name=f"Team {uuid4().hex[:8]}")
        self.customer = Customer.objects.create(
            reference=f"CUS-{uuid4().hex[:8]}",
            team=self.team,
            name="Good Card",
            email=f"{uuid4().hex[:8]}@example.com",
        )
        self.method = PaymentMethod.objects.create(
            customer=self.customer,
            brand="Visa",
            last4="4242",
            processor_ref=method_token(uuid4().hex[:8], fault),
            is_default=True,
        )
        self.fault = fault
        self.payment = self.paid(amount, currency)

    def paid(self, amount: int = 10_000, currency: str = "EUR", **more: Any) -> Payment:
        """Record a payment of earlier days, which the processor knows too."""
        reference = earlier_ref(uuid4().hex[:12], amount, currency, fault=self.fault)
        values = {"processor_ref": reference, "paid_at": timezone.now()} | more
        return Payment.objects.create(
            reference=f"PAY-{uuid4().hex[:8].upper()}",
            customer=self.customer,
            method=self.method,
            amount_minor=amount,
            currency=currency,
            **values,
        )

    def owed(self, amount: int = 2_500, currency: str = "EUR", **more: Any) -> Invoice:
        """Write an open invoice."""
        return Invoice.objects.create(
            reference=f"INV-{uuid4().hex[:8].upper()}",
            customer=self.customer,
            amount_minor=amount,
            currency=currency,
            issued_on=dt.date(2026, 4, 1),
            due_on=dt.date(2026, 4, 15),
            **more,
        )

    def context(self, **more: Any) -> RunContext:
        """Return a call of Ana's, in a conversation of its own unless one is given."""
        values: dict[str, Any] = {
            "run_id": uuid4(),
            "attempt": 1,
            "conversation_id": uuid4(),
            "requester_id": self.ana.pk,
            "requester_name": "Ana",
            "rights": frozenset({"payments.request_refund", "payments.request_charge"}),
            "team_ids": frozenset({self.team.pk}),
            "customer_id": self.customer.pk,
            "call_id": uuid4(),
        }
        return RunContext(**(values | more))

    def approved(
        self,
        subject: Payment | Invoice,
        amount: int,
        *,
        version: int = 1,
        state: str = "approved",
        currency: str = "",
    ) -> UUID:
        """Write a review of exactly this, approved by Lea unless another state is named."""
        operation = Operation.REFUND if isinstance(subject, Payment) else Operation.CHARGE
        money = (amount, currency or subject.currency)
        decided = {} if state == "pending" else {"decided_at": timezone.now()}
        by_someone = state in {"approved", "rejected", "withdrawn"}
        review = Review.objects.create(
            kind=operation.value,
            subject_id=subject.pk,
            subject_hash=subject_hash(operation, subject.pk, *money, version),
            run_id=uuid4(),
            call_id=uuid4(),
            conversation_id=uuid4(),
            version=version,
            requested_by=self.ana,
            team_id=self.team.pk,
            title="Refund",
            button="Approve",
            amount_minor=amount,
            currency=subject.currency,
            state=state,
            expires_at=timezone.now() + dt.timedelta(hours=8),
            decided_by=self.lea if by_someone else None,
            **decided,
        )
        return review.pk


def another_call(context: RunContext) -> RunContext:
    """Return the next call of the same conversation."""
    return replace(context, call_id=uuid4())
