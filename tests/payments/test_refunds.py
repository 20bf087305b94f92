"""The ledger gives money back for an approved review only, what is left only, and once only.

The processor's own books are the judge, never our rows alone.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import uuid4

import httpx
import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from agent_core.contract import RunContext
from agent_core.errors import StaleAttempt
from payments import errors
from payments.models import Intent, IntentCall, Payment, Refund
from payments.money import Money
from payments.results import RefundResult
from payments.services import refund_make
from reviews.errors import ReviewConsumed, ReviewMismatch, ReviewNotApproved, ReviewUnusable
from reviews.models import Review
from tests.payments.cast import Desk, another_call
from tests.payments.processor import ACCESS, Processor

pytestmark = pytest.mark.django_db


def refund(
    desk: Desk, amount: int = 6000, *, payment: Payment | None = None, **more: Any
) -> RefundResult:
    """Refund 60.00 EUR of the desk's payment, without an approval unless one is given."""
    of = payment or desk.payment
    values: dict[str, Any] = {
        "context": desk.context(),
        "currency": of.currency,
        "reason": "damaged",
    } | more
    return refund_make(payment_id=of.pk, amount_minor=amount, **values)


def nothing_moved(desk: Desk, ledger: Processor) -> bool:
    """Tell whether neither our rows nor the processor's books know of any refund."""
    rows = Intent.objects.count() + Refund.objects.count() + IntentCall.objects.count()
    used = Review.objects.filter(consumed_at__isnull=False).count()
    asked = ledger.asked("POST /v1/refunds")
    return (rows, used, asked, ledger.refunded(desk.payment.processor_ref)) == (0, 0, 0, [])


def test_an_approved_refund_moves_the_money_once(desk: Desk, ledger: Processor) -> None:
    review, context = desk.approved(desk.payment, 6000), desk.context()
    result = refund(desk, review_id=review, context=context)
    assert (result.state, result.code) == ("succeeded", "refund.completed")
    assert (result.amount, result.left) == (Money(6000, "EUR"), Money(4000, "EUR"))
    assert result.already_applied is False
    assert result.payment_reference == desk.payment.reference
    row = Refund.objects.get()
    assert (row.reference, row.amount_minor, row.state) == (result.reference, 6000, "succeeded")
    assert (row.review_id, row.requested_by_id, row.reason) == (review, desk.ana.pk, "damaged")
    intent = Intent.objects.get()
    assert (intent.state, intent.tries, intent.call_id) == ("succeeded", 1, context.call_id)
    assert (intent.run_id, intent.attempt, intent.review_id) == (context.run_id, 1, review)
    assert Review.objects.get(pk=review).consumed_at is not None
    assert ledger.refunded(desk.payment.processor_ref) == [6000]
    assert ledger.books()["refunds"][0]["id"] == row.processor_ref


def test_nobody_gets_a_refund_without_a_review(desk: Desk, ledger: Processor) -> None:
    with pytest.raises(errors.ReviewMissing):
        refund(desk)
    assert nothing_moved(desk, ledger)


@pytest.mark.parametrize("state", ["pending", "rejected", "withdrawn", "expired"])
def test_a_review_that_is_not_approved_moves_nothing(
    desk: Desk, ledger: Processor, state: str
) -> None:
    with pytest.raises(ReviewNotApproved):
        refund(desk, review_id=desk.approved(desk.payment, 6000, state=state))
    assert nothing_moved(desk, ledger)


def test_a_review_that_does_not_exist_moves_nothing(desk: Desk, ledger: Processor) -> None:
    with pytest.raises(ReviewNotApproved):
        refund(desk, review_id=uuid4())
    assert nothing_moved(desk, ledger)


@pytest.mark.parametrize("amount", [5999, 6001, 10_000, 1])
def test_an_approval_for_another_amount_moves_nothing(
    desk: Desk, ledger: Processor, amount: int
) -> None:
    with pytest.raises(ReviewMismatch):
        refund(desk, amount, review_id=desk.approved(desk.payment, 6000))
    assert nothing_moved(desk, ledger)


def test_an_approval_for_another_payment_moves_nothing(desk: Desk, ledger: Processor) -> None:
    with pytest.raises(ReviewMismatch):
        refund(desk, review_id=desk.approved(desk.paid(), 6000))
    assert nothing_moved(desk, ledger)


def test_an_approval_of_a_charge_refunds_nothing(desk: Desk, ledger: Processor) -> None:
    with pytest.raises(ReviewUnusable):
        refund(desk, review_id=desk.approved(desk.owed(6000), 6000))
    assert nothing_moved(desk, ledger)


def test_a_stale_approval_of_an_earlier_version_moves_nothing(
    desk: Desk, ledger: Processor
) -> None:
    """Lea approved 60.00 as version 1; then the row was asked anew as version 2."""
    review = desk.approved(desk.payment, 6000, version=1)
    Review.objects.filter(pk=review).update(version=2)
    with pytest.raises(ReviewMismatch):
        refund(desk, review_id=review)
    assert nothing_moved(desk, ledger)


def test_a_used_approval_gives_nothing_a_second_time(desk: Desk, ledger: Processor) -> None:
    review = desk.approved(desk.payment, 3000)
    refund(desk, 3000, review_id=review)
    with pytest.raises(ReviewConsumed):
        refund(desk, 3000, review_id=review)
    assert Refund.objects.count() == 1
    assert ledger.refunded(desk.payment.processor_ref) == [3000]


def test_a_replayed_call_gets_the_first_result_word_for_word(desk: Desk, ledger: Processor) -> None:
    """Resumed from an old checkpoint: the same call comes again after the money has moved."""
    review, context = desk.approved(desk.payment, 3000), desk.context()
    first = refund(desk, 3000, review_id=review, context=context)
    refund(desk, 2000, review_id=desk.approved(desk.payment, 2000))
    again = refund(desk, 3000, review_id=review, context=replace(context, attempt=2))
    assert again == first
    assert again.left == Money(7000, "EUR")
    assert ledger.refunded(desk.payment.processor_ref) == [3000, 2000]


def test_two_wanted_refunds_of_the_same_amount_are_both_made(desk: Desk, ledger: Processor) -> None:
    first = refund(desk, 1000, review_id=desk.approved(desk.payment, 1000))
    second = refund(desk, 1000, review_id=desk.approved(desk.payment, 1000))
    assert first.reference != second.reference
    assert (first.already_applied, second.already_applied) == (False, False)
    assert ledger.refunded(desk.payment.processor_ref) == [1000, 1000]
    keys = set(Intent.objects.values_list("idempotency_key", flat=True))
    assert len(keys) == 2


def test_of_two_approved_refunds_the_one_above_the_rest_is_blocked_with_what_is_left(
    desk: Desk, ledger: Processor
) -> None:
    one, two = desk.approved(desk.payment, 6000), desk.approved(desk.payment, 6000)
    refund(desk, review_id=one)
    with pytest.raises(errors.RefundAboveLeft) as refusal:
        refund(desk, review_id=two)
    assert refusal.value.left == Money(4000, "EUR")
    assert str(refusal.value) == "60.00 EUR is more than is left: 40.00 EUR can still be refunded."
    assert Review.objects.get(pk=two).consumed_at is None
    assert Refund.objects.count() == 1
    assert ledger.refunded(desk.payment.processor_ref) == [6000]


@pytest.mark.parametrize(("second", "passes"), [(100, True), (101, False), (10_000, False)])
def test_after_99_of_100_only_the_last_one_passes(
    desk: Desk, ledger: Processor, second: int, passes: bool
) -> None:
    refund(desk, 9900, review_id=desk.approved(desk.payment, 9900))
    review = desk.approved(desk.payment, second)
    if passes:
        assert refund(desk, second, review_id=review).left == Money(0, "EUR")
    else:
        with pytest.raises(errors.RefundAboveLeft):
            refund(desk, second, review_id=review)
    assert sum(ledger.refunded(desk.payment.processor_ref)) == (10_000 if passes else 9900)


def test_refunds_of_earlier_days_count(desk: Desk, ledger: Processor) -> None:
    desk.payment.refunds.create(
        reference="REF-OLD", amount_minor=5000, currency="EUR", state="succeeded"
    )
    with pytest.raises(errors.RefundAboveLeft) as refusal:
        refund(desk, review_id=desk.approved(desk.payment, 6000))
    assert refusal.value.left == Money(5000, "EUR")
    assert ledger.refunded(desk.payment.processor_ref) == []


def test_the_daily_limit_counts_what_one_person_sent_today(
    desk: Desk, ledger: Processor, settings: Any
) -> None:
    settings.REFUND_DAILY_LIMIT = {"EUR": 7000}
    refund(desk, review_id=desk.approved(desk.payment, 6000))
    with pytest.raises(errors.DailyLimitReached) as refusal:
        refund(desk, 1001, review_id=desk.approved(desk.payment, 1001))
    assert (refusal.value.room, refusal.value.limit) == (Money(1000, "EUR"), Money(7000, "EUR"))
    Intent.objects.update(created_at=timezone.now() - timedelta(days=1))
    refund(desk, 1001, review_id=desk.approved(desk.payment, 1001))
    assert ledger.refunded(desk.payment.processor_ref) == [6000, 1001]


def test_a_disputed_payment_is_never_sent(desk: Desk, ledger: Processor) -> None:
    Payment.objects.update(disputed=True)
    with pytest.raises(errors.PaymentDisputed):
        refund(desk, review_id=desk.approved(desk.payment, 6000))
    assert nothing_moved(desk, ledger)


def test_a_payment_that_failed_is_never_sent(desk: Desk, ledger: Processor) -> None:
    Payment.objects.update(state="failed")
    with pytest.raises(errors.PaymentNotRefundable):
        refund(desk, review_id=desk.approved(desk.payment, 6000))
    assert nothing_moved(desk, ledger)


def test_another_currency_is_never_sent(desk: Desk, ledger: Processor) -> None:
    review = desk.approved(desk.payment, 6000, currency="USD")
    with pytest.raises(errors.AmountRefused):
        refund(desk, currency="USD", review_id=review)
    assert nothing_moved(desk, ledger)


@pytest.mark.parametrize(
    "reach", [{"team_ids": frozenset()}, {"customer_id": uuid4()}], ids=["team", "customer"]
)
def test_out_of_reach_is_the_same_as_missing(
    desk: Desk, ledger: Processor, reach: dict[str, Any]
) -> None:
    review = desk.approved(desk.payment, 6000)
    with pytest.raises(errors.TargetMissing) as beyond:
        refund(desk, review_id=review, context=desk.context(**reach))
    with pytest.raises(errors.TargetMissing) as missing:
        refund_make(context=desk.context(), payment_id=uuid4(), amount_minor=6000, currency="EUR")
    assert str(beyond.value) == str(missing.value)
    assert nothing_moved(desk, ledger)


def test_a_stale_attempt_writes_nothing(desk: Desk, ledger: Processor) -> None:
    def gone() -> None:
        raise StaleAttempt

    with pytest.raises(StaleAttempt):
        refund(
            desk,
            review_id=desk.approved(desk.payment, 6000),
            context=desk.context(fence=gone),
        )
    assert nothing_moved(desk, ledger)


def test_an_attempt_that_goes_stale_during_the_call_leaves_the_result_to_its_heir(
    desk: Desk, ledger: Processor
) -> None:
    """The first fence passes and the money moves; then another worker has taken the run over."""
    passes = iter([None])

    def fence() -> None:
        if next(passes, "gone") == "gone":
            raise StaleAttempt

    review, context = desk.approved(desk.payment, 6000), desk.context(fence=fence)
    with pytest.raises(StaleAttempt):
        refund(desk, review_id=review, context=context)
    assert (Intent.objects.get().state, Refund.objects.get().state) == ("open", "sending")
    heir: RunContext = replace(context, attempt=2, fence=lambda: None)
    result = refund(desk, review_id=review, context=heir)
    assert (result.state, result.already_applied) == ("succeeded", False)
    assert ledger.refunded(desk.payment.processor_ref) == [6000]


@pytest.mark.parametrize(("fault", "code"), [("disputed", "refund.disputed")])
def test_a_refusal_of_the_processor_is_final_and_frees_the_amount(
    ledger: Processor, fault: str, code: str
) -> None:
    desk = Desk(fault=fault)
    result = refund(desk, review_id=desk.approved(desk.payment, 6000))
    assert (result.state, result.code, result.left) == ("failed", code, Money(10_000, "EUR"))
    assert desk.payment.reference in result.sentence
    assert Refund.objects.get().state == "failed"
    assert ledger.refunded(desk.payment.processor_ref) == []


def test_what_was_refunded_elsewhere_is_final_after_one_call(desk: Desk, ledger: Processor) -> None:
    """Someone refunded everything at the processor's own desk; ours did not know."""
    form = {"payment_intent": desk.payment.processor_ref}
    url = f"{ledger.url}/v1/refunds"
    httpx.post(url, data=form, headers=ACCESS, trust_env=False).raise_for_status()
    result = refund(desk, review_id=desk.approved(desk.payment, 6000))
    assert (result.state, result.code) == ("failed", "refund.already_refunded")
    assert ledger.refunded(desk.payment.processor_ref) == [10_000]
    assert ledger.asked("POST /v1/refunds") == 2


def test_yen_are_refunded_as_they_are(ledger: Processor) -> None:
    desk = Desk(currency="JPY", amount=9899)
    result = refund(desk, 500, review_id=desk.approved(desk.payment, 500))
    assert result.sentence.startswith("500 JPY")
    assert ledger.refunded(desk.payment.processor_ref) == [500]
    refund(desk, 9399, review_id=desk.approved(desk.payment, 9399))
    assert ledger.refunded(desk.payment.processor_ref) == [500, 9399]


def test_the_table_refuses_a_refund_intent_without_a_review(desk: Desk) -> None:
    with pytest.raises(IntegrityError, match="intent_refund_has_review"), transaction.atomic():
        Intent.objects.create(
            operation="refund",
            target_id=desk.payment.pk,
            amount_minor=100,
            currency="EUR",
            gateway="sandbox",
            idempotency_key="k",
            body={},
            requester=desk.ana,
            next_try_at=timezone.now(),
        )
    refund(desk, review_id=desk.approved(desk.payment, 6000))
    with pytest.raises(IntegrityError, match="refund_sent_has_review"), transaction.atomic():
        Refund.objects.update(review_id=None)


def test_the_ledger_refuses_to_work_inside_another_transaction(
    desk: Desk, ledger: Processor
) -> None:
    review = desk.approved(desk.payment, 6000)
    with pytest.raises(RuntimeError, match="durable"), transaction.atomic():
        refund(desk, review_id=review)
    assert nothing_moved(desk, ledger)


def test_the_table_refuses_a_second_use_of_a_review(desk: Desk, ledger: Processor) -> None:
    refund(desk, review_id=desk.approved(desk.payment, 6000))
    intent = Intent.objects.get()
    intent.pk, intent.idempotency_key, intent.call_id = uuid4(), "other", uuid4()
    with pytest.raises(IntegrityError, match="review_id"), transaction.atomic():
        intent.save(force_insert=True)


def test_a_second_click_refunds_nothing(desk: Desk, ledger: Processor) -> None:
    """The same approval under another call id: a double click that became two calls."""
    review, context = desk.approved(desk.payment, 6000), desk.context()
    refund(desk, review_id=review, context=context)
    with pytest.raises(ReviewConsumed):
        refund(desk, review_id=review, context=another_call(context))
    assert ledger.refunded(desk.payment.processor_ref) == [6000]


def test_one_call_cannot_be_replayed_on_another_payment(desk: Desk, ledger: Processor) -> None:
    """A forged replay: the id of a finished call, another payment with an approval of its own."""
    context, other = desk.context(), desk.paid()
    refund(desk, 3000, review_id=desk.approved(desk.payment, 3000), context=context)
    review = desk.approved(other, 3000)
    with pytest.raises(IntegrityError, match="call_id"):
        refund(desk, 3000, payment=other, review_id=review, context=context)
    assert ledger.refunded(other.processor_ref) == []
    assert Review.objects.get(pk=review).consumed_at is None
