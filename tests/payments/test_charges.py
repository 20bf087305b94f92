"""An invoice is charged in full and once, however often and by whomever it is asked."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest

from agent_core.errors import StaleAttempt
from payments import errors
from payments.models import Intent, Invoice, Payment
from payments.money import Money
from payments.results import ChargeResult
from payments.services import charge_make
from reviews.errors import ReviewConsumed, ReviewMismatch, ReviewNotApproved
from reviews.models import Review
from tests.payments.cast import Desk, another_call
from tests.payments.processor import Processor

pytestmark = pytest.mark.django_db


def charge(desk: Desk, invoice: Invoice, amount: int = 2500, **more: Any) -> ChargeResult:
    """Charge the invoice on the customer's card."""
    values: dict[str, Any] = {
        "context": desk.context(),
        "method_id": desk.method.pk,
        "currency": "EUR",
    } | more
    return charge_make(invoice_id=invoice.pk, amount_minor=amount, **values)


def nothing_moved(ledger: Processor) -> bool:
    """Tell whether nothing was written, sent or paid."""
    paid = Payment.objects.filter(invoice__isnull=False).count()
    sent = ledger.asked("POST /v1/payment_intents")
    return (Intent.objects.count(), paid, sent, ledger.charged()) == (0, 0, 0, [])


def test_an_open_invoice_is_charged_in_full(desk: Desk, ledger: Processor) -> None:
    invoice, context = desk.owed(), desk.context()
    result = charge(desk, invoice, context=context)
    payment = Payment.objects.get(invoice=invoice)
    assert (result.state, result.code) == ("succeeded", "charge.completed")
    assert (result.reference, result.payment_id) == (payment.reference, payment.pk)
    assert (result.invoice_reference, result.amount) == (invoice.reference, Money(2500, "EUR"))
    assert result.already_applied is False
    assert (payment.amount_minor, payment.method_id) == (2500, desk.method.pk)
    invoice.refresh_from_db()
    assert invoice.state == "paid"
    assert ledger.charged() == [2500]
    assert ledger.books()["payment_intents"][0]["id"] == payment.processor_ref
    assert charge(desk, invoice, context=replace(context, attempt=2)) == result
    assert ledger.asked("POST /v1/payment_intents") == 1


def test_a_paid_invoice_gives_its_payment_again(desk: Desk, ledger: Processor) -> None:
    invoice, context = desk.owed(), desk.context()
    first = charge(desk, invoice, context=context)
    second = charge(desk, invoice, context=another_call(context))
    assert second == replace(first, already_applied=True)
    assert ledger.charged() == [2500]


@pytest.mark.parametrize(("amount", "currency"), [(2499, "EUR"), (2501, "EUR"), (2500, "USD")])
def test_anything_but_the_open_amount_is_refused(
    desk: Desk, ledger: Processor, amount: int, currency: str
) -> None:
    with pytest.raises(errors.AmountDiffers, match=r"in full: 25\.00 EUR"):
        charge(desk, desk.owed(), amount, currency=currency)
    assert nothing_moved(ledger)


def test_a_void_invoice_is_refused(desk: Desk, ledger: Processor) -> None:
    with pytest.raises(errors.InvoiceNotOpen):
        charge(desk, desk.owed(state="void"))
    assert nothing_moved(ledger)


def test_another_customers_card_is_refused(desk: Desk, ledger: Processor) -> None:
    with pytest.raises(errors.TargetMissing):
        charge(desk, desk.owed(), method_id=Desk().method.pk)
    assert nothing_moved(ledger)


@pytest.mark.parametrize(
    "reach", [{"team_ids": frozenset()}, {"customer_id": uuid4()}], ids=["team", "customer"]
)
def test_out_of_reach_is_the_same_as_missing(
    desk: Desk, ledger: Processor, reach: dict[str, Any]
) -> None:
    with pytest.raises(errors.TargetMissing):
        charge(desk, desk.owed(), context=desk.context(**reach))
    assert nothing_moved(ledger)


def test_a_declined_card_is_final_and_the_sentence_is_fit_for_the_customer(
    ledger: Processor,
) -> None:
    desk = Desk(fault="declined")
    invoice = desk.owed()
    result = charge(desk, invoice)
    assert (result.state, result.code) == ("failed", "charge.declined")
    assert result.sentence == (
        f"The charge of 25.00 EUR for {invoice.reference} was declined. Nothing was charged. "
        "Another payment method may work."
    )
    invoice.refresh_from_db()
    assert invoice.state == "open"
    assert ledger.charged() == []


@pytest.mark.parametrize("limits", [{"EUR": 2499}, {"USD": 99_999}, {}])
def test_a_big_charge_or_one_without_a_limit_needs_a_review(
    desk: Desk, ledger: Processor, settings: Any, limits: dict[str, int]
) -> None:
    settings.CHARGE_REVIEW_ABOVE = limits
    invoice = desk.owed()
    with pytest.raises(errors.ReviewMissing):
        charge(desk, invoice)
    with pytest.raises(ReviewMismatch):
        charge(desk, invoice, review_id=desk.approved(desk.owed(), 2500))
    with pytest.raises(ReviewNotApproved):
        charge(desk, invoice, review_id=desk.approved(invoice, 2500, state="pending"))
    assert nothing_moved(ledger)
    review = desk.approved(invoice, 2500)
    assert charge(desk, invoice, review_id=review).state == "succeeded"
    assert Review.objects.get(pk=review).consumed_at is not None
    assert ledger.charged() == [2500]


def test_a_confirmation_that_is_given_is_used_up_also_for_a_small_charge(
    desk: Desk, ledger: Processor
) -> None:
    declining = Desk(fault="declined")
    invoice = declining.owed()
    review = declining.approved(invoice, 2500)
    assert charge(declining, invoice, review_id=review).state == "failed"
    with pytest.raises(ReviewConsumed):
        charge(declining, invoice, review_id=review)
    assert Intent.objects.count() == 1


def test_a_stale_attempt_writes_nothing(desk: Desk, ledger: Processor) -> None:
    def gone() -> None:
        raise StaleAttempt

    with pytest.raises(StaleAttempt):
        charge(desk, desk.owed(), context=desk.context(fence=gone))
    assert nothing_moved(ledger)
