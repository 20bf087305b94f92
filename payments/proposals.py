"""Write what a reviewer is asked: title, button, and the card's rows in their fixed order.

The gate builds a proposal from a call, `reviewing.py` builds the next one from a reviewer's change.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final
from uuid import UUID

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agent_core.contract import RunContext
from agent_core.policy import ReviewProposal
from payments.models import Customer, Invoice, Payment, PaymentMethod, Refund
from payments.money import Money, money_format, money_plain
from payments.risks import customer_flags, refund_flags, stands
from payments.selectors import disputes_of, refunds_lately
from payments.states import Operation, subject_hash
from reviews.selectors import reviews_unused, reviews_waiting
from reviews.words import person_name

Row = Mapping[str, str]
WATCH_SHOWN: Final = 3
REASON_LENGTH: Final = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class RefundAsk:
    """One refund as it would be approved, with what the payment holds now.

    `waiting_minor` is what other requests ask of the payment; `left_minor` is without it.
    """

    payment: Payment
    amount_minor: int
    refunded_minor: int
    waiting_minor: int
    left_minor: int
    reason: str
    why: str
    asked_by: str
    call_id: UUID | None
    origins: Sequence[Row] = ()
    origin_flags: Sequence[Row] = ()
    version: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ChargeAsk:
    """One charge as it would be approved."""

    invoice: Invoice
    method: PaymentMethod | None
    why: str
    asked_by: str
    requester_confirms: bool
    origins: Sequence[Row] = ()
    origin_flags: Sequence[Row] = ()
    version: int = 1


def refund_proposal(ask: RefundAsk) -> ReviewProposal:
    """Return what a second person is asked about a refund."""
    payment, customer = ask.payment, ask.payment.customer
    amount = _money(ask.amount_minor, payment.currency)
    lately, disputes = refunds_lately(customer), disputes_of(customer)
    warnings = _refund_warnings(payment, ask.call_id, lately, disputes)
    asked = Money(ask.amount_minor, payment.currency)
    return ReviewProposal(
        kind="refund",
        subject_id=payment.pk,
        subject_hash=subject_hash(
            Operation.REFUND, payment.pk, ask.amount_minor, payment.currency, ask.version
        ),
        title=_("Refund {amount} to {name}").format(amount=amount, name=one_line(customer.name)),
        button=_("Approve {amount}").format(amount=amount),
        amount_minor=ask.amount_minor,
        currency=payment.currency,
        team_id=customer.team_id,
        card=(
            _row(_("Why you"), ask.why),
            _row(_("Effect"), _refund_effect(ask)),
            _row(_("Watch"), " ".join(warnings) or _("No other refund lately, no dispute.")),
            _row(_("Asked by"), ask.asked_by),
            _row(_("Reason"), ask.reason or _("No reason was given.")),
            _row(_("Customer"), _customer_text(customer)),
            *ask.origins,
        ),
        warnings=warnings,
        fields={
            "amount": money_plain(asked),
            "reason": ask.reason,
        },
        flags=(*_refund_risks(ask, asked, len(lately), disputes), *ask.origin_flags),
    )


def _refund_risks(ask: RefundAsk, asked: Money, lately: int, disputes: int) -> list[Row]:
    payment = ask.payment
    return [
        *customer_flags(payment.customer, asked, besides=payment, disputes=disputes),
        *refund_flags(payment, asked, ask.refunded_minor, lately),
    ]


def charge_proposal(ask: ChargeAsk) -> ReviewProposal:
    """Return what a person is asked about a charge: a second one, or the one who asked."""
    invoice, customer = ask.invoice, ask.invoice.customer
    wanted = Money(invoice.amount_minor, invoice.currency)
    amount, name = _money(wanted.amount_minor, wanted.currency), one_line(customer.name)
    if ask.requester_confirms:
        title = _("Confirm before {name} is charged {amount}").format(name=name, amount=amount)
        button, fields = _("Confirm {amount}").format(amount=amount), {"confirm": "requester"}
    else:
        title = _("Charge {amount} to {name}").format(name=name, amount=amount)
        button, fields = _("Approve {amount}").format(amount=amount), {}
    method = method_text(ask.method) if ask.method else _("no saved way to pay")
    effect = _("{invoice}, {amount}, due on {due}, is paid with {method}.").format(
        invoice=invoice.reference, amount=amount, due=invoice.due_on.isoformat(), method=method
    )
    disputes = disputes_of(customer)
    warnings = [_disputes_text(disputes)] if disputes else []
    subject = (Operation.CHARGE, invoice.pk, invoice.amount_minor, invoice.currency, ask.version)
    return ReviewProposal(
        kind="charge",
        subject_id=invoice.pk,
        subject_hash=subject_hash(*subject),
        title=title,
        button=button,
        amount_minor=invoice.amount_minor,
        currency=invoice.currency,
        team_id=customer.team_id,
        card=(
            _row(_("Why you"), ask.why),
            _row(_("Effect"), effect),
            _row(_("Watch"), " ".join(warnings) or _("No dispute.")),
            _row(_("Asked by"), ask.asked_by),
            _row(_("Reason"), one_line(invoice.description) or _("No description.")),
            _row(_("Customer"), _customer_text(customer)),
            *ask.origins,
        ),
        warnings=tuple(warnings),
        fields=fields,
        flags=(*customer_flags(customer, wanted, disputes=disputes), *ask.origin_flags),
    )


def _refund_warnings(
    payment: Payment, call_id: UUID | None, lately: Sequence[Refund], disputes: int
) -> tuple[str, ...]:
    """Return what a reviewer should watch: twins that wait, refunds to the customer, disputes."""
    lines = list(_waiting_texts(payment.pk, call_id))
    if lately:
        lines.append(
            ngettext(
                "{count} refund to this customer in the last 30 days: {list}",
                "{count} refunds to this customer in the last 30 days: {list}",
                len(lately),
            ).format(count=len(lately), list=_refunds_text(lately))
        )
    if disputes:
        lines.append(_disputes_text(disputes))
    return tuple(lines)


def _waiting_texts(payment_id: UUID, call_id: UUID | None) -> list[str]:
    """Tell of twins that wait, and of those approved a moment ago that the ledger has not yet."""
    waits = _("Another request of {amount} for this payment waits (asked by {name}).")
    goes = _(
        "Another request of {amount} for this payment is approved and not sent yet "
        "(asked by {name})."
    )
    found = (
        (goes, reviews_unused(kind="refund", subject_id=payment_id, without_call=call_id)),
        (waits, reviews_waiting(kind="refund", subject_id=payment_id, without_call=call_id)),
    )
    return [
        text.format(
            amount=_money(review.amount_minor or 0, review.currency),
            name=one_line(person_name(review.requested_by)),
        )
        for text, reviews in found
        for review in reviews
    ]


def origin_rows(arguments: Mapping[str, Any], context: RunContext, currency: str) -> list[Row]:
    """Say of each argument in which stored texts it stands: the staff member's, a tool's, none."""
    labels = {"payment": _("Payment named"), "invoice": _("Invoice named")}
    labels |= {"amount": _("Amount named"), "method": _("Way to pay named")}
    labels |= {"reason": _("Reason named")}
    rows = []
    for name, label in labels.items():
        value = arguments.get(name)
        if value is None or not str(value).strip():
            continue
        text = "; ".join(_origins(name, str(value), context, currency))
        rows.append(_row(label, f"{one_line(str(value))[:120]}: {text}"))
    return rows


def _origins(name: str, value: str, context: RunContext, currency: str) -> list[str]:
    if stands(name, value, context.words, currency):
        own = _("in the staff member's words")
    else:
        own = _("not in the staff member's words")
    told = dict.fromkeys(
        label for label, text in context.told if stands(name, value, (text,), currency)
    )
    found = [_("in the answer to “{step}”").format(step=_(label)) for label in told]
    return [own, *found]


def reason_text(reason: object) -> str:
    """Return a reason as it is stored and shown: one line of a bounded length."""
    return one_line(str(reason or ""))[:REASON_LENGTH]


def method_text(method: PaymentMethod) -> str:
    """Return a way to pay as people know it: "Visa ending in 4242"."""
    name = method.brand.title() if method.brand else method.get_kind_display()
    if not method.last4:
        return str(name)
    return _("{name} ending in {digits}").format(name=name, digits=method.last4)


def _refund_effect(ask: RefundAsk) -> str:
    """Say what is paid, refunded, asked for beside this one, and left: they add up."""
    payment, after = ask.payment, ask.refunded_minor + ask.amount_minor
    fits = ask.amount_minor <= ask.left_minor
    texts = [
        _("Payment {payment}, {paid}, of {day}."),
        _("Refunded so far {before}, after this {after}.")
        if fits
        else _("Refunded so far {before}."),
        _("Another {waiting} waits for a decision.") if ask.waiting_minor else "",
        # Money that went since this was asked: the card must not read as if it could go again.
        _("Left to refund {left}.")
        if fits
        else _("Only {room} is left to refund, less than this asks for."),
        _("Goes back to {method}."),
    ]
    return " ".join(filter(None, texts)).format(
        payment=payment.reference,
        paid=_money(payment.amount_minor, payment.currency),
        day=timezone.localdate(payment.paid_at).isoformat(),
        before=_money(ask.refunded_minor, payment.currency),
        after=_money(after, payment.currency),
        waiting=_money(ask.waiting_minor, payment.currency),
        left=_money(ask.left_minor - ask.amount_minor, payment.currency),
        room=_money(ask.left_minor, payment.currency),
        method=method_text(payment.method),
    )


def _refunds_text(refunds: Sequence[Refund]) -> str:
    shown = [
        f"{refund.reference} {_money(refund.amount_minor, refund.currency)} "
        f"({timezone.localdate(refund.created_at).isoformat()})"
        for refund in refunds[:WATCH_SHOWN]
    ]
    more = len(refunds) - len(shown)
    return ", ".join(shown) + (_(" and {count} more").format(count=more) if more else "")


def _disputes_text(count: int) -> str:
    return ngettext(
        "{count} payment of this customer is disputed at the bank.",
        "{count} payments of this customer are disputed at the bank.",
        count,
    ).format(count=count)


def _customer_text(customer: Customer) -> str:
    return f"{one_line(customer.name)}, {customer.email}, {customer.reference}"


def one_line(text: str) -> str:
    """Keep the text but no line break or control sign in it: it stands inside a sentence."""
    return " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())


def _money(amount_minor: int, currency: str) -> str:
    return money_format(Money(amount_minor, currency))


def _row(label: str, text: str) -> Row:
    return {"label": label, "text": text}
