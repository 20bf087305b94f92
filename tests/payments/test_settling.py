"""What has no answer is checked until it has one: one effect in the books, and one notice."""

from __future__ import annotations

import datetime as dt
import logging
from collections.abc import Callable
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.core.exceptions import ObjectDoesNotExist
from django.utils import timezone

from payments import errors
from payments.models import Intent, IntentCall, Invoice, Payment, Refund
from payments.money import Money
from payments.results import ChargeResult, RefundResult
from payments.services import charge_make, intent_settle, intents_settle, refund_make
from payments.tasks import intents_settle as task
from tests.payments import cast
from tests.payments.cast import Desk, another_call
from tests.payments.processor import Processor

pytestmark = pytest.mark.django_db

SLOW = [("slow_committed", 1), ("slow_lost", 0)]


def refund(desk: Desk, amount: int = 6000, **more: Any) -> RefundResult:
    """Refund 60.00 EUR of the desk's payment."""
    values: dict[str, Any] = {"context": desk.context(), "currency": "EUR"} | more
    return refund_make(payment_id=desk.payment.pk, amount_minor=amount, **values)


def charge(desk: Desk, invoice: Invoice, **more: Any) -> ChargeResult:
    """Charge the invoice on the customer's card."""
    values: dict[str, Any] = {"context": desk.context(), "method_id": desk.method.pk} | more
    return charge_make(
        invoice_id=invoice.pk, amount_minor=invoice.amount_minor, currency="EUR", **values
    )


def later(**age: float) -> None:
    """Let so much time pass for every intent; the next try is due."""
    now = timezone.now()
    values: dict[str, Any] = {"next_try_at": now}
    if age:
        values["created_at"] = now - dt.timedelta(**age)
    Intent.objects.update(**values)


@pytest.mark.parametrize(("fault", "committed"), SLOW)
def test_a_refund_without_an_answer_is_checked_and_settles_once(
    ledger: Processor, fault: str, committed: int
) -> None:
    desk = Desk(fault=fault)
    context = desk.context()
    review = desk.approved(desk.payment, 6000)
    result = refund(desk, review_id=review, context=context)
    assert (result.state, result.code) == ("unknown", "refund.being_checked")
    assert result.already_applied is False
    assert "is being checked" in result.sentence
    assert "again" not in result.sentence
    # What is being checked counts as gone.
    assert result.left == Money(4000, "EUR")
    assert Refund.objects.get().state == "unknown"
    assert ledger.refunded(desk.payment.processor_ref) == [6000] * committed
    key = Intent.objects.get().idempotency_key

    later()
    assert intents_settle() == 1
    assert ledger.refunded(desk.payment.processor_ref) == [6000]
    assert (Intent.objects.get().state, Refund.objects.get().state) == ("succeeded", "succeeded")
    assert Intent.objects.get().idempotency_key == key
    text = (
        f"60.00 EUR of {desk.payment.reference} was refunded. Its reference is {result.reference}."
    )
    notice = (context.conversation_id, text, f"intent:{result.intent_id}")
    assert [notice] == cast.NOTICES

    assert intents_settle() == 0
    assert intent_settle(intent_id=result.intent_id) is True
    assert [notice] == cast.NOTICES
    assert ledger.refunded(desk.payment.processor_ref) == [6000]


@pytest.mark.parametrize(("fault", "committed"), SLOW)
def test_a_charge_without_an_answer_is_checked_and_settles_once(
    ledger: Processor, fault: str, committed: int
) -> None:
    desk = Desk(fault=fault)
    invoice, context = desk.owed(), desk.context()
    result = charge(desk, invoice, context=context)
    assert (result.state, result.code, result.reference) == ("unknown", "charge.being_checked", "")
    assert ledger.charged() == [2500] * committed
    later()
    task()
    payment = Payment.objects.get(invoice=invoice)
    invoice.refresh_from_db()
    assert invoice.state == "paid"
    assert ledger.charged() == [2500]
    text = f"25.00 EUR was charged for {invoice.reference}. Its reference is {payment.reference}."
    assert [(context.conversation_id, text, f"intent:{result.intent_id}")] == cast.NOTICES


@pytest.mark.parametrize("fault", ["server_before", "rate", "drop_after", "garbage_after"])
def test_whatever_happened_on_the_line_is_never_called_failed(
    desk: Desk, ledger: Processor, fault: str
) -> None:
    ledger.fault(fault)
    result = refund(desk, review_id=desk.approved(desk.payment, 6000))
    assert result.state == "unknown"
    later()
    intents_settle()
    assert ledger.refunded(desk.payment.processor_ref) == [6000]
    assert Refund.objects.get().state == "succeeded"


def test_a_later_call_attaches_with_no_new_key_and_no_new_review(ledger: Processor) -> None:
    desk = Desk(fault="slow_lost")
    context = desk.context()
    first = refund(desk, review_id=desk.approved(desk.payment, 6000), context=context)
    asked = ledger.asked("POST /v1/refunds")
    second = refund(desk, context=another_call(context))
    assert (second.state, second.reference) == ("unknown", first.reference)
    assert second.already_applied is False
    assert (Intent.objects.count(), Refund.objects.count()) == (1, 1)
    # The service does the retries, not whoever asks again.
    assert ledger.asked("POST /v1/refunds") == asked
    later()
    intents_settle()
    assert [notice[0] for notice in cast.NOTICES] == [context.conversation_id]
    assert ledger.refunded(desk.payment.processor_ref) == [6000]


def test_each_conversation_that_waits_is_told_once(ledger: Processor) -> None:
    desk = Desk(fault="slow_lost")
    invoice, one, two = desk.owed(), desk.context(), desk.context()
    charge(desk, invoice, context=one)
    charge(desk, invoice, context=two)
    later()
    intents_settle()
    intents_settle()
    told = [notice[0] for notice in cast.NOTICES]
    assert sorted(told, key=str) == sorted([one.conversation_id, two.conversation_id], key=str)


def test_another_amount_is_refused_while_one_is_being_checked(ledger: Processor) -> None:
    desk = Desk(fault="slow_lost")
    refund(desk, review_id=desk.approved(desk.payment, 6000))
    with pytest.raises(errors.IntentBusy, match="being checked"):
        refund(desk, 500)
    review = desk.approved(desk.payment, 500)
    with pytest.raises(errors.IntentBusy, match="being checked"):
        refund(desk, 500, review_id=review)
    assert Intent.objects.count() == 1
    later()
    intents_settle()
    # The approval was not used up by the refusal.
    assert refund(desk, 500, review_id=review).state == "unknown"
    assert ledger.refunded(desk.payment.processor_ref) == [6000]


def test_of_two_approved_the_second_is_blocked_while_the_first_is_being_checked(
    ledger: Processor,
) -> None:
    desk = Desk(fault="slow_lost")
    refund(desk, review_id=desk.approved(desk.payment, 6000))
    with pytest.raises(errors.RefundAboveLeft) as refusal:
        refund(desk, review_id=desk.approved(desk.payment, 6000))
    assert refusal.value.left == Money(4000, "EUR")
    assert Intent.objects.count() == 1


def test_a_replayed_call_that_was_told_to_wait_hears_the_end(ledger: Processor) -> None:
    desk = Desk(fault="slow_committed")
    context, review = desk.context(), desk.approved(desk.payment, 6000)
    first = refund(desk, review_id=review, context=context)
    assert refund(desk, review_id=review, context=context) == first
    later()
    intents_settle()
    again = refund(desk, review_id=review, context=context)
    assert (again.state, again.reference) == ("succeeded", first.reference)
    assert again.already_applied is False
    assert ledger.refunded(desk.payment.processor_ref) == [6000]


def test_a_refusal_found_later_is_told_and_frees_the_amount(desk: Desk, ledger: Processor) -> None:
    invoice = Desk(fault="declined").owed()
    declining = Desk(fault="declined")
    invoice = declining.owed()
    ledger.fault("drop_before")
    context = declining.context()
    assert charge(declining, invoice, context=context).state == "unknown"
    later()
    intents_settle()
    invoice.refresh_from_db()
    assert (Intent.objects.get().state, invoice.state) == ("failed", "open")
    assert [(who, "was declined" in text) for who, text, _ in cast.NOTICES] == [
        (context.conversation_id, True)
    ]
    assert ledger.charged() == []


def test_within_its_life_the_stored_body_goes_out_under_the_stored_key(
    ledger: Processor, settings: Any
) -> None:
    desk = Desk(fault="slow_lost")
    refund(desk, review_id=desk.approved(desk.payment, 6000))
    stored = Intent.objects.get()
    # Whatever changes on our side, the try is the same.
    Payment.objects.update(processor_ref="pi_other")
    later(hours=23, minutes=59)
    intents_settle()
    assert ledger.asked("GET /v1/refunds") == 0
    sent = [row["key"] for row in ledger.books()["requests"]]
    assert sent == [stored.idempotency_key] * 2
    assert ledger.refunded(stored.body["payment_intent"]) == [6000]


@pytest.mark.parametrize(("fault", "committed"), SLOW)
def test_after_a_day_it_looks_before_it_sends(
    ledger: Processor, fault: str, committed: int
) -> None:
    """The key is forgotten by then: sending blindly would pay a second time."""
    desk = Desk(fault=fault)
    refund(desk, 3000, review_id=desk.approved(desk.payment, 3000))
    ledger.forget_keys()
    later(hours=25)
    sent = ledger.asked("POST /v1/refunds")
    intents_settle()
    assert ledger.asked("GET /v1/refunds") == 1
    assert ledger.asked("POST /v1/refunds") == sent + (1 - committed)
    assert ledger.refunded(desk.payment.processor_ref) == [3000]
    assert Refund.objects.get().state == "succeeded"


def test_after_a_day_a_look_up_without_an_answer_sends_nothing(ledger: Processor) -> None:
    desk = Desk(fault="slow_committed")
    refund(desk, 3000, review_id=desk.approved(desk.payment, 3000))
    ledger.forget_keys()
    later(hours=25)
    ledger.fault("server_before")
    assert intents_settle() == 0
    assert Intent.objects.get().state == "open"
    assert ledger.refunded(desk.payment.processor_ref) == [3000]
    later()
    assert intents_settle() == 1
    assert ledger.refunded(desk.payment.processor_ref) == [3000]


@pytest.mark.parametrize("amount", [10_000, 6000])
def test_a_refusal_does_not_hide_what_an_earlier_try_did(
    desk: Desk, ledger: Processor, amount: int
) -> None:
    """The first try moved the money; the key is lost early; the second try is refused."""
    ledger.fault("drop_after")
    refund(desk, amount, review_id=desk.approved(desk.payment, amount))
    ledger.forget_keys()
    later()
    assert intents_settle() == 1
    assert Refund.objects.get().state == "succeeded"
    assert ledger.refunded(desk.payment.processor_ref) == [amount]


def test_tries_are_spread_and_only_one_is_due_at_a_time(
    desk: Desk, ledger: Processor, settings: Any
) -> None:
    settings.PAYMENT_TIMEOUT_SECONDS = 5
    # The call's own try, and with each later one a look at what it may have done.
    ledger.fault("server_before", times=7)
    refund(desk, review_id=desk.approved(desk.payment, 6000))
    waits = []
    for _ in range(3):
        later()
        before = timezone.now()
        assert intents_settle() == 0
        waits.append(Intent.objects.get().next_try_at - before)
        assert intents_settle() == 0
    assert ledger.asked("POST /v1/refunds") == 4
    assert [wait.total_seconds() // 10 * 10 for wait in waits] == [10, 20, 40]


def test_a_run_that_never_came_back_is_settled_and_its_conversation_told(
    desk: Desk, ledger: Processor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker dies between the intent and the call, and its run is never taken over."""
    from payments import services_refunds

    def die(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(services_refunds, "intent_finish", die)
        with pytest.raises(KeyboardInterrupt):
            refund(desk, review_id=desk.approved(desk.payment, 6000))
    assert ledger.refunded(desk.payment.processor_ref) == []
    # Its own run has a minute to come back.
    assert intents_settle() == 0
    later()
    assert intents_settle() == 1
    assert ledger.refunded(desk.payment.processor_ref) == [6000]
    assert [who for who, _, _ in cast.NOTICES] == [Intent.objects.get().conversation_id]


def test_a_conversation_that_cannot_be_told_keeps_nobody_waiting(
    ledger: Processor, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    desk = Desk(fault="slow_committed")
    refund(desk, review_id=desk.approved(desk.payment, 6000))
    settings.CONVERSATION_NOTICE = "tests.payments.test_settling.gone"
    later()
    with caplog.at_level(logging.ERROR):
        assert intents_settle() == 1
    assert "notice.failed" in caplog.messages
    assert Refund.objects.get().state == "succeeded"
    assert IntentCall.objects.get().waiting is True
    settings.CONVERSATION_NOTICE = "tests.payments.cast.notice_post"
    intents_settle()
    assert len(cast.NOTICES) == 1
    assert IntentCall.objects.get().waiting is False


def gone(conversation_id: UUID, said: Callable[[], str], dedupe: str) -> None:
    """Stand where the host's notices are, for a conversation that was deleted."""
    raise ObjectDoesNotExist


def test_the_tasks_name_is_data() -> None:
    assert task.name == "payments.intents_settle"


def test_an_intent_nobody_knows_is_an_error(desk: Desk) -> None:
    with pytest.raises(Intent.DoesNotExist):
        intent_settle(intent_id=uuid4())
