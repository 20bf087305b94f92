"""Resolve what a call names: within the requester's teams, for the conversation's one customer.

The customer is bound by a staff action or by a key in the staff member's own words, never by what
the model says. Whatever is out of reach is None, exactly as if it did not exist.
"""

from __future__ import annotations

from uuid import UUID

from agent_core.contract import RunContext
from payments import selectors
from payments.models import Customer, Invoice, Payment


def customer_bound(context: RunContext) -> Customer | None:
    """Return the conversation's customer; bind the only one whom the staff member's keys name."""
    if context.customer_id is not None:
        return selectors.customer_by_id(context.team_ids, context.customer_id)
    named = selectors.customers_named(context.team_ids, context.words)
    if len(named) != 1:
        return None
    customer_bind(context, named[0])
    return named[0]


def customer_bind(context: RunContext, customer: Customer) -> None:
    """Bind the conversation to this customer; again for the same one is nothing new."""
    context.bind_customer(customer.pk, f"{customer.name} ({customer.email})")


def payment_named(context: RunContext, reference: str) -> Payment | None:
    """Return the payment of the conversation's customer under this reference."""
    customer = customer_bound(context)
    return selectors.payment_by_reference(
        context.team_ids,
        customer.pk if customer else None,
        reference,
        asker=context.requester_id,
    )


def payment_id_for(context: RunContext, reference: str) -> UUID | None:
    """Return the id of the named payment, for a record of another app that mentions it."""
    payment = payment_named(context, reference)
    return payment.pk if payment else None


def customer_team_id(context: RunContext) -> UUID | None:
    """Return the team of the conversation's customer, None while there is no customer."""
    customer = customer_bound(context)
    return customer.team_id if customer else None


def invoice_named(context: RunContext, reference: str) -> Invoice | None:
    """Return the invoice of the conversation's customer under this reference."""
    customer = customer_bound(context)
    return selectors.invoice_by_reference(
        context.team_ids,
        customer.pk if customer else None,
        reference,
        asker=context.requester_id,
    )
