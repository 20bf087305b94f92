"""A staff member's context, as the host would make it, and somebody of another team."""

from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import User

from agent_core.contract import RunContext

TEAM, OTHER_TEAM, PAYMENT = uuid4(), uuid4(), uuid4()
SCOPES: dict[int, frozenset[UUID]] = {}

Context = Callable[..., RunContext]


def scope_of(user: User) -> frozenset[UUID]:
    """Return the teams that a test gave this person."""
    return SCOPES.get(user.pk, frozenset())


def payment_id_for(context: RunContext, reference: str) -> UUID | None:
    """Know one payment."""
    return PAYMENT if reference.upper() == "PAY-1" else None


@pytest.fixture(autouse=True)
def wiring(settings: Any) -> None:
    """Name the stand-ins where the settings name the other apps."""
    settings.RUN_SCOPE = "tests.tickets.conftest.scope_of"
    settings.TICKET_PAYMENT_RESOLVER = "tests.tickets.conftest.payment_id_for"
    SCOPES.clear()


def person(name: str, team: UUID = TEAM, **more: Any) -> User:
    """Make somebody of one team."""
    user = User.objects.create_user(name, password="demo", is_staff=True, **more)
    SCOPES[user.pk] = frozenset({team})
    return user


@pytest.fixture
def ana(db: None) -> User:
    """Open tickets."""
    return person("ana")


@pytest.fixture
def context(ana: User) -> Context:
    """Return a function that makes the context of one call; all in one conversation."""
    conversation_id = uuid4()

    def made(**more: Any) -> RunContext:
        values: dict[str, Any] = {
            "run_id": uuid4(),
            "attempt": 1,
            "conversation_id": conversation_id,
            "requester_id": ana.pk,
            "requester_name": "Ana",
            "rights": frozenset({"tickets.add_ticket"}),
            "team_ids": frozenset({TEAM}),
            "call_id": uuid4(),
        }
        return RunContext(**(values | more))

    return made
