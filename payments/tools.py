"""The assistant's four ways to customers and money: find, list, charge, ask for a refund.

Each resolves its names within the requester's scope, calls one service, and says what came of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Final

from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from agent_core.contract import RunContext, Tool, completed, policy_block, transient
from agent_core.policy import allow
from payments import selectors
from payments.asking import charge_propose, refund_propose
from payments.errors import LedgerRefused
from payments.facts import (
    charge_facts,
    payment_left_for,
    refund_facts,
    refund_wanted,
    review_of,
)
from payments.lookups import customer_bind, customer_bound, invoice_named, payment_named
from payments.models import Customer, Payment
from payments.money import Money, MoneyInvalid, money_parse
from payments.outcomes import (
    Answer,
    charge_answer,
    not_found,
    refund_answer,
    refused_answer,
    short,
)
from payments.periods import Period, PeriodUnclear, period_parse
from payments.policies import (
    CHARGE_POLICIES,
    REFUND_POLICIES,
    REQUEST_CHARGE,
    REQUEST_REFUND,
)
from payments.proposals import method_text, reason_text
from payments.services import charge_make, refund_make
from payments.statements import customer_statement, customers_short, payments_statement
from payments.words import key_in_words
from reviews.errors import ReviewUnusable
from reviews.models import Review
from reviews.states import State

VIEW_CUSTOMER: Final = "payments.view_customer"


def customer_find(
    context: RunContext,
    *,
    key: Annotated[
        str,
        "What identifies the customer, exactly as the staff member wrote it: an e-mail address, "
        "a name, or a customer, order, payment, invoice or refund reference.",
    ],
) -> Answer:
    """Find the customer whom the staff member means, with their open invoices and last payments."""
    who = _customer_meant(context, key)
    if not isinstance(who, Customer):
        return who
    return customer_statement(who), completed(
        "customer.found", stop=False, data={"customer": who.reference}
    )


def payments_list(
    context: RunContext,
    *,
    customer: Annotated[
        str, "Who, as the staff member wrote it; leave empty for this conversation's customer."
    ] = "",
    period: Annotated[
        str, 'When, as the staff member wrote it, such as "last month", "March" or "2026-03".'
    ] = "",
) -> Answer:
    """List a customer's payments, refunds and open invoices, with what is left to refund."""
    who = _customer_meant(context, customer) if customer.strip() else _customer_here(context)
    if not isinstance(who, Customer):
        return who
    span: Period | None = None
    if period.strip():
        try:
            span = period_parse(period, timezone.localdate())
        except PeriodUnclear as error:
            return str(error), transient("period.unclear")
    return payments_statement(who, span), completed(
        "payments.listed", stop=False, data={"customer": who.reference}
    )


def charge_invoice(
    context: RunContext,
    *,
    invoice: Annotated[str, "The reference of the open invoice, such as INV-1001."],
    method: Annotated[
        str, "The last four digits of the saved way to pay; leave empty for the usual one."
    ] = "",
) -> Answer:
    """Charge an open invoice in full on a way to pay that the customer has saved."""
    owed = invoice_named(context, invoice)
    if owed is None:
        return not_found(invoice)
    fitting = selectors.methods_fitting(owed.customer, method)
    if len(fitting) != 1:
        saved = ", ".join(method_text(way) for way in selectors.methods_of(owed.customer))
        if not saved:
            text = _("This customer has no saved way to pay, so nothing was charged.")
        else:
            text = _("Please say which way to pay is meant: {list}.").format(list=saved)
        return text, transient("charge.method_unclear")
    try:
        result = charge_make(
            context=context,
            invoice_id=owed.pk,
            method_id=fitting[0].pk,
            amount_minor=owed.amount_minor,
            currency=owed.currency,
            review_id=context.review_id,
        )
    except (LedgerRefused, ReviewUnusable) as error:
        return refused_answer(error, owed.reference)
    paid_with = selectors.method_of(owed.customer, result.method_id)
    return charge_answer(result, owed.customer, paid_with)


def refund_request(
    context: RunContext,
    *,
    payment: Annotated[str, "The reference of the payment, such as PAY-10011, or its order."],
    amount: Annotated[
        str, "How much, as text such as 5.00; leave empty for all that is left of the payment."
    ] = "",
    reason: Annotated[str, "Why, in the staff member's words."] = "",
) -> Answer:
    """Ask for a refund of a payment, all that is left or a part; a second person decides first."""
    paid = payment_named(context, payment)
    if paid is None:
        return not_found(payment)
    review = _approved(context)
    try:
        wanted = _refund_amount(paid, amount, review)
    except MoneyInvalid as error:
        return str(error), transient("refund.amount_unclear")
    try:
        result = refund_make(
            context=context,
            payment_id=paid.pk,
            amount_minor=wanted,
            currency=paid.currency,
            reason=reason_text(review.changes.get("reason", reason) if review else reason),
            review_id=context.review_id,
        )
    except (LedgerRefused, ReviewUnusable) as error:
        return refused_answer(error, paid.reference)
    return refund_answer(result, paid, _asked_first(review, paid))


def _customer_here(context: RunContext) -> Customer | Answer:
    """Return the conversation's customer, or the question whose payments are meant."""
    customer = customer_bound(context)
    if customer is not None:
        return customer
    text = _("Which customer is meant? An e-mail address or a reference is enough.")
    return text, transient("customer.unnamed")


def _customer_meant(context: RunContext, key: str) -> Customer | Answer:
    """Return the one customer whom a key means, or what there is to say instead.

    A key that stands in the staff member's own words binds the conversation; one that only the
    model wrote shows the customer and binds nothing.
    """
    found = selectors.customer_find(context.team_ids, key, asker=context.requester_id)
    bound = customer_bound(context)
    if not found.total:
        text = _(
            "No customer was found for “{key}”. Please check the spelling, or try an e-mail "
            "address or a reference."
        ).format(key=short(key))
        return text, transient("customer.not_found")
    if bound is not None:
        if selectors.key_means(bound, key, context.team_ids):
            return bound
        text = _(
            "This conversation is about {name} ({email}). Please open another conversation for "
            "another customer."
        ).format(name=short(bound.name), email=bound.email)
        return text, policy_block("customer.other")
    if found.single is None:
        text = _("Several customers match “{key}”. Which one is meant?").format(key=short(key))
        content = f"{text}\n{customers_short(found)}"
        return content, completed("customer.several", stop=False, data={"total": found.total})
    if key_in_words(key, context.words):
        customer_bind(context, found.single)
    return found.single


def _approved(context: RunContext) -> Review | None:
    """Return the approved review under which this call acts."""
    review = review_of(context) if context.review_id is not None else None
    return review if review is not None and review.state == State.APPROVED else None


def _refund_amount(payment: Payment, amount: str, review: Review | None) -> int:
    """Return what was approved; without an approval what is asked, which the ledger refuses."""
    if review is not None and review.amount_minor:
        return review.amount_minor
    return refund_wanted(payment, amount, payment_left_for(payment, None).left_minor)


def _asked_first(review: Review | None, payment: Payment) -> Money | None:
    """Return the amount that was asked for when the reviewer approved another."""
    if review is None or "amount" not in review.changes:
        return None
    try:
        asked = money_parse(str(review.original.get("amount", "")), payment.currency)
    except MoneyInvalid:
        return None
    return Money(asked, payment.currency) if asked != review.amount_minor else None


def _refund_identity(context: RunContext, arguments: Mapping[str, Any]) -> str:
    """Name a refund by payment and amount, however the two are spelled."""
    payment = selectors.payment_spellings(str(arguments.get("payment", "")))[0]
    amount = str(arguments.get("amount", "")).strip()
    currency = selectors.payment_currency(context.team_ids, payment)
    if amount and currency:
        try:
            amount = str(money_parse(amount, currency))
        except MoneyInvalid:
            amount = f"unclear {amount}"
    return f"{payment.removeprefix('PAY-')} {amount or 'all'}"


def _charge_identity(context: RunContext, arguments: Mapping[str, Any]) -> str:
    """Name a charge by its invoice: one is charged once, whichever way it is paid."""
    return str(arguments.get("invoice", "")).strip().upper()


TOOLS: Final[tuple[Tool, ...]] = (
    Tool(
        name="customer_find",
        run=customer_find,
        doing=gettext_noop("Looking up the customer"),
        done=gettext_noop("Looked up the customer"),
        right=VIEW_CUSTOMER,
        effect=False,
        may_stop=False,
        policies=(allow,),
    ),
    Tool(
        name="payments_list",
        run=payments_list,
        doing=gettext_noop("Looking up payments"),
        done=gettext_noop("Looked up payments"),
        right=VIEW_CUSTOMER,
        effect=False,
        may_stop=False,
        policies=(allow,),
    ),
    Tool(
        name="charge_invoice",
        run=charge_invoice,
        doing=gettext_noop("Charging the invoice"),
        done=gettext_noop("Charged the invoice"),
        right=REQUEST_CHARGE,
        effect=True,
        may_stop=True,
        facts=charge_facts,
        policies=CHARGE_POLICIES,
        identity=_charge_identity,
        propose=charge_propose,
    ),
    Tool(
        name="refund_request",
        run=refund_request,
        doing=gettext_noop("Refunding the payment"),
        done=gettext_noop("Refunded the payment"),
        right=REQUEST_REFUND,
        effect=True,
        may_stop=True,
        facts=refund_facts,
        policies=REFUND_POLICIES,
        identity=_refund_identity,
        propose=refund_propose,
    ),
)
