"""The cast: Tom asks in Team North, Maria leads it, Iris only looks; Dana and Olga are not of it.

Rows are what the worker would have left; nothing here needs a worker to run.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from django.utils import timezone

from agent_core.host import RunEnd
from agent_core.runs.endings import run_end
from agent_core.runs.models import Call, Conversation, Run
from agent_core.runs.services import conversation_start, message_send
from exports.models import Export
from payments.models import Customer, Invoice, Payment, PaymentMethod, Refund, Team
from payments.proposals import RefundAsk, refund_proposal
from payments.roles import AGENTS, LEADS, TRAINEES, roles_setup
from reviews.models import Review
from reviews.services import review_propose
from tickets.models import Ticket

Enter = Callable[[User], Client]


@pytest.fixture
def teams(db: None) -> dict[str, Team]:
    """Return Team North and Team South."""
    roles_setup()
    return {name: Team.objects.create(name=f"Team {name}") for name in ("North", "South")}


def person(name: str, role: str, team: Team, **more: Any) -> User:
    """Make somebody with a role, in a team."""
    user = User.objects.create_user(name.lower(), password="demo", first_name=name, **more)
    user.groups.add(Group.objects.get(name=role))
    team.members.add(user)
    return user


@pytest.fixture
def tom(teams: dict[str, Team]) -> User:
    """Ask for Team North."""
    return person("Tom", AGENTS, teams["North"], last_name="Becker")


@pytest.fixture
def maria(teams: dict[str, Team]) -> User:
    """Decide for Team North."""
    return person("Maria", LEADS, teams["North"], last_name="Lopes")


@pytest.fixture
def iris(teams: dict[str, Team]) -> User:
    """Look at Team North's reviews, and nothing more."""
    return person("Iris", TRAINEES, teams["North"], last_name="Holm")


@pytest.fixture
def dana(teams: dict[str, Team]) -> User:
    """Ask for Team South."""
    return person("Dana", AGENTS, teams["South"], last_name="Novak")


@pytest.fixture
def olga(teams: dict[str, Team]) -> User:
    """Decide for Team South."""
    return person("Olga", LEADS, teams["South"], last_name="Weiss")


@pytest.fixture
def enter() -> Enter:
    """Return a function that signs somebody in; posts of that client are checked for forgery."""

    def entered(user: User) -> Client:
        client = Client()
        client.force_login(user)
        return client

    return entered


@pytest.fixture
def payment(teams: dict[str, Team]) -> Payment:
    """Return what Ana of Team North paid: 25.00 EUR for an invoice."""
    customer = Customer.objects.create(
        reference="CUS-1", team=teams["North"], name="Ana Silva", email="ana@example.com"
    )
    method = PaymentMethod.objects.create(
        customer=customer, brand="visa", last4="4242", processor_ref="pm_1"
    )
    invoice = Invoice.objects.create(
        reference="INV-7001",
        customer=customer,
        description="Service plan",
        amount_minor=2500,
        currency="EUR",
        state="paid",
        issued_on=date(2026, 10, 1),
        due_on=date(2026, 10, 15),
    )
    return Payment.objects.create(
        reference="PAY-7001",
        customer=customer,
        invoice=invoice,
        method=method,
        amount_minor=2500,
        currency="EUR",
        paid_at=timezone.now() - timedelta(days=20),
    )


@pytest.fixture
def refund(payment: Payment) -> Refund:
    """Return a refund of earlier days of Ana's payment."""
    return Refund.objects.create(
        reference="REF-7001",
        payment=payment,
        amount_minor=500,
        currency="EUR",
        reason="the box was crushed",
        state="succeeded",
        settled_at=timezone.now(),
    )


@pytest.fixture
def talk(tom: User) -> Conversation:
    """Return a conversation of Tom in which nothing has been said."""
    return conversation_start(owner=tom)


def asked(talk: Conversation, text: str) -> Run:
    """Send a message as the conversation's owner."""
    return message_send(conversation=talk, sender=talk.owner, text=text, client_key=uuid4())


def begun(run: Run) -> Run:
    """Let a worker claim the run."""
    lease = timezone.now() + timedelta(minutes=5)
    Run.objects.filter(pk=run.pk).update(
        state="running", attempt=1, lease_until=lease, claimed_at=timezone.now()
    )
    run.refresh_from_db()
    return run


def ended(run: Run, *, rule: str = "answered", answer: str = "Here it is.", **more: Any) -> Run:
    """End the run with an answer, as the worker does."""
    if run.state != "running":
        begun(run)
    run_end(run, RunEnd(rule=rule, answer=answer, **more))
    run.refresh_from_db()
    return run


def called(run: Run, *, tool: str = "customer_find", state: str = "done", **more: Any) -> Call:
    """Leave a call of the run."""
    place = run.calls.count()
    values: dict[str, Any] = {
        "batch": place,
        "position": 0,
        "label": "Looking up the customer",
        "content": "Ana Silva, CUS-1.",
    }
    return Call.objects.create(id=uuid4(), run=run, tool=tool, state=state, **(values | more))


def waiting_refund(run: Run, payment: Payment, *, amount_minor: int = 500) -> Review:
    """Leave the run waiting for a decision on a refund."""
    call = called(
        run, tool="refund_request", state="waiting", label="Refunding the payment", content=""
    )
    review = review_propose(
        run_id=run.pk,
        call_id=call.pk,
        conversation_id=run.conversation_id,
        requester=run.requester,
        proposal=refund_proposal(
            RefundAsk(
                payment=payment,
                amount_minor=amount_minor,
                refunded_minor=0,
                waiting_minor=0,
                left_minor=2500,
                reason="the box was crushed",
                why="Every refund needs a second person, whatever its amount.",
                asked_by="Tom Becker, through the assistant",
                call_id=call.pk,
            )
        ),
        arguments={"payment": payment.reference, "amount": "5", "reason": "the box was crushed"},
    )
    Run.objects.filter(pk=run.pk).update(state="waiting", attempt=1, lease_until=None)
    run.refresh_from_db()
    return review


@pytest.fixture
def review(talk: Conversation, payment: Payment) -> Review:
    """Return a refund of 5.00 EUR that waits, asked by Tom."""
    return waiting_refund(asked(talk, "refund 5 EUR of PAY-7001"), payment)


@pytest.fixture
def ticket(talk: Conversation, teams: dict[str, Team]) -> Ticket:
    """Return a ticket of Team North."""
    return Ticket.objects.create(
        reference="TCK-7001",
        subject="Parcel is late",
        team_id=teams["North"].pk,
        conversation_id=talk.pk,
        requester=talk.owner,
        identity="parcel is late",
    )


@pytest.fixture
def export(talk: Conversation) -> Export:
    """Return an export of Tom that is being written."""
    run = asked(talk, "export payments of last month as CSV")
    return Export.objects.create(
        reference="EXP-7001",
        owner=talk.owner,
        kind="payments",
        filters={"label": "October 2026"},
        format="csv",
        fingerprint="f",
        state="writing",
        lease_until=timezone.now() + timedelta(minutes=1),
        rows_total=200,
        rows_done=50,
        conversation_id=talk.pk,
        run_id=run.pk,
        call_id=called(run, tool="export_payments", label="Starting the export").pk,
    )


@dataclass(frozen=True)
class North:
    """Everything of Team North that somebody else may not reach."""

    talk: Conversation
    review: Review
    payment: Payment
    refund: Refund
    ticket: Ticket


@pytest.fixture
def north(
    talk: Conversation, review: Review, payment: Payment, refund: Refund, ticket: Ticket
) -> North:
    """Return Tom's conversation with its review, and Ana's records."""
    return North(talk, review, payment, refund, ticket)
