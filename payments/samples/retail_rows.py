"""Turn the retail data set into records of ours: the same ones from the same file, always."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Final

from payments.models import Customer, Invoice, Payment, PaymentMethod, Refund, Team
from payments.samples.retail import CURRENCY, FIRST_DAY, Method, Order, Person, Retail
from payments.samples.rows import Rows, row_id
from payments.sandbox.tokens import earlier_ref, method_token
from payments.states import InvoiceState, RefundState

SINCE: Final = datetime(FIRST_DAY.year, FIRST_DAY.month, FIRST_DAY.day, tzinfo=UTC)


def retail_rows(retail: Retail, team: Team) -> Rows:
    """Return every record of the data set, for customers of this team."""
    rows = Rows()
    customers: dict[str, Customer] = {}
    methods: dict[str, PaymentMethod] = {}
    for person in retail.people:
        customer = customers[person.key] = _customer(person, team)
        rows.customers.append(customer)
        for place, method in enumerate(person.methods):
            # Only the first is the default: the rest are named by their last digits or kind.
            methods[f"{person.key}/{method.key}"] = _method(person, method, customer, place == 0)
    rows.methods.extend(methods.values())
    for order in retail.orders:
        customer = customers[order.person]
        payment = _payment(order, customer, methods[f"{order.person}/{order.method}"])
        rows.payments.append(payment)
        rows.refunds.extend(_refunds(order, payment))
    rows.invoices.extend(_invoice(order, customers[order.person]) for order in retail.open_orders())
    return rows


def customer_reference(key: str) -> str:
    """Return "CUS-NOAH-BROWN-6181" for the data set's noah_brown_6181."""
    return f"CUS-{key.upper().replace('_', '-')}"[:40]


def _letters(key: str) -> str:
    return key.replace("_", "")


def _customer(person: Person, team: Team) -> Customer:
    return Customer(
        id=row_id("customer", person.key),
        reference=customer_reference(person.key),
        team=team,
        name=person.name,
        email=person.email,
        created_at=SINCE,
    )


def _method(person: Person, method: Method, customer: Customer, default: bool) -> PaymentMethod:
    return PaymentMethod(
        id=row_id("method", f"{person.key}/{method.key}"),
        customer=customer,
        kind=method.kind,
        brand=method.brand,
        last4=method.last4,
        processor_ref=method_token(_letters(method.key)),
        is_default=default,
    )


def _payment(order: Order, customer: Customer, method: PaymentMethod) -> Payment:
    return Payment(
        id=row_id("payment", order.number),
        reference=f"PAY-{order.number}",
        customer=customer,
        method=method,
        amount_minor=order.amount_minor,
        currency=CURRENCY,
        processor_ref=earlier_ref(
            order.number,
            order.amount_minor,
            CURRENCY,
            refunded_minor=sum(amount for _method_key, amount in order.refunds),
        ),
        paid_at=order.paid_at,
    )


def _refunds(order: Order, payment: Payment) -> list[Refund]:
    given = order.paid_at + timedelta(days=3)
    many = len(order.refunds) > 1
    return [
        Refund(
            id=row_id("refund", f"{order.number}/{place}"),
            reference=f"REF-{order.number}" + (f"-{place}" if many else ""),
            payment=payment,
            amount_minor=amount,
            currency=CURRENCY,
            reason="Order cancelled" if order.state == "cancelled" else "Returned",
            state=RefundState.SUCCEEDED,
            processor_ref=f"re_retail_{order.number}_{place}",
            created_at=given,
            settled_at=given,
        )
        for place, (_method_key, amount) in enumerate(order.refunds, 1)
    ]


def _invoice(order: Order, customer: Customer) -> Invoice:
    issued = order.paid_at.date()
    return Invoice(
        id=row_id("invoice", order.number),
        reference=f"INV-{order.number}",
        customer=customer,
        description=f"Second delivery: {order.first_item}",
        amount_minor=order.first_price_minor,
        currency=CURRENCY,
        state=InvoiceState.OPEN,
        issued_on=issued,
        due_on=issued + timedelta(days=30),
    )
