"""What a customer bought and got back; no processor is needed for a document."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any

import pytest

from payments.models import Customer, Invoice, Payment, PaymentMethod, Refund, Team

PAID_AT = datetime(2026, 10, 3, 12, 0, tzinfo=UTC)
SELLER = {
    "name": "Nordlicht Handels GmbH",
    "address": ["Hafenstraße 12", "20457 Hamburg"],
    "tax_id": "DE 123456789",
}
Paid = Callable[..., Payment]


@pytest.fixture(autouse=True)
def seller(settings: Any) -> None:
    """Say who sells."""
    settings.RECEIPT_SELLER = SELLER


def bought(
    number: int = 1,
    *,
    name: str = "Ana Silva",
    language: str = "en",
    description: str = "Service plan",
    amount: int = 2500,
    currency: str = "EUR",
    tax: int | None = None,
    rate: int | None = None,
) -> Payment:
    """Write a customer with one paid invoice, as rows of earlier days."""
    team, _made = Team.objects.get_or_create(name="Team North")
    customer = Customer.objects.create(
        reference=f"CUS-{number}",
        team=team,
        name=name,
        email=f"c{number}@example.com",
        language=language,
    )
    method = PaymentMethod.objects.create(
        customer=customer, brand="visa", last4="4242", processor_ref=f"pm_{number}"
    )
    invoice = Invoice.objects.create(
        reference=f"INV-{number}",
        customer=customer,
        description=description,
        amount_minor=amount,
        currency=currency,
        tax_minor=tax,
        tax_rate_basis_points=rate,
        state="paid",
        issued_on=date(2026, 10, 1),
        due_on=date(2026, 10, 15),
    )
    return Payment.objects.create(
        reference=f"PAY-{number}",
        customer=customer,
        invoice=invoice,
        method=method,
        amount_minor=amount,
        currency=currency,
        paid_at=PAID_AT,
    )


def given_back(payment: Payment, amount: int, number: int = 1, state: str = "succeeded") -> Refund:
    """Write a refund of earlier days."""
    return Refund.objects.create(
        reference=f"REF-{number}",
        payment=payment,
        amount_minor=amount,
        currency=payment.currency,
        state=state,
        created_at=PAID_AT,
        settled_at=PAID_AT,
    )
