"""Two callers at one payment, one invoice, one limit or one intent, on two real connections.

Every test names its interleaving and ends in the processor's own books.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.utils import timezone

from agent_core.errors import StaleAttempt
from payments import errors
from payments.models import Intent, Invoice, Payment, Refund
from payments.money import Money
from payments.results import ChargeResult, RefundResult
from payments.services import charge_make, intent_settle, intents_settle, refund_make
from tests.payments import cast
from tests.payments.cast import Desk, another_call
from tests.payments.conftest import ledger
from tests.payments.gates import GATES, PATIENCE, Gates
from tests.payments.processor import Processor, processor, processor_process
from tests.rig.threads import Caller, at_once

__all__ = ["ledger", "processor", "processor_process"]

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def gates(ledger: Processor, settings: Any) -> Iterator[Gates]:
    """Hold the first try at its gates until the test opens them."""
    settings.PAYMENT_GATEWAYS = {"sandbox": "tests.payments.gates.GatedGateway"}
    GATES.append(Gates())
    GATES[-1].write.set()
    yield GATES[-1]
    GATES.pop().open()


@pytest.fixture
def desk(ledger: Processor) -> Desk:
    """Return Ana, Lea, and a customer with one payment of 100.00 EUR."""
    return Desk()


def refund(desk: Desk, amount: int = 6000, **more: Any) -> RefundResult:
    """Refund 60.00 EUR of the desk's payment."""
    values: dict[str, Any] = {
        "context": desk.context(),
        "payment_id": desk.payment.pk,
        "currency": "EUR",
    } | more
    return refund_make(amount_minor=amount, **values)


def charge(desk: Desk, invoice: Invoice, **more: Any) -> ChargeResult:
    """Charge the invoice on the customer's card."""
    values: dict[str, Any] = {"context": desk.context(), "method_id": desk.method.pk} | more
    return charge_make(invoice_id=invoice.pk, amount_minor=2500, currency="EUR", **values)


def test_two_approved_refunds_at_once_never_take_more_than_was_paid(
    desk: Desk, ledger: Processor
) -> None:
    """Both begin at one barrier with an approval of their own; 60.00 + 60.00 of 100.00."""
    reviews = [desk.approved(desk.payment, 6000) for _ in range(2)]
    outcomes = at_once(*(lambda r=review: refund(desk, review_id=r) for review in reviews))
    made = [one for one in outcomes if isinstance(one, RefundResult)]
    blocked = [one for one in outcomes if isinstance(one, errors.RefundAboveLeft)]
    assert (len(made), len(blocked)) == (1, 1)
    assert blocked[0].left == Money(4000, "EUR")
    assert ledger.refunded(desk.payment.processor_ref) == [6000]
    assert Refund.objects.count() == 1


def test_the_second_is_blocked_while_the_first_is_on_the_line(
    desk: Desk, ledger: Processor, gates: Gates
) -> None:
    """First: intent committed, held before the line. Second: begins and ends. First: goes on."""
    first = Caller(lambda: refund(desk, review_id=desk.approved(desk.payment, 6000)))
    assert gates.sending.wait(PATIENCE)
    with pytest.raises(errors.RefundAboveLeft) as refusal:
        refund(desk, review_id=desk.approved(desk.payment, 6000))
    assert refusal.value.left == Money(4000, "EUR")
    gates.open()
    assert first.outcome().state == "succeeded"
    assert ledger.refunded(desk.payment.processor_ref) == [6000]


def test_two_clicks_on_one_approval_refund_once(desk: Desk, ledger: Processor) -> None:
    """Both begin at one barrier with the same approval and different call ids."""
    review = desk.approved(desk.payment, 3000)
    outcomes = at_once(*[lambda: refund(desk, 3000, review_id=review)] * 2)
    made = [one for one in outcomes if isinstance(one, RefundResult)]
    # The later one joins the first while that is open, or finds the approval used.
    assert {one.reference for one in made} == {Refund.objects.get().reference}
    assert [type(one).__name__ for one in outcomes if one not in made] in ([], ["ReviewConsumed"])
    assert ledger.refunded(desk.payment.processor_ref) == [3000]


def test_two_workers_with_one_call_refund_once(desk: Desk, ledger: Processor) -> None:
    """Both begin at one barrier with the same call: a resume that was delivered twice."""
    review, context = desk.approved(desk.payment, 3000), desk.context()
    outcomes = at_once(*[lambda: refund(desk, 3000, review_id=review, context=context)] * 2)
    assert outcomes[0] == outcomes[1]
    assert outcomes[0].state == "succeeded"
    assert Intent.objects.count() == 1
    assert ledger.refunded(desk.payment.processor_ref) == [3000]


def test_two_wanted_refunds_of_one_batch_follow_each_other(
    desk: Desk, ledger: Processor, gates: Gates
) -> None:
    """First: on the line. Second, approved by itself: waits. First: answered. Second: made."""
    one, two = desk.approved(desk.payment, 1000), desk.approved(desk.payment, 2000)
    first = Caller(lambda: refund(desk, 1000, review_id=one))
    assert gates.sending.wait(PATIENCE)
    second = Caller(lambda: refund(desk, 2000, review_id=two))
    assert second.waits()
    assert Intent.objects.count() == 1
    gates.open()
    assert (first.outcome().state, second.outcome().state) == ("succeeded", "succeeded")
    assert ledger.refunded(desk.payment.processor_ref) == [1000, 2000]


def test_a_call_without_a_review_joins_what_is_on_the_line(
    desk: Desk, ledger: Processor, gates: Gates
) -> None:
    """First: on the line. Second, the same amount: waits for it. First: answered. Second: told."""
    first = Caller(lambda: refund(desk, review_id=desk.approved(desk.payment, 6000)))
    assert gates.sending.wait(PATIENCE)
    second = Caller(lambda: refund(desk))
    assert second.waits()
    gates.open()
    made, joined = first.outcome(), second.outcome()
    assert (made.state, made.already_applied) == ("succeeded", False)
    assert (joined.reference, joined.already_applied) == (made.reference, True)
    assert ledger.refunded(desk.payment.processor_ref) == [6000]


def test_the_rest_is_counted_only_once_the_first_has_written(
    desk: Desk, ledger: Processor, gates: Gates
) -> None:
    """First: limits checked, no row yet, held. Second, another's: must wait. First: goes on."""
    one, two = desk.approved(desk.payment, 6000), desk.approved(desk.payment, 6000)
    gates.write.clear()
    first = Caller(lambda: refund(desk, review_id=one))
    assert gates.writing.wait(PATIENCE)
    leas = desk.context(requester_id=desk.lea.pk)
    second = Caller(lambda: refund(desk, review_id=two, context=leas))
    assert second.waits()
    gates.open()
    assert first.outcome().state == "succeeded"
    assert isinstance(second.outcome(), errors.RefundAboveLeft)
    assert ledger.refunded(desk.payment.processor_ref) == [6000]


def test_the_day_is_counted_only_once_the_first_has_written(
    desk: Desk, ledger: Processor, gates: Gates, settings: Any
) -> None:
    """As above, on two payments: together they are above Ana's day."""
    settings.REFUND_DAILY_LIMIT = {"EUR": 10_000}
    other = desk.paid()
    one, two = desk.approved(desk.payment, 6000), desk.approved(other, 6000)
    gates.write.clear()
    first = Caller(lambda: refund(desk, review_id=one))
    assert gates.writing.wait(PATIENCE)
    second = Caller(lambda: refund(desk, payment_id=other.pk, review_id=two))
    assert second.waits()
    gates.open()
    assert first.outcome().state == "succeeded"
    blocked = second.outcome()
    assert isinstance(blocked, errors.DailyLimitReached)
    assert blocked.room == Money(4000, "EUR")
    assert ledger.refunded(other.processor_ref) == []


def test_an_invoice_is_looked_at_only_once_the_first_has_written(
    desk: Desk, ledger: Processor, gates: Gates
) -> None:
    """First: invoice found open, no row yet, held. Second: begins, must wait, then joins."""
    invoice = desk.owed()
    gates.write.clear()
    first = Caller(lambda: charge(desk, invoice))
    assert gates.writing.wait(PATIENCE)
    second = Caller(lambda: charge(desk, invoice))
    assert second.waits()
    gates.open()
    made, joined = first.outcome(), second.outcome()
    assert (made.state, made.already_applied) == ("succeeded", False)
    assert (joined.reference, joined.already_applied) == (made.reference, True)
    assert ledger.charged() == [2500]


def test_two_charges_at_once_make_one(desk: Desk, ledger: Processor) -> None:
    """Both begin at one barrier in two conversations."""
    invoice = desk.owed()
    outcomes = at_once(*[lambda: charge(desk, invoice)] * 2)
    assert {one.state for one in outcomes} == {"succeeded"}
    assert {one.reference for one in outcomes} == {Payment.objects.get(invoice=invoice).reference}
    assert sorted(one.already_applied for one in outcomes) == [False, True]
    assert ledger.charged() == [2500]


def test_the_daily_limit_holds_for_two_payments_at_once(
    desk: Desk, ledger: Processor, settings: Any
) -> None:
    """Both begin at one barrier, on two payments; together they are above Ana's day."""
    settings.REFUND_DAILY_LIMIT = {"EUR": 10_000}
    payments = [desk.payment, desk.paid()]
    reviews = [desk.approved(payment, 6000) for payment in payments]
    outcomes = at_once(
        *(
            lambda p=payment.pk, r=review: refund(desk, payment_id=p, review_id=r)
            for payment, review in zip(payments, reviews, strict=True)
        )
    )
    blocked = [one for one in outcomes if isinstance(one, errors.DailyLimitReached)]
    assert len(blocked) == 1
    assert blocked[0].room == Money(4000, "EUR")
    moved = [ledger.refunded(payment.processor_ref) for payment in payments]
    assert sorted(moved) == [[], [6000]]


def test_no_connection_is_held_while_the_processor_is_asked(
    desk: Desk, ledger: Processor, gates: Gates
) -> None:
    """The gateway looks at its caller's connection, in a call and in the settle task."""
    gates.open()
    ledger.fault("server_after")
    result = refund(desk, review_id=desk.approved(desk.payment, 6000))
    assert result.state == "unknown"
    Intent.objects.update(next_try_at=timezone.now())
    assert intents_settle() == 1
    assert gates.connected == [False, False]


def test_the_settle_task_and_the_first_call_settle_once(
    desk: Desk, ledger: Processor, gates: Gates
) -> None:
    """Call: sent, its reply held. Task: due, asks under the same key, settles. Call: stores."""
    context = desk.context()
    review = desk.approved(desk.payment, 6000)
    call = Caller(lambda: refund(desk, review_id=review, context=context))
    assert gates.sending.wait(PATIENCE)
    gates.send.set()
    assert gates.sent.wait(PATIENCE)
    Intent.objects.update(next_try_at=timezone.now())
    assert intent_settle(intent_id=Intent.objects.get().pk) is True
    settled = Intent.objects.values().get()
    gates.open()
    result = call.outcome()
    assert (result.state, result.already_applied) == ("succeeded", False)
    assert Intent.objects.values().get() == settled
    assert gates.held == [settled["idempotency_key"]] * 2
    assert len(cast.NOTICES) == 1
    assert ledger.refunded(desk.payment.processor_ref) == [6000]


def test_two_settle_tasks_at_once_ask_once_and_tell_once(desk: Desk, ledger: Processor) -> None:
    """A call ended unknown; both tasks begin at one barrier when the next try is due."""
    ledger.fault("server_before")
    refund(desk, review_id=desk.approved(desk.payment, 6000))
    Intent.objects.update(next_try_at=timezone.now())
    at_once(intents_settle, intents_settle)
    assert ledger.asked("POST /v1/refunds") == 2
    assert len(cast.NOTICES) == 1
    assert ledger.refunded(desk.payment.processor_ref) == [6000]


def test_a_stalled_worker_cannot_store_what_its_heir_settled(
    desk: Desk, ledger: Processor, gates: Gates
) -> None:
    """Worker 1: sent, stalled. Worker 2, attempt 2: the same call, settles. Worker 1: goes on."""
    owner = [1]

    def fence_of(attempt: int) -> Callable[[], None]:
        def fence() -> None:
            if owner[0] != attempt:
                raise StaleAttempt

        return fence

    review, first = desk.approved(desk.payment, 6000), desk.context(fence=fence_of(1))
    stalled = Caller(lambda: refund(desk, review_id=review, context=first))
    assert gates.sending.wait(PATIENCE)
    gates.send.set()
    assert gates.sent.wait(PATIENCE)
    owner[0] = 2
    heir = desk.context(
        call_id=first.call_id,
        run_id=first.run_id,
        conversation_id=first.conversation_id,
        attempt=2,
        fence=fence_of(2),
    )
    result = refund(desk, review_id=review, context=heir)
    assert (result.state, result.already_applied) == ("succeeded", False)
    settled = Intent.objects.values().get()
    gates.open()
    assert isinstance(stalled.outcome(), StaleAttempt)
    assert Intent.objects.values().get() == settled
    assert ledger.refunded(desk.payment.processor_ref) == [6000]


def test_many_refunds_at_once_end_within_what_was_paid(desk: Desk, ledger: Processor) -> None:
    """Eight callers begin at one barrier, each approved for 30.00 of 100.00."""
    reviews = [desk.approved(desk.payment, 3000) for _ in range(8)]
    outcomes = at_once(*(lambda r=review: refund(desk, 3000, review_id=r) for review in reviews))
    kinds = sorted(type(one).__name__ for one in outcomes)
    assert kinds == ["RefundAboveLeft"] * 5 + ["RefundResult"] * 3
    assert ledger.refunded(desk.payment.processor_ref) == [3000] * 3


def test_the_next_call_after_the_first_is_settled_is_told_of_it(
    desk: Desk, ledger: Processor
) -> None:
    """No overlap: a second charge of a paid invoice, in the same conversation."""
    invoice, context = desk.owed(), desk.context()
    first = charge(desk, invoice, context=context)
    second = charge(desk, invoice, context=another_call(context))
    assert (second.reference, second.already_applied) == (first.reference, True)
    assert ledger.charged() == [2500]
