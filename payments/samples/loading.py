"""Build the sample data: the known customers first, then a hundred ordinary ones."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta
from typing import Final

from payments.models import Customer, Invoice, Payment, PaymentMethod, Refund, Team
from payments.samples.cast import KNOWN, NORTH, SOUTH, Earlier, Known
from payments.samples.people import ordinary_people
from payments.samples.rows import Rows, row_id
from payments.sandbox.tokens import DECLINED, DISPUTED, earlier_ref, method_token
from payments.states import InvoiceState, MethodKind, RefundState

FIRST_ORDINARY: Final = 2001
_BRANDS: Final = ("visa", "mastercard")
_CURRENCIES: Final = ("EUR", "EUR", "EUR", "USD", "EUR", "GBP")
_WORK: Final = ("Service plan", "Spare parts", "Annual licence", "Repair", "Delivery")


def sample_rows(teams: dict[str, Team], today: date) -> Rows:
    """Return every sample record. Earlier payments fall on fixed days of the months before."""
    rows = Rows()
    for known in KNOWN:
        _add_customer(rows, known, teams[known.team], today)
    for place, (name, mail) in enumerate(ordinary_people()):
        _add_customer(rows, _ordinary(place, name, mail), teams[_team(place)], today)
    return rows


def _team(place: int) -> str:
    return SOUTH if place % 6 == 5 else NORTH


def _ordinary(place: int, name: str, mail: str) -> Known:
    """Return one ordinary customer; every figure follows from the place in the list."""
    currency = "JPY" if any("\u3040" <= sign <= "\u30ff" for sign in name) else ""
    currency = currency or _CURRENCIES[place % len(_CURRENCIES)]
    return Known(
        number=FIRST_ORDINARY + place,
        email=f"{mail}@example.com",
        name=name,
        brand=_BRANDS[place % len(_BRANDS)],
        last4=f"{(place * 7919 + 1234) % 10_000:04d}",
        open_minor=_figure(place, 7) if place % 3 == 0 else 0,
        earlier=tuple(
            Earlier(
                months=1 + turn,
                day=1 + (place * 5 + turn * 11) % 28,
                amount_minor=_figure(place, turn),
                refunded_minor=_figure(place, turn) // 4 if (place + turn) % 8 == 0 else 0,
            )
            for turn in range(1 + place % 4)
        ),
        currency=currency,
        description=_WORK[place % len(_WORK)],
    )


def _figure(place: int, turn: int) -> int:
    return 500 + (place * 737 + turn * 1291) % 24_000


def _add_customer(rows: Rows, known: Known, team: Team, today: date) -> None:
    number = str(known.number)
    customer = Customer(
        id=row_id("customer", number),
        reference=f"CUS-{number}",
        team=team,
        name=known.name,
        email=known.email,
        language=known.language,
    )
    method = PaymentMethod(
        id=row_id("method", number),
        customer=customer,
        kind=MethodKind.CARD,
        brand=known.brand,
        last4=known.last4,
        processor_ref=method_token(number, known.fault),
        is_default=True,
    )
    rows.customers.append(customer)
    rows.methods.append(method)
    if known.open_minor:
        rows.invoices.append(_open_invoice(known, customer, today))
    for turn, earlier in enumerate(known.earlier, 1):
        payment = _payment(known, method, earlier, turn=turn, today=today)
        rows.payments.append(payment)
        if earlier.refunded_minor:
            rows.refunds.append(_refund(payment, earlier.refunded_minor))


def _open_invoice(known: Known, customer: Customer, today: date) -> Invoice:
    first = today.replace(day=1)
    return Invoice(
        id=row_id("invoice", str(known.number)),
        reference=f"INV-{known.number}",
        customer=customer,
        description=known.description,
        amount_minor=known.open_minor,
        currency=known.currency,
        state=InvoiceState.OPEN,
        issued_on=first,
        due_on=first + timedelta(days=30),
    )


def _payment(
    known: Known, method: PaymentMethod, earlier: Earlier, *, turn: int, today: date
) -> Payment:
    number = f"{known.number}{turn}"
    return Payment(
        id=row_id("payment", number),
        reference=f"PAY-{number}",
        customer=method.customer,
        method=method,
        amount_minor=earlier.amount_minor,
        currency=known.currency,
        disputed=earlier.disputed,
        processor_ref=earlier_ref(
            number,
            earlier.amount_minor,
            known.currency,
            refunded_minor=earlier.refunded_minor,
            fault=_refund_fault(known, earlier),
        ),
        paid_at=_moment(today, earlier, known.number),
    )


def _refund_fault(known: Known, earlier: Earlier) -> str:
    """Only a disputed payment is disputed, not all of its customer's; a refund never declines."""
    if known.fault == DISPUTED:
        return DISPUTED if earlier.disputed else ""
    return "" if known.fault == DECLINED else known.fault


def _refund(payment: Payment, amount_minor: int) -> Refund:
    number = payment.reference.removeprefix("PAY-")
    given = payment.paid_at + timedelta(days=2)
    return Refund(
        id=row_id("refund", number),
        reference=f"REF-{number}",
        payment=payment,
        amount_minor=amount_minor,
        currency=payment.currency,
        reason="Agreed with the customer",
        state=RefundState.SUCCEEDED,
        processor_ref=f"re_sample_{number}",
        created_at=given,
        settled_at=given,
    )


def _moment(today: date, earlier: Earlier, number: int) -> datetime:
    """Return the day of that month before `today`, at an hour that differs between customers."""
    month = today.replace(day=1)
    for _turn in range(earlier.months):
        month = (month - timedelta(days=1)).replace(day=1)
    return datetime(month.year, month.month, earlier.day, 8 + number % 10, number % 60, tzinfo=UTC)
