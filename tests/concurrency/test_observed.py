"""The processor's news against our own try, on two real connections; tests say how they meet."""

from __future__ import annotations

from typing import Any

import pytest
from django.utils import timezone

from payments.balances import payment_left
from payments.gateways.base import Seen
from payments.models import Intent, IntentCall, Refund
from payments.services import Change, observed
from reviews.audit.models import Entry
from tests.concurrency.test_ledger import desk, gates, refund
from tests.payments import cast
from tests.payments.cast import Desk
from tests.payments.conftest import ledger
from tests.payments.gates import PATIENCE, Gates
from tests.payments.processor import Processor, processor, processor_process
from tests.rig.threads import Caller, at_once

__all__ = ["desk", "gates", "ledger", "processor", "processor_process"]

pytestmark = pytest.mark.django_db(transaction=True)


def tell(desk: Desk, state: Any, processor_ref: str, amount: int, **more: Any) -> Change:
    """Let the processor tell of a refund of the desk's payment."""
    seen = Seen(
        kind="refund",
        processor_ref=processor_ref,
        payment_ref=desk.payment.processor_ref,
        amount_minor=amount,
        currency="EUR",
        state=state,
        created_at=timezone.now(),
        **more,
    )
    return observed(seen, source="payments.webhook")


def test_an_event_while_the_reply_is_in_the_air_makes_one_refund(
    desk: Desk, ledger: Processor, gates: Gates
) -> None:
    """Ours: sent, reply held. The event comes three times, the last one old. Then the reply."""
    review = desk.approved(desk.payment, 6000)
    gates.send.set()
    ours = Caller(lambda: refund(desk, review_id=review))
    assert gates.sent.wait(PATIENCE)
    name, intent_id = ledger.books()["refunds"][0]["id"], Intent.objects.get().pk
    for state, what in (
        ("succeeded", "settled"),
        ("succeeded", "nothing"),
        ("accepted", "nothing"),
    ):
        assert tell(desk, state, name, 6000, intent_id=intent_id).what == what
    gates.open()
    assert ours.outcome().state == "succeeded"
    assert (Refund.objects.count(), Refund.objects.get().state) == (1, "succeeded")
    assert Entry.objects.filter(action="intent.succeeded").count() == 1
    assert not IntentCall.objects.filter(waiting=True).exists()
    assert cast.NOTICES == []


def test_a_refund_made_outside_waits_for_ours_and_counts_beside_it(
    desk: Desk, ledger: Processor, gates: Gates
) -> None:
    """Ours: all checked, no row yet, held. The other one's event must wait for the payment."""
    review = desk.approved(desk.payment, 6000)
    gates.write.clear()
    ours = Caller(lambda: refund(desk, review_id=review))
    assert gates.writing.wait(PATIENCE)
    event = Caller(lambda: tell(desk, "succeeded", "re_outside", 3000))
    assert event.waits()
    gates.open()
    assert ours.outcome().state == "succeeded"
    assert event.outcome().what == "recorded"
    assert payment_left(desk.payment) == 1000


def test_one_event_told_twice_at_once_is_recorded_once(desk: Desk, ledger: Processor) -> None:
    """Both begin at one barrier; the second finds the row of the first."""
    said = at_once(*[lambda: tell(desk, "succeeded", "re_outside", 3000)] * 2)
    assert sorted(change.what for change in said) == ["nothing", "recorded"]
    assert payment_left(desk.payment) == 7000
