"""What a document says, as data: every line in the customer's language, ready to be laid out.

Texts from outside lose what is not text (control signs, marks that turn the direction round) and
are otherwise left as they are: the two layouts treat them as data.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Mapping
from datetime import date, datetime
from typing import Final, TypedDict

from babel.dates import format_date
from django.conf import settings
from django.utils import timezone

from payments.currencies import decimal_mark, locale_of
from payments.models import Invoice, Payment, PaymentMethod, Refund
from payments.money import Money, money_format
from payments.receipts.wording import WORDS, DocumentKind, locale_tag

VERSION: Final = 1
_JOINERS: Final = "\u200c\u200d"
"""Invisible, but words of some scripts are misspelled without them."""


class Content(TypedDict):
    """All that a document says; `rows` are pairs of label and value."""

    v: int
    language: str
    title: str
    number_label: str
    number: str
    seller: list[str]
    total_label: str
    total: str
    rows: list[list[str]]
    page: str


def receipt_content(payment: Payment, number: str, language: str, issued: datetime) -> Content:
    """Say that this was paid."""
    words, place = WORDS[language], locale_tag(payment.customer.language)
    rows = [
        (words["paid_on"], _day(payment.paid_at, place)),
        (words["issued_on"], _day(issued, place)),
        *_customer(payment, words),
        (words["payment"], payment.reference),
        *_bought(payment.invoice, words),
        (words["paid_with"], _method(payment.method, words)),
        *_tax(payment.invoice, 0, payment, words, place),
    ]
    total = money_format(Money(payment.amount_minor, payment.currency), place)
    return _content(DocumentKind.RECEIPT, number, language, (words["paid"], total), rows)


def refund_content(
    refund: Refund, number: str, language: str, issued: datetime, *, earlier_minor: int
) -> Content:
    """Say that this went back; `earlier_minor` is what went back of the same payment before."""
    words, payment = WORDS[language], refund.payment
    place = locale_tag(payment.customer.language)
    moved = refund.settled_at or refund.created_at
    rows = [
        (words["refunded_on"], _day(moved, place)),
        (words["issued_on"], _day(issued, place)),
        *_customer(payment, words),
        (words["refund"], refund.reference),
        (words["payment"], payment.reference),
        *_bought(payment.invoice, words),
        (words["goes_back_to"], _method(payment.method, words)),
        *_tax(payment.invoice, earlier_minor, refund, words, place),
    ]
    total = money_format(Money(refund.amount_minor, refund.currency), place)
    return _content(DocumentKind.REFUND_RECEIPT, number, language, (words["refunded"], total), rows)


def plain(text: str) -> str:
    """Return a text on one line without control signs and without marks of direction."""
    kept = (
        sign if sign in _JOINERS or unicodedata.category(sign) not in _NOT_TEXT else ""
        for sign in " ".join(unicodedata.normalize("NFC", text).split())
    )
    return "".join(kept).strip()


_NOT_TEXT: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})


def _content(
    kind: DocumentKind,
    number: str,
    language: str,
    total: tuple[str, str],
    rows: list[tuple[str, str]],
) -> Content:
    words = WORDS[language]
    return Content(
        v=VERSION,
        language=language,
        title=words[kind],
        number_label=words["number"],
        number=number,
        seller=list(_seller(words)),
        total_label=total[0],
        total=total[1],
        rows=[[label, plain(value)] for label, value in rows if plain(value)],
        page=words["page"],
    )


def _seller(words: Mapping[str, str]) -> Iterator[str]:
    seller = settings.RECEIPT_SELLER
    if not seller["name"]:
        return
    yield plain(seller["name"])
    yield from (plain(line) for line in seller["address"])
    if seller["tax_id"]:
        yield words["tax_id"].format(tax_id=plain(seller["tax_id"]))


def _customer(payment: Payment, words: Mapping[str, str]) -> list[tuple[str, str]]:
    customer = payment.customer
    return [
        (words["customer"], customer.name),
        (words["customer_reference"], customer.reference),
    ]


def _bought(invoice: Invoice | None, words: Mapping[str, str]) -> list[tuple[str, str]]:
    if invoice is None:
        return []
    return [(words["invoice"], invoice.reference), (words["for"], invoice.description)]


def _method(method: PaymentMethod, words: Mapping[str, str]) -> str:
    name = plain(method.brand).title() or words.get(method.kind, words["card"])
    digits = plain(method.last4)
    return words["ending"].format(name=name, digits=digits) if digits else name


def _tax(
    invoice: Invoice | None,
    before_minor: int,
    moved: Payment | Refund,
    words: Mapping[str, str],
    place: str,
) -> list[tuple[str, str]]:
    """Return the tax in this amount, where the invoice carries any.

    Shares are differences of running totals, so that those of all refunds add up to the whole.
    """
    if invoice is None or invoice.tax_minor is None or invoice.tax_rate_basis_points is None:
        return []
    tax, whole, after = invoice.tax_minor, invoice.amount_minor, before_minor + moved.amount_minor
    minor = tax * min(after, whole) // whole - tax * min(before_minor, whole) // whole
    label = words["tax"].format(rate=_rate(invoice.tax_rate_basis_points, place))
    return [(label, money_format(Money(minor, moved.currency), place))]


def _rate(basis_points: int, place: str) -> str:
    whole, rest = divmod(basis_points, 100)
    decimals = f"{rest:02}".rstrip("0")
    return f"{whole}{decimal_mark(place)}{decimals}" if decimals else str(whole)


def _day(moment: datetime, place: str) -> str:
    day: date = timezone.localtime(moment).date()
    return format_date(day, "long", locale=locale_of(place))
