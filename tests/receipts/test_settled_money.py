"""Whoever moves money issues its document in the same transaction."""

from __future__ import annotations

import pytest
from django.utils import timezone

from payments.models import Customer, Intent, Payment
from payments.receipts.models import Document
from payments.services import charge_make, intent_settle, refund_make
from tests.payments.cast import Desk
from tests.payments.conftest import desk, ledger
from tests.payments.processor import Processor, processor, processor_process

__all__ = ["desk", "ledger", "processor", "processor_process"]

pytestmark = pytest.mark.django_db


def charged(desk: Desk) -> Payment:
    """Charge an invoice of the customer."""
    invoice = desk.owed()
    charge_make(
        context=desk.context(),
        invoice_id=invoice.pk,
        method_id=desk.method.pk,
        amount_minor=2500,
        currency="EUR",
    )
    return Payment.objects.get(invoice=invoice)


def test_a_charge_that_completes_has_its_receipt(desk: Desk) -> None:
    Customer.objects.update(language="de")
    payment = charged(desk)
    document = Document.objects.get()
    assert (document.payment_id, document.language) == (payment.pk, "de")
    assert document.content["total"] == "25,00 EUR"
    assert document.customer_id == payment.customer_id


def test_a_declined_charge_has_none(ledger: Processor) -> None:
    desk = Desk(fault="declined")
    invoice = desk.owed()
    result = charge_make(
        context=desk.context(),
        invoice_id=invoice.pk,
        method_id=desk.method.pk,
        amount_minor=2500,
        currency="EUR",
    )
    assert result.state == "failed"
    assert not Document.objects.exists()


def test_a_refund_that_succeeds_has_its_document(desk: Desk) -> None:
    for amount in (6000, 1500):
        refund_make(
            payment_id=desk.payment.pk,
            amount_minor=amount,
            review_id=desk.approved(desk.payment, amount),
            context=desk.context(),
            currency="EUR",
            reason="damaged",
        )
    documents = Document.objects.order_by("sequence")
    said = [(each.content["title"], each.content["total"]) for each in documents]
    assert said == [("Refund receipt", "60.00 EUR"), ("Refund receipt", "15.00 EUR")]
    assert [each.refund.amount_minor for each in documents if each.refund] == [6000, 1500]


def test_a_document_that_cannot_be_issued_leaves_nothing_settled(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The intent stays open, so the settle task tries again and issues it then."""

    def lost(payment: Payment) -> Document:
        raise InterruptedError

    with monkeypatch.context() as patch:
        patch.setattr("payments.services_settle.receipt_issue", lost)
        with pytest.raises(InterruptedError):
            charged(desk)
    intent = Intent.objects.get()
    assert intent.state == "open"
    assert not Payment.objects.filter(intent=intent).exists()
    Intent.objects.update(next_try_at=timezone.now())
    assert intent_settle(intent_id=intent.pk)
    payment = Payment.objects.get(intent=intent)
    assert Document.objects.get().payment_id == payment.pk
