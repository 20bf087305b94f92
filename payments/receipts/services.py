"""Issue a document once, with the next number of its series.

The counter's row is locked from taking a number to the end of the transaction, and a number that
was rolled back was never taken: the series has neither a gap nor a double. It is the last lock of
whoever takes it (`payments.locks`), so nobody waits in a circle. That a thing gets one document
is held by the lock on its payment, and by constraint.
"""

from __future__ import annotations

from typing import Final
from uuid import UUID

from django.db import connection, transaction
from django.db.models import Sum
from django.utils import timezone

from payments.locks import payment_lock
from payments.models import Payment, Refund
from payments.receipts.content import Content, receipt_content, refund_content
from payments.receipts.models import Document
from payments.receipts.wording import NUMBER_PREFIX, DocumentKind, language_of
from payments.states import PaymentState, RefundState

_NEXT: Final = (
    "INSERT INTO receipts_series AS series (kind, year, last) VALUES (%s, %s, 1) "
    "ON CONFLICT (kind, year) DO UPDATE SET last = series.last + 1 RETURNING last"
)


def receipt_issue(payment: Payment) -> Document:
    """Issue the receipt of a payment that succeeded, in the caller's transaction.

    The caller has made the payment in it, or holds `payment_lock`.
    """
    if there := Document.objects.filter(payment=payment).first():
        return there
    issued, language = timezone.now(), language_of(payment.customer.language)
    kind, year = DocumentKind.RECEIPT, timezone.localtime(issued).year
    sequence = _next(kind, year)
    number = _number(kind, year, sequence)
    return Document.objects.create(
        kind=kind,
        year=year,
        sequence=sequence,
        number=number,
        customer=payment.customer,
        payment=payment,
        language=language,
        content=receipt_content(payment, number, language, issued),
        issued_at=issued,
    )


def refund_receipt_issue(refund: Refund) -> Document:
    """Issue the document of a refund that the processor accepted, in the caller's transaction.

    The caller holds `payment_lock`.
    """
    if there := Document.objects.filter(refund=refund).first():
        return there
    issued, language = timezone.now(), language_of(refund.payment.customer.language)
    kind, year = DocumentKind.REFUND_RECEIPT, timezone.localtime(issued).year
    of_payment = Document.objects.filter(refund__payment=refund.payment_id)
    # One that failed later gave nothing back: the next one carries its tax.
    held = of_payment.exclude(refund__state=RefundState.FAILED)
    earlier = held.aggregate(minor=Sum("refund__amount_minor"))["minor"] or 0
    sequence = _next(kind, year)
    number = _number(kind, year, sequence)
    return Document.objects.create(
        kind=kind,
        year=year,
        sequence=sequence,
        number=number,
        customer=refund.payment.customer,
        refund=refund,
        language=language,
        content=refund_content(refund, number, language, issued, earlier_minor=earlier),
        issued_at=issued,
    )


def document_of(record: Payment | Refund) -> Document | None:
    """Return the document of what succeeded; issue it if it is of before there were documents.

    None for what failed or is not certain: nobody gets a receipt for that.
    """
    if isinstance(record, Payment):
        if there := Document.objects.filter(payment=record).first():
            return there
        return _late(record.pk, None) if record.state == PaymentState.SUCCEEDED else None
    if there := Document.objects.filter(refund=record).first():
        return there
    return _late(record.payment_id, record) if record.state == RefundState.SUCCEEDED else None


def content_of(document: Document) -> Content:
    """Return what a document says."""
    content: Content = document.content
    return content


def _late(payment_id: UUID, refund: Refund | None) -> Document:
    with transaction.atomic():
        payment = payment_lock(payment_id)
        return refund_receipt_issue(refund) if refund else receipt_issue(payment)


def _next(kind: DocumentKind, year: int) -> int:
    """Take the next number: makes the counter, or waits for whoever holds it, in one statement."""
    with connection.cursor() as cursor:
        cursor.execute(_NEXT, (kind, year))
        return int(cursor.fetchone()[0])


def _number(kind: DocumentKind, year: int, sequence: int) -> str:
    return f"{NUMBER_PREFIX[kind]}-{year}-{sequence:06}"
