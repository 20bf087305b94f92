"""What the audit keeps of tickets: opened by whom, and moved from where to where."""

from __future__ import annotations

from django.contrib.auth.models import User

from agent_core.contract import RunContext
from reviews.audit.services import Subject, Trail, assistant_for, audit_write, person, task
from reviews.audit.words import Action
from tickets.models import Ticket


def opened_recorded(ticket: Ticket, context: RunContext) -> None:
    """Write that the assistant has opened a ticket, in the transaction that does it."""
    audit_write(
        Action.TICKET_OPENED,
        actor=assistant_for(context.requester_id, context.requester_name),
        subject=Subject("ticket", ticket.pk, ticket.reference),
        trail=Trail(context.run_id, context.conversation_id, context.call_id),
    )


def case_recorded(ticket: Ticket) -> None:
    """Write that a ticket was opened because of what another app has learned."""
    audit_write(
        Action.TICKET_OPENED,
        actor=task("tickets.case_open"),
        subject=Subject("ticket", ticket.pk, ticket.reference),
        trail=Trail(None, ticket.conversation_id, None),
    )


def moved_recorded(ticket: Ticket, actor: User, before: str) -> None:
    """Write that a person has moved a ticket, in the transaction that does it."""
    audit_write(
        Action.TICKET_MOVED,
        actor=person(actor),
        subject=Subject("ticket", ticket.pk, ticket.reference),
        before={"state": before},
        after={"state": ticket.state},
    )
