"""The people, customers, invoices and payments that a chaos run needs, made before it begins."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final

from django.contrib.auth.models import Group, User
from django.core.management import call_command

from knowledge.services import articles_load
from payments.models import Customer, Invoice, Payment, PaymentMethod, Team
from payments.roles import AGENTS, LEADS, roles_setup
from payments.sandbox.tokens import SLOW_COMMITTED, SLOW_LOST, earlier_ref, method_token
from tests.chaos.scripts import FIRST, Talk, invoice_amount, invoice_of, payment_of

OWNERS: Final = 6
REVIEWERS: Final = 2
PAID_MINOR: Final = 10_000
_DAY: Final = datetime(2026, 1, 1, 12, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class People:
    """Who asks and who decides."""

    owners: Sequence[User]
    reviewers: Sequence[User]


def tables_make() -> None:
    """Make the tables, roles and help articles, as a first start of the product does."""
    call_command("migrate", interactive=False, verbosity=0)
    call_command("checkpoints_setup", verbosity=0)
    roles_setup()
    articles_load()


def people_make() -> tuple[People, Team]:
    """Make one team with its agents and leads."""
    team = Team.objects.create(name="Chaos")
    owners = [_person(f"agent{number}", AGENTS, team) for number in range(OWNERS)]
    reviewers = [_person(f"lead{number}", LEADS, team) for number in range(REVIEWERS)]
    return People(owners, reviewers), team


def fault_at(number: int) -> str:
    """Let the processor's answer about some be lost, after or before it has done its part.

    It holds the line for a while first, which makes the moment long enough to be hit.
    """
    return {3: SLOW_COMMITTED, 6: SLOW_LOST}.get(number % 8, "")


def _person(name: str, role: str, team: Team) -> User:
    user = User.objects.create_user(name)
    user.groups.add(Group.objects.get(name=role))
    team.members.add(user)
    return user


def records_make(talks: Sequence[Talk], team: Team) -> None:
    """Make a customer for each conversation, and an invoice and a payment for each message."""
    customers, methods = [], []
    invoices: list[Invoice] = []
    payments: list[Payment] = []
    for talk in talks:
        number = FIRST + talk.number
        customer = Customer(
            reference=f"CUS-{number}", team=team, name=f"Customer {number}",
            email=f"c{number}@example.com",
        )  # fmt: skip
        method = PaymentMethod(
            customer=customer, brand="visa", last4="4242", is_default=True,
            processor_ref=method_token(str(number), fault_at(talk.number)),
        )  # fmt: skip
        customers.append(customer)
        methods.append(method)
        invoices += [_invoice(turn.number, customer) for turn in talk.turns]
        payments += [_payment(turn.number, customer, method) for turn in talk.turns]
    Customer.objects.bulk_create(customers)
    PaymentMethod.objects.bulk_create(methods)
    Invoice.objects.bulk_create(invoices)
    Payment.objects.bulk_create(payments)


def _invoice(number: int, customer: Customer) -> Invoice:
    return Invoice(
        reference=invoice_of(number),
        customer=customer,
        amount_minor=invoice_amount(number),
        currency="EUR",
        issued_on=date(2026, 4, 1),
        due_on=date(2026, 4, 15),
    )


def _payment(number: int, customer: Customer, method: PaymentMethod) -> Payment:
    return Payment(
        reference=payment_of(number),
        customer=customer,
        method=method,
        amount_minor=PAID_MINOR,
        currency="EUR",
        processor_ref=earlier_ref(f"chaos{number}", PAID_MINOR, "EUR", fault=fault_at(number)),
        paid_at=_DAY + timedelta(days=number % 80),
    )
