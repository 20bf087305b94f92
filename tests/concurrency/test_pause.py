"""Refunds and their pause at one moment, on two real connections: the database decides.

Every test names its interleaving and ends in the processor's own books.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection

from payments.balances import refunds_pause
from payments.errors import RefundsPaused
from payments.models import Intent, Pause
from payments.services import refund_make, refunds_stop
from tests.payments.cast import Desk
from tests.payments.conftest import ledger
from tests.payments.gates import GATES, PATIENCE, Gates
from tests.payments.processor import Processor, processor, processor_process
from tests.rig.threads import Caller, at_once

__all__ = ["ledger", "processor", "processor_process"]

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def gates(ledger: Processor, settings: Any) -> Iterator[Gates]:
    """Hold the first refund where its transaction has checked everything and written nothing."""
    settings.PAYMENT_GATEWAYS = {"sandbox": "tests.payments.gates.GatedGateway"}
    GATES.append(Gates())
    GATES[-1].send.set()
    GATES[-1].reply.set()
    yield GATES[-1]
    GATES.pop().open()


@pytest.fixture
def desk(ledger: Processor) -> Desk:
    """Return Ana, Lea, and a customer with one payment of 100.00 EUR."""
    return Desk()


@pytest.fixture
def olga(transactional_db: None) -> User:
    """Return somebody of operations."""
    return User.objects.create_superuser("olga")


def refund(desk: Desk, review: Any, amount: int = 3000) -> Any:
    """Refund 30.00 EUR of the desk's payment."""
    return refund_make(
        context=desk.context(),
        payment_id=desk.payment.pk,
        amount_minor=amount,
        currency="EUR",
        review_id=review,
    )


def waiting_for_the_pause() -> int:
    """Count who waits for the pause's lock, in the database's own table."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
        return int(cursor.fetchone()[0])


def test_a_pause_waits_for_the_refund_that_is_being_written_and_refuses_the_next(
    desk: Desk, ledger: Processor, gates: Gates, olga: User
) -> None:
    """Refund: all checks passed, nothing written. Pause: waits. Refund: writes, sends. Next: no."""
    reviews = [desk.approved(desk.payment, 3000) for _ in range(2)]
    first = Caller(lambda: refund(desk, reviews[0]))
    assert gates.writing.wait(PATIENCE)
    pause = Caller(lambda: refunds_stop(actor=olga, reason="the processor books twice"))
    while not waiting_for_the_pause():
        assert pause.waits(0.02)
    assert refunds_pause() is None, "a pause that holds while a refund is about to be written"

    gates.open()
    assert first.outcome().state == "succeeded"
    assert isinstance(pause.outcome(), Pause)
    with pytest.raises(RefundsPaused):
        refund(desk, reviews[1])
    assert ledger.refunded(desk.payment.processor_ref) == [3000]


def test_what_is_written_before_a_pause_is_paid_and_what_comes_after_is_not(
    desk: Desk, ledger: Processor, olga: User
) -> None:
    """Four refunds and the pause begin at one barrier, whatever the order."""
    payments = [desk.payment, *(desk.paid() for _ in range(3))]
    asks = [(payment, desk.approved(payment, 3000)) for payment in payments]

    def one(payment: Any, review: Any) -> Any:
        return refund_make(
            context=desk.context(),
            payment_id=payment.pk,
            amount_minor=3000,
            currency="EUR",
            review_id=review,
        )

    works = [lambda ask=ask: one(*ask) for ask in asks]
    *outcomes, pause = at_once(
        *works, lambda: refunds_stop(actor=olga, reason="the processor books twice")
    )
    assert isinstance(pause, Pause)
    refused = [isinstance(outcome, RefundsPaused) for outcome in outcomes]
    for outcome, no, payment in zip(outcomes, refused, payments, strict=True):
        assert no or outcome.state == "succeeded"
        assert ledger.refunded(payment.processor_ref) == ([] if no else [3000])
    assert Intent.objects.count() == refused.count(False)


def test_two_refunds_do_not_wait_for_each_other_at_the_pause(
    desk: Desk, ledger: Processor, gates: Gates
) -> None:
    """First: held in its transaction. Second, of another payment and person: ends."""
    first = Caller(lambda: refund(desk, desk.approved(desk.payment, 3000)))
    assert gates.writing.wait(PATIENCE)
    other = Desk()
    second = Caller(lambda: refund(other, other.approved(other.payment, 3000)))
    assert second.outcome().state == "succeeded"
    assert first.waits(0)
