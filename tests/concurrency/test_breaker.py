"""The breaker of a gateway: everybody sees it, and one of them probes."""

from __future__ import annotations

import datetime as dt
import threading
from typing import Any

import pytest
from django.db import connection, transaction
from django.utils import timezone

from payments.errors import ProcessorResting
from payments.gateways.base import Reply
from payments.gateways.classes import AnswerClass
from payments.models import Breaker, Intent
from payments.services import intents_settle
from payments.services_breaker import breaker_allow, breaker_note
from reviews.models import Review
from tests.payments.cast import Desk
from tests.payments.conftest import ledger
from tests.payments.processor import Processor, processor, processor_process
from tests.payments.test_settling import charge, later, refund

__all__ = ["ledger", "processor", "processor_process"]

pytestmark = pytest.mark.django_db(transaction=True)
DOWN = Reply(state="unknown", kind=AnswerClass.UNKNOWN, strain=True)
GOOD = Reply(state="succeeded")
NAME = "sandbox"


@pytest.fixture(autouse=True)
def limits(settings: Any) -> None:
    settings.PAYMENT_BREAKER_FAILURES = 3


def refused() -> bool:
    """Tell whether nothing new may begin."""
    try:
        breaker_allow(NAME)
    except ProcessorResting:
        return True
    return False


def rested() -> None:
    """Let the rest pass."""
    Breaker.objects.update(rests_until=timezone.now() - dt.timedelta(seconds=1))


def test_a_streak_opens_it_and_an_answer_in_between_begins_anew() -> None:
    for reply in (DOWN, DOWN, GOOD, DOWN, DOWN):
        breaker_note(NAME, reply)
        assert not refused()
    breaker_note(NAME, DOWN)
    assert refused()
    breaker_note(NAME, GOOD)
    assert not refused()


def test_failures_older_than_the_window_do_not_count() -> None:
    breaker_note(NAME, DOWN)
    breaker_note(NAME, DOWN)
    Breaker.objects.update(since=timezone.now() - dt.timedelta(hours=1))
    breaker_note(NAME, DOWN)
    assert not refused()
    assert Breaker.objects.get().failures == 1


def test_after_the_rest_one_probe_decides() -> None:
    for _ in range(3):
        breaker_note(NAME, DOWN)
    rested()
    assert (refused(), refused()) == (False, True)
    breaker_note(NAME, DOWN)
    assert refused()
    rested()
    assert not refused()
    breaker_note(NAME, GOOD)
    assert not refused()


def test_a_probe_that_never_says_anything_is_followed_by_another() -> None:
    for _ in range(3):
        breaker_note(NAME, DOWN)
    rested()
    assert (refused(), refused()) == (False, True)
    Breaker.objects.update(probe_until=timezone.now() - dt.timedelta(seconds=1))
    assert (refused(), refused()) == (False, True)


def test_of_two_connections_at_once_one_probes() -> None:
    """The second comes while the first, in its open transaction, has the probe and no row yet."""
    for _ in range(3):
        breaker_note(NAME, DOWN)
    rested()
    inside, go_on = threading.Event(), threading.Event()
    found: list[bool] = []

    def first() -> None:
        with transaction.atomic():
            found.append(refused())
            inside.set()
            assert go_on.wait(30)
        connection.close()

    def second() -> None:
        with transaction.atomic():
            found.append(refused())
        connection.close()

    threads = [threading.Thread(target=first), threading.Thread(target=second)]
    threads[0].start()
    assert inside.wait(30)
    threads[1].start()
    threads[1].join(0.3)
    assert found == [False]
    go_on.set()
    for thread in threads:
        thread.join(30)
    assert found == [False, True]


def test_while_it_rests_nothing_is_written_and_what_was_written_is_settled(
    ledger: Processor,
) -> None:
    desk = Desk()
    ledger.fault("drop_after")
    refund(desk, review_id=desk.approved(desk.payment, 6000))
    for _ in range(3):
        breaker_note(NAME, DOWN)
    review = desk.approved(desk.paid(), 100)
    with pytest.raises(ProcessorResting, match="nothing was begun"):
        charge(desk, desk.owed())
    assert Intent.objects.count() == 1
    assert Review.objects.get(pk=review).state == "approved"
    assert ledger.asked("POST /v1/payment_intents") == 0
    later()
    assert intents_settle() == 1
    assert charge(desk, desk.owed()).state == "succeeded"
