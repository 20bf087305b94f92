"""A document is issued once, numbered without a gap, and says the same for ever."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from django.db import DatabaseError, connection, transaction
from django.utils import timezone

from payments.models import Customer, Payment
from payments.receipts.as_html import document_html
from payments.receipts.as_pdf import document_pdf
from payments.receipts.models import Document, Series
from payments.receipts.services import document_of, receipt_issue
from tests.receipts.conftest import bought, given_back
from tests.rig.threads import Caller, at_once


def numbers() -> list[int]:
    """Return the numbers that were given out, in order."""
    return sorted(Document.objects.values_list("sequence", flat=True))


@pytest.mark.django_db
def test_numbers_run_on_within_a_kind_and_a_year() -> None:
    year = timezone.now().year
    one, two = bought(1), bought(2)
    issued = [document_of(record) for record in (one, two, given_back(two, 500))]
    assert [str(each) for each in issued] == [
        f"RCT-{year}-000001",
        f"RCT-{year}-000002",
        f"RFR-{year}-000001",
    ]
    Series.objects.create(kind="receipt", year=year + 1, last=6)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(timezone, "now", lambda: datetime(year + 1, 1, 1, 9, tzinfo=UTC))
        assert str(document_of(bought(3))) == f"RCT-{year + 1}-000007"


@pytest.mark.django_db
def test_it_is_issued_once_and_stays_as_it_was_issued() -> None:
    payment = bought(language="de")
    first = document_of(payment)
    assert first is not None
    html, pdf = document_html(first), document_pdf(first)
    Customer.objects.filter(pk=payment.customer_id).update(name="Somebody Else", language="ru")
    again = document_of(Payment.objects.get(pk=payment.pk))
    assert again is not None
    assert (again.pk, document_html(again), document_pdf(again)) == (first.pk, html, pdf)
    assert numbers() == [1]


@pytest.mark.django_db
@pytest.mark.parametrize("change", ["update", "delete"])
def test_nobody_changes_or_deletes_one(change: str) -> None:
    document_of(bought())
    rows = Document.objects.all()
    with pytest.raises(DatabaseError, match="stays as it is"), transaction.atomic():
        rows.update(number="RCT-1") if change == "update" else rows.delete()
    assert numbers() == [1]


@pytest.mark.django_db
@pytest.mark.parametrize("state", ["sending", "unknown", "failed"])
def test_nobody_gets_a_receipt_for_what_is_not_certain(state: str) -> None:
    payment = bought()
    assert document_of(given_back(payment, 500, state=state)) is None
    Payment.objects.filter(pk=payment.pk).update(state="failed")
    assert document_of(Payment.objects.get()) is None
    assert (Document.objects.count(), Series.objects.count()) == (0, 0)


@pytest.mark.django_db(transaction=True)
def test_a_number_that_was_rolled_back_is_given_to_the_next() -> None:
    one, two = bought(1), bought(2)
    with transaction.atomic():
        receipt_issue(one)
        transaction.set_rollback(True)
    assert numbers() == []
    document_of(two)
    document_of(one)
    assert numbers() == [1, 2]


@pytest.mark.django_db(transaction=True)
def test_who_issues_waits_for_the_number_before_and_gets_it_if_that_is_rolled_back() -> None:
    """One connection holds a number open; the other waits, and gets that very number."""
    one, two = bought(1), bought(2)
    with transaction.atomic():
        assert receipt_issue(one).sequence == 1
        other = Caller(lambda: document_of(two))
        assert other.waits()
        transaction.set_rollback(True)
    assert other.outcome().sequence == 1
    assert document_of(one).sequence == 2  # type: ignore[union-attr]


@pytest.mark.django_db(transaction=True)
def test_many_at_once_have_no_gap_and_no_double() -> None:
    payments = [bought(number) for number in range(1, 9)]
    made = at_once(*[lambda payment=payment: document_of(payment) for payment in payments])
    assert sorted(each.sequence for each in made) == list(range(1, 9))
    assert numbers() == list(range(1, 9))


@pytest.mark.django_db(transaction=True)
def test_two_who_open_the_same_old_payment_see_the_same_document() -> None:
    payment = bought()
    made = at_once(*[lambda: document_of(payment)] * 3)
    assert len({each.pk for each in made}) == 1
    assert (numbers(), Series.objects.get().last) == ([1], 1)
    assert connection.in_atomic_block is False
