"""Two teams with one row of everything that the administration shows, and a browser per role."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass
from typing import Any, Final
from uuid import uuid4

from django.contrib.auth.models import Group, Permission, User
from django.test import Client
from django.utils import timezone

from agent_core.runs.models import Call, Conversation, Message, Run, StopRecord
from agent_core.runs.states import RunState
from payments.models import Customer, Intent, Invoice, Pause, Payment, PaymentMethod, Refund, Team
from payments.roles import ADMINISTRATORS, AGENTS, AUDITORS, LEADS, TRAINEES, roles_setup
from payments.states import IntentState, Operation
from reviews.models import Review
from tickets.models import Note, Ticket

SECRET: Final = "hid3n"
"""Stands in everything that no page may show to anybody."""
DECLINE: Final = "stolen_card"

ROLES: Final = {
    "agent": AGENTS,
    "lead": LEADS,
    "administrator": ADMINISTRATORS,
    "trainee": TRAINEES,
    "auditor": AUDITORS,
}


@dataclass(frozen=True, slots=True)
class Rows:
    """One team with a row of each kind, by the model's label."""

    team: Team
    of: dict[str, Any]


def rows_of(name: str) -> Rows:
    """Make a team and its rows, asked for by an agent of the team."""
    agent = User.objects.create_user(f"asks-{name}", first_name="Asks", last_name=name)
    team = Team.objects.create(name=f"Team {name}")
    team.members.add(agent)
    customer = Customer.objects.create(
        reference=f"CUS-{name}", team=team, name=f"Customer {name}", email=f"{name}@example.com"
    )
    method = PaymentMethod.objects.create(
        customer=customer, brand="Visa", last4="4242", processor_ref=f"{SECRET}-pm-{name}"
    )
    day = dt.date(2026, 4, 1)
    money = {"amount_minor": 10_000, "currency": "EUR"}
    invoice = Invoice.objects.create(
        reference=f"INV-{name}", customer=customer, issued_on=day, due_on=day, **money
    )
    payment = Payment.objects.create(
        reference=f"PAY-{name}",
        customer=customer,
        invoice=invoice,
        method=method,
        paid_at=timezone.now(),
        processor_ref=f"{SECRET}-pi-{name}",
        **money,
    )
    run = _run(agent, customer, name)
    review = _review(agent, team, payment, run)
    intent = _intent(agent, payment, review, name)
    refund = Refund.objects.create(
        reference=f"REF-{name}",
        payment=payment,
        intent=intent,
        review_id=review.pk,
        requested_by=agent,
        processor_ref=f"{SECRET}-re-{name}",
        **money,
    )
    rows = (team, customer, method, invoice, payment, refund, intent, review, run)
    return Rows(
        team,
        {row._meta.label_lower: row for row in rows}
        | {"runs.conversation": run.conversation, "tickets.ticket": _ticket(agent, customer, name)}
        | {"auth.user": agent, "auth.group": Group.objects.get(name=AGENTS)}
        | {"payments.pause": Pause.objects.get_or_create(**_pause(agent))[0]},
    )


def _pause(agent: User) -> dict[str, Any]:
    values = {"paused_by": agent, "reason": "The processor is slow."}
    return {"operation": Operation.REFUND, "resumed_at": None, "defaults": values}


def _run(agent: User, customer: Customer, name: str) -> Run:
    conversation = Conversation.objects.create(
        owner=agent, customer_id=customer.pk, customer_label=customer.name, title=f"Chat {name}"
    )
    message = Message.objects.create(
        conversation=conversation, position=1, role="staff", text=f"Refund PAY-{name}"
    )
    run = Run.objects.create(
        conversation=conversation,
        requester=agent,
        message=message,
        state=RunState.WAITING,
        worker=f"{SECRET}-worker",
    )
    Call.objects.create(
        id=uuid4(),
        run=run,
        batch=1,
        position=1,
        tool=f"{SECRET}_tool",
        arguments={"token": SECRET},
        label="Refund",
        identity=SECRET,
    )
    StopRecord.objects.create(run=run, rule="completed", evidence={"token": SECRET})
    return run


def _review(agent: User, team: Team, payment: Payment, run: Run) -> Review:
    call = run.calls.get()
    return Review.objects.create(
        kind="refund",
        subject_id=payment.pk,
        subject_hash=f"{SECRET}-hash-{call.pk}",
        run_id=run.pk,
        call_id=call.pk,
        conversation_id=run.conversation_id,
        requested_by=agent,
        team_id=team.pk,
        title=f"Refund 100.00 EUR to {payment.customer.name}",
        button="Approve 100.00 EUR",
        amount_minor=10_000,
        currency="EUR",
        rule="refund.always",
        fields={"amount": "100.00", "reason": "damaged"},
        flags=[{"flag": "customer_new", "text": "This customer has paid nothing before."}],
        card=[{"label": "Effect", "text": "Goes back to Visa"}],
        original={"payment": payment.reference, "token": SECRET},
        expires_at=timezone.now() + dt.timedelta(hours=8),
    )


def _intent(agent: User, payment: Payment, review: Review, name: str) -> Intent:
    return Intent.objects.create(
        operation=Operation.REFUND,
        target_id=payment.pk,
        amount_minor=10_000,
        currency="EUR",
        state=IntentState.FAILED,
        gateway="sandbox",
        idempotency_key=f"{SECRET}-key-{name}",
        body={"token": f"{SECRET}-body"},
        result={"raw": SECRET},
        call_id=review.call_id,
        review_id=review.pk,
        requester=agent,
        next_try_at=timezone.now(),
        settled_at=timezone.now(),
        processor_ref=f"{SECRET}-ref",
        failure_code="card_declined",
        decline_code=DECLINE,
    )


def _ticket(agent: User, customer: Customer, name: str) -> Ticket:
    ticket = Ticket.objects.create(
        reference=f"TCK-{name}",
        subject=f"Broken {name}",
        team_id=customer.team_id,
        customer_id=customer.pk,
        conversation_id=uuid4(),
        requester=agent,
        identity=f"{SECRET}-{name}",
    )
    Note.objects.create(ticket=ticket, author=agent, text="Called back.")
    return ticket


def person_of(role: str, team: Team) -> User:
    """Make somebody of a role in a team, with entrance to the administration."""
    boss = role == "superuser"
    user = User.objects.create_user(f"the-{role}", is_staff=True, is_superuser=boss)
    team.members.add(user)
    if role in ROLES:
        roles_setup()
        user.groups.add(Group.objects.get(name=ROLES[role]))
    elif role == "operator":
        for right in ("operate", "pause_refunds"):
            user.user_permissions.add(Permission.objects.get(codename=right))
    return user


def browser_of(user: User) -> Client:
    """Return a browser in which this person is signed in."""
    client = Client()
    client.force_login(user)
    return client
