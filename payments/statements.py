"""Write what was found as text that a customer could read and that names every reference.

References are what the model needs to go on; ids, codes and the processor's names never appear.
"""

from __future__ import annotations

from typing import Final

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from payments import selectors
from payments.models import Customer, Payment, Refund
from payments.money import Money, money_format
from payments.periods import Period
from payments.proposals import method_text, one_line
from payments.states import PaymentState, RefundState

LINES_SHOWN: Final = 20
LATEST_SHOWN: Final = 5


def customer_statement(customer: Customer) -> str:
    """Return who the customer is, what they can pay with, what they owe and paid last."""
    methods = [method_text(method) for method in selectors.methods_of(customer)]
    parts = [
        f"{one_line(customer.name)}, {customer.email}, {customer.reference}.",
        _("Saved ways to pay: {list}.").format(list=", ".join(methods) or _("none")),
        _invoices(customer),
        _payments(customer, None, LATEST_SHOWN),
    ]
    return "\n".join(part for part in parts if part)


def payments_statement(customer: Customer, period: Period | None) -> str:
    """Return the customer's payments, refunds and open invoices, of a period if one is asked."""
    heading = _("{name}, {email}").format(name=one_line(customer.name), email=customer.email)
    if period is not None:
        heading += ", " + period.label
    shown = list(selectors.payments_of(customer, period)[:LINES_SHOWN])
    parts = [
        heading + ":",
        _payments(customer, period, LINES_SHOWN, with_refunds=True),
        _other_refunds(customer, period, shown) if period is not None else "",
        _invoices(customer),
    ]
    return "\n".join(part for part in parts if part)


def customers_short(found: selectors.Found) -> str:
    """Return a short list of several matches, to choose from."""
    lines = [
        f"- {one_line(customer.name)}, {customer.email}, {customer.reference}"
        for customer in found.customers
    ]
    more = found.total - len(lines)
    if more > 0:
        lines.append(_("- and {count} more").format(count=more))
    return "\n".join(lines)


def day(moment_of: Payment | Refund) -> str:
    """Return the day of a payment or refund in the desk's time zone."""
    moment = moment_of.paid_at if isinstance(moment_of, Payment) else moment_of.created_at
    return timezone.localdate(moment).isoformat()


def _payments(
    customer: Customer, period: Period | None, most: int, *, with_refunds: bool = False
) -> str:
    rows = selectors.payments_of(customer, period)
    shown, total = list(rows[:most]), rows.count()
    if not shown:
        return _("No payments.") if period is None else _("No payments in this period.")
    refunds = selectors.refunds_by_payment(shown)
    lines = []
    for payment in shown:
        given = refunds.get(payment.pk, [])
        lines.append(_payment_line(payment, sum(refund.amount_minor for refund in given)))
        # Without the payment's reference: whoever picks a payment line must not meet it twice.
        lines += [f"  - {_refund_line(refund)}" for refund in given if with_refunds]
    return _listed(_("Payments:"), lines, total - len(shown))


def _payment_line(payment: Payment, refunded_minor: int) -> str:
    words = [
        payment.reference,
        _money(payment.amount_minor, payment.currency),
        day(payment),
        method_text(payment.method),
    ]
    if payment.state != PaymentState.SUCCEEDED:
        words.append(_("failed"))
    elif payment.disputed:
        words.append(_("disputed at the bank, cannot be refunded here"))
    else:
        left = _money(payment.amount_minor - refunded_minor, payment.currency)
        words.append(_("{left} left to refund").format(left=left))
    return "- " + ", ".join(words)


def _other_refunds(customer: Customer, period: Period, shown: list[Payment]) -> str:
    """Return the refunds of the period that belong to payments outside it."""
    rows = selectors.refunds_of(customer, period).exclude(payment__in=shown)
    lines = [
        f"- {_refund_line(refund)}, {refund.payment.reference}" for refund in rows[:LINES_SHOWN]
    ]
    return (
        _listed(_("Refunds of other payments:"), lines, rows.count() - len(lines)) if lines else ""
    )


def _refund_line(refund: Refund) -> str:
    return _("{reference}, {amount} refunded on {day}, {state}").format(
        reference=refund.reference,
        amount=_money(refund.amount_minor, refund.currency),
        day=day(refund),
        state=RefundState(refund.state).label,
    )


def _invoices(customer: Customer) -> str:
    rows = selectors.open_invoices_of(customer)[:LINES_SHOWN]
    lines = [
        f"- {invoice.reference}, {_money(invoice.amount_minor, invoice.currency)}, "
        + _("due {due}, {what}").format(
            due=invoice.due_on.isoformat(), what=one_line(invoice.description)
        )
        for invoice in rows
    ]
    return "\n".join([_("Open invoices:"), *lines]) if lines else _("No open invoice.")


def _listed(heading: str, lines: list[str], more: int) -> str:
    if more > 0:
        lines.append(
            ngettext(
                "- and {count} earlier one; name a period to see it",
                "- and {count} earlier ones; name a period to see them",
                more,
            ).format(count=more)
        )
    return "\n".join([heading, *lines])


def _money(amount_minor: int, currency: str) -> str:
    return money_format(Money(amount_minor, currency))
