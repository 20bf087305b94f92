"""What a reference of money leads to: looked up within the reader's teams, told in their language.

The customer's own document, in the customer's language, is a record of `payments.receipts`.
"""

from dataclasses import dataclass, field

from django.contrib.auth.models import User
from django.db.models import Q
from django.http import Http404
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _

from desk.showing import Fact
from payments.models import Invoice, Payment, PaymentMethod, Refund
from payments.money import Money, money_format
from payments.selectors import scope_of

VIEW_RIGHT = "payments.view_customer"


@dataclass(frozen=True, slots=True)
class Sheet:
    """One document as it is shown and printed."""

    title: str
    reference: str
    state: str
    tone: str
    total_label: str
    total: str
    facts: list[Fact] = field(default_factory=list)

    @property
    def icon(self) -> str:
        """Return the icon that says the same as the tone."""
        return {"good": "check", "bad": "cross", "warn": "clock"}.get(self.tone, "file")


def record_of(user: User, reference: str) -> Payment | Refund | Invoice:
    """Return what a reference or the number of a document names.

    Raises: Http404 when there is none, or it is of another team, or the reader may see no customer.
    """
    teams, key = scope_of(user), reference.upper()
    if user.has_perm(VIEW_RIGHT):
        payment = Payment.objects.select_related("customer", "method", "invoice")
        named = Q(reference=key) | Q(document__number=key)
        if paid := payment.filter(named, customer__team_id__in=teams).first():
            return paid
        refund = Refund.objects.select_related(
            "payment__customer", "payment__method", "payment__invoice"
        )
        if back := refund.filter(named, payment__customer__team_id__in=teams).first():
            return back
        invoice = Invoice.objects.select_related("customer")
        if owed := invoice.filter(reference=key, customer__team_id__in=teams).first():
            return owed
    raise Http404


def sheet_of(record: Payment | Refund | Invoice) -> Sheet:
    """Return what staff read about it."""
    if isinstance(record, Payment):
        return _payment_sheet(record)
    return _refund_sheet(record) if isinstance(record, Refund) else _invoice_sheet(record)


def _payment_sheet(payment: Payment) -> Sheet:
    good = payment.state == "succeeded"
    facts = [
        Fact(_("Customer"), payment.customer.name),
        Fact(_("Paid on"), date_format(timezone.localtime(payment.paid_at), "j F Y, H:i T")),
        Fact(_("Paid with"), _method(payment.method)),
    ]
    if payment.invoice:
        facts.append(Fact(_("Invoice"), payment.invoice.reference))
        if payment.invoice.description:
            facts.append(Fact(_("For"), payment.invoice.description))
    for refund in payment.refunds.exclude(state="failed").order_by("created_at"):
        amount = _money(refund.amount_minor, refund.currency)
        state = str(refund.get_state_display())
        facts.append(Fact(_("Refund"), f"{refund.reference}, {amount}, {state}"))
    return Sheet(
        title=_("Receipt") if good else _("Payment that failed"),
        reference=payment.reference,
        state=str(payment.get_state_display()),
        tone="good" if good else "bad",
        total_label=_("Paid") if good else _("Not paid"),
        total=_money(payment.amount_minor, payment.currency),
        facts=facts,
    )


def _refund_sheet(refund: Refund) -> Sheet:
    good, failed = refund.state == "succeeded", refund.state == "failed"
    when = refund.settled_at or refund.created_at
    facts = [
        Fact(_("Customer"), refund.payment.customer.name),
        Fact(_("Date"), date_format(timezone.localtime(when), "j F Y, H:i T")),
        Fact(_("Of payment"), refund.payment.reference),
        Fact(_("Goes back to"), _method(refund.payment.method)),
    ]
    if refund.reason:
        facts.append(Fact(_("Reason"), refund.reason))
    return Sheet(
        title=_("Refund receipt") if good else _("Refund"),
        reference=refund.reference,
        state=str(refund.get_state_display()),
        tone="good" if good else "bad" if failed else "warn",
        total_label=_("Refunded") if good else _("Not refunded") if failed else _("On its way"),
        total=_money(refund.amount_minor, refund.currency),
        facts=facts,
    )


def _invoice_sheet(invoice: Invoice) -> Sheet:
    facts = [
        Fact(_("Customer"), invoice.customer.name),
        Fact(_("Issued on"), date_format(invoice.issued_on, "j F Y")),
        Fact(_("Due on"), date_format(invoice.due_on, "j F Y")),
    ]
    if invoice.description:
        facts.insert(1, Fact(_("For"), invoice.description))
    for payment in invoice.payments.filter(state="succeeded"):
        facts.append(Fact(_("Payment"), payment.reference))
    return Sheet(
        title=_("Invoice"),
        reference=invoice.reference,
        state=str(invoice.get_state_display()),
        tone={"paid": "good", "open": "warn"}.get(invoice.state, "quiet"),
        total_label=_("Amount"),
        total=_money(invoice.amount_minor, invoice.currency),
        facts=facts,
    )


def _method(method: PaymentMethod) -> str:
    name = method.brand.title() if method.brand else str(method.get_kind_display())
    if not method.last4:
        return name
    return _("%(name)s ending in %(digits)s") % {"name": name, "digits": method.last4}


def _money(amount_minor: int, currency: str) -> str:
    return money_format(Money(amount_minor, currency))
