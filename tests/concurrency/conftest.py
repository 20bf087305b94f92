"""A refund that waits for its decision, for whoever races for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User

from tests.concurrency.turns import Person, Turn
from tests.payments.processor import Processor, processor, processor_process
from tests.rig.threads import Meeting

__all__ = ["processor", "processor_process"]

Meet = Callable[..., None]


@pytest.fixture
def turn(transactional_db: None, processor: Processor, settings: Any) -> Turn:
    """Return Ana's refund of 5.00 of 100.00, asked for and waiting."""
    settings.PAYMENT_GATEWAY = "sandbox"
    settings.CHAT_MODEL = "offline:planner@0"
    settings.REFUND_DAILY_LIMIT = {"EUR": 50_000}
    # Staff, so that they may sign in to the administration as well.
    made = Turn(processor)
    User.objects.filter(pk__in=[made.lea.pk, made.leo.pk]).update(is_staff=True)
    return made


@pytest.fixture
def meet(monkeypatch: pytest.MonkeyPatch) -> Meet:
    """Return a way to let the first two callers of a function wait there for each other."""

    def arrange(owner: object, name: str, parties: int = 2) -> None:
        monkeypatch.setattr(owner, name, Meeting(getattr(owner, name), parties))

    return arrange


@pytest.fixture
def lea(turn: Turn) -> Person:
    """Return Lea's browser."""
    return Person(turn.lea, turn)


@pytest.fixture
def leo(turn: Turn) -> Person:
    """Return Leo's browser."""
    return Person(turn.leo, turn)


@pytest.fixture
def ana(turn: Turn) -> Person:
    """Return the browser of Ana, who asked."""
    return Person(turn.ana, turn)
