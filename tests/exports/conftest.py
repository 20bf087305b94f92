"""The cast: Ana exports for her team, Bob for another, Tom may not export at all."""

from __future__ import annotations

import itertools
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
import redis
from django.contrib.auth.models import Permission, User
from django.core.files.storage import default_storage
from django.db import connection

from agent_core.runs.models import Conversation, Event
from agent_core.runs.services import conversation_start
from exports.kinds import KINDS
from exports.models import Export
from exports.services import export_request
from payments.models import Customer, Payment, PaymentMethod, Refund, Team

MARCH = datetime(2026, 3, 15, 10, 30, tzinfo=UTC)
QUEUE = "exports"
_numbers = itertools.count(1)


@pytest.fixture(autouse=True)
def storage(settings: Any, tmp_path: Path) -> Path:
    """Keep this test's files apart."""
    place = tmp_path / "files"
    default = {
        "BACKEND": "django.core.files.storage.FileSystemStorage",
        "OPTIONS": {"location": place, "file_permissions_mode": 0o600},
    }
    settings.STORAGES = {**settings.STORAGES, "default": default}
    return place


def files() -> list[str]:
    """List what is in the storage."""
    try:
        return sorted(default_storage.listdir("exports")[1])
    except FileNotFoundError:
        return []


def person(name: str, *rights: str, team: Team | None = None, **more: Any) -> User:
    """Make somebody with these rights, in this team."""
    user = User.objects.create_user(name, password="demo", **more)
    for right in rights:
        app, codename = right.split(".")
        user.user_permissions.add(
            Permission.objects.get(content_type__app_label=app, codename=codename)
        )
    if team is not None:
        team.members.add(user)
    return user


@pytest.fixture
def team(db: None) -> Team:
    """Ana's team."""
    return Team.objects.create(name="Support East")


@pytest.fixture
def other_team(db: None) -> Team:
    """Bob's team."""
    return Team.objects.create(name="Support West")


@pytest.fixture
def ana(team: Team) -> User:
    """Export for the team."""
    return person("ana", "exports.add_export", team=team)


@pytest.fixture
def bob(other_team: Team) -> User:
    """Export for another team."""
    return person("bob", "exports.add_export", team=other_team)


@pytest.fixture
def tom(team: Team) -> User:
    """Look only."""
    return person("tom", team=team)


def customer_of(team: Team, name: str = "Zoë Nováková") -> Customer:
    """Make a customer with one card."""
    number = next(_numbers)
    customer = Customer.objects.create(
        reference=f"CUS-{number:05}", team=team, name=name, email=f"c{number}@example.com"
    )
    PaymentMethod.objects.create(customer=customer, brand="Visa", last4="4242", is_default=True)
    return customer


def payment_of(customer: Customer, **more: Any) -> Payment:
    """Make a payment of the middle of March 2026."""
    values: dict[str, Any] = {
        "reference": f"PAY-{next(_numbers):05}",
        "customer": customer,
        "method": customer.methods.get(),
        "amount_minor": 1250,
        "currency": "EUR",
        "paid_at": MARCH,
        **more,
    }
    return Payment.objects.create(**values)


def refund_of(payment: Payment, **more: Any) -> Refund:
    """Make an earlier refund of the middle of March 2026."""
    values: dict[str, Any] = {
        "reference": f"REF-{next(_numbers):05}",
        "payment": payment,
        "amount_minor": 250,
        "currency": payment.currency,
        "state": "succeeded",
        "created_at": MARCH + timedelta(days=1),
        **more,
    }
    return Refund.objects.create(**values)


def payments_many(customer: Customer, count: int) -> None:
    """Make many payments at once, in the database."""
    method = customer.methods.get()
    with connection.cursor() as cursor:
        cursor.execute(
            "INSERT INTO payments_payment (id, reference, customer_id, method_id, amount_minor,"
            " currency, state, disputed, processor_ref, paid_at)"
            " SELECT gen_random_uuid(), 'PAY-M' || n, %s, %s, n, 'EUR', 'succeeded', false, '',"
            " %s + n * interval '1 second' FROM generate_series(1, %s) AS n",
            [customer.pk, method.pk, datetime(2026, 3, 1, tzinfo=UTC), count],
        )


@pytest.fixture
def customer(team: Team) -> Customer:
    """A customer of Ana's team."""
    return customer_of(team)


@pytest.fixture
def conversation(ana: User) -> Conversation:
    """A conversation of Ana's."""
    return conversation_start(owner=ana)


Ask = Callable[..., Export]


@pytest.fixture
def ask(ana: User, customer: Customer) -> Ask:
    """Ask, as Ana, for the payments of March 2026; there is at least one."""
    payment_of(customer)

    def asked(**more: Any) -> Export:
        values = {"owner": ana, "kind": "payments", "period": "March 2026", **more}
        return export_request(**values)[0]

    return asked


def events(conversation_id: UUID) -> list[dict[str, Any]]:
    """Return what the conversation was told of exports, in order."""
    found = Event.objects.filter(conversation_id=conversation_id, kind="export").order_by("id")
    return [event.payload for event in found]


class Mailbox:
    """What lies in the queue of the export workers, in the real broker."""

    def __init__(self, url: str) -> None:
        self._redis = redis.Redis.from_url(url, decode_responses=True)
        self._redis.delete(QUEUE)

    def ids(self) -> list[str]:
        """Return the exports for which a message waits, the first one first."""
        found = [json.loads(item) for item in self._redis.lrange(QUEUE, 0, -1)]
        assert {item["headers"]["task"] for item in found} <= {"exports.export_write"}
        return [item["headers"]["argsrepr"].strip("[]'") for item in reversed(found)]

    def clear(self) -> None:
        """Lose every message."""
        self._redis.delete(QUEUE)

    def close(self) -> None:
        """Leave nothing behind."""
        self._redis.delete(QUEUE)
        self._redis.close()


@pytest.fixture
def mailbox(redis_url: str) -> Iterator[Mailbox]:
    """The queue, empty before and after."""
    box = Mailbox(redis_url)
    yield box
    box.close()


def done(export: Export) -> Export:
    """Return an export as it stands now."""
    export.refresh_from_db()
    return export


def during(patch: pytest.MonkeyPatch, at: int, then: Callable[[], object]) -> None:
    """Do something when the writer has written that many rows."""
    cells, seen = KINDS["payments"].cells, iter(range(1, 10**9))

    def counted(row: Any) -> Sequence[Any]:
        if next(seen) == at:
            then()
        return cells(row)

    kind = replace(KINDS["payments"], cells=counted)
    patch.setitem(KINDS, "payments", kind)
