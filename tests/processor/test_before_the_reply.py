"""The processor's own events over a real line, on connections of their own, in any order (B31)."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from payments.models import Intent, Invoice, Payment, Refund
from payments.processor.models import ProcessorEvent
from payments.sandbox.tokens import REFUND_PENDING
from payments.services import charge_make, refund_make
from reviews.audit.models import Entry
from tests.payments.cast import Desk
from tests.payments.gates import GATES, PATIENCE, Gates
from tests.payments.processor import Processor
from tests.processor.telling import ADDRESS, SECRET
from tests.rig.threads import Caller

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def hooked(live_server: Any, ledger: Processor, settings: Any) -> Processor:
    """Let the processor send its events to a real web server."""
    settings.STRIPE_WEBHOOK_SECRET = [SECRET]
    ledger.hook(f"{live_server.url}{ADDRESS}", SECRET)
    return ledger


@pytest.fixture
def gates(hooked: Processor, settings: Any) -> Iterator[Gates]:
    """Keep the reply of the first try back until the test hands it over."""
    settings.PAYMENT_GATEWAYS = {"sandbox": "tests.payments.gates.GatedGateway"}
    GATES.append(Gates())
    GATES[-1].write.set()
    GATES[-1].send.set()
    yield GATES[-1]
    GATES.pop().open()


def wait_until(true: Callable[[], bool]) -> None:
    """Wait for another process to have come as far."""
    until = time.monotonic() + PATIENCE
    while not true():
        assert time.monotonic() < until, list(ProcessorEvent.objects.values())
        time.sleep(0.05)


def handled(processor: Processor, count: int) -> None:
    """Wait until so many events are handled here, and the processor has heard it of each."""
    wait_until(lambda: ProcessorEvent.objects.exclude(handled_at=None).count() >= count)
    wait_until(lambda: all(event["done"] for event in processor.books()["events"]))


def refund(desk: Desk, amount: int = 6000) -> Any:
    """Refund 60.00 EUR of the desk's payment with an approval."""
    return refund_make(
        context=desk.context(),
        payment_id=desk.payment.pk,
        amount_minor=amount,
        currency="EUR",
        review_id=desk.approved(desk.payment, amount),
    )


def recorded(action: str) -> int:
    """Count the audit's rows of a kind."""
    return Entry.objects.filter(action=action).count()


def test_a_refund_whose_events_come_before_its_reply_three_times_is_one(
    hooked: Processor, gates: Gates
) -> None:
    """Caller: sent, its reply kept back. Events: each thrice, stored and handled. Caller: reply."""
    desk = Desk()
    hooked.hook_play(copies=3)
    first = Caller(lambda: refund(desk))
    assert gates.sent.wait(PATIENCE)
    handled(hooked, 2)
    assert Refund.objects.get().state == "succeeded"
    gates.open()
    result = first.outcome()
    assert (result.state, result.reference) == ("succeeded", Refund.objects.get().reference)
    assert result.left.amount_minor == 4000
    assert hooked.refunded(desk.payment.processor_ref) == [6000]
    assert (Refund.objects.count(), Intent.objects.count()) == (1, 1)
    assert (ProcessorEvent.objects.count(), recorded("intent.succeeded")) == (2, 1)


def test_a_charge_whose_event_comes_before_its_reply_is_one_payment(
    hooked: Processor, gates: Gates
) -> None:
    """Caller: sent, its reply kept back. Event: stored and handled. Caller: takes its reply."""
    desk = Desk()
    invoice = desk.owed()

    def charge() -> Any:
        return charge_make(
            context=desk.context(),
            invoice_id=invoice.pk,
            amount_minor=2500,
            currency="EUR",
            method_id=desk.method.pk,
        )

    first = Caller(charge)
    assert gates.sent.wait(PATIENCE)
    handled(hooked, 1)
    assert Invoice.objects.get().state == "paid"
    gates.open()
    assert first.outcome().state == "succeeded"
    assert Payment.objects.filter(invoice=invoice).count() == 1
    assert hooked.charged() == [2500]
    assert recorded("intent.succeeded") == 1


def test_events_that_come_the_wrong_way_round_end_where_the_last_one_stands(
    hooked: Processor,
) -> None:
    """The reply first; then "failed", "updated" and "created", each twice, the last made first."""
    desk = Desk(fault=REFUND_PENDING)
    hooked.hook_play(held=1, backwards=1, copies=2)
    refund(desk)
    name = Refund.objects.get().processor_ref
    hooked.refund_ends(name, "failed", "declined")
    hooked.hook_play(held=0)
    handled(hooked, 4)
    assert (Refund.objects.count(), Refund.objects.get().state) == (1, "failed")


def test_a_late_failure_is_heard_without_anybody_asking(hooked: Processor) -> None:
    """The reply says "succeeded"; later the bank sends the money back, and an event says so."""
    desk = Desk()
    refund(desk)
    handled(hooked, 2)
    hooked.refund_ends(Refund.objects.get().processor_ref, "failed", "declined")
    handled(hooked, 5)
    assert Refund.objects.get().state == "failed"


def test_a_server_that_was_away_hears_it_later(hooked: Processor, settings: Any) -> None:
    """No secret: 404 to each try. Then the secret is there, and the processor tries again."""
    desk = Desk()
    settings.STRIPE_WEBHOOK_SECRET = []
    refund(desk)
    wait_until(lambda: any(event["tries"] for event in hooked.books()["events"]))
    assert not ProcessorEvent.objects.exists()
    settings.STRIPE_WEBHOOK_SECRET = [SECRET]
    handled(hooked, 2)
    assert Refund.objects.count() == 1
