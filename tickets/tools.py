"""The assistant's way to a ticket: clean the words, call one service, say what came of it."""

from collections.abc import Mapping
from typing import Annotated, Any, Final

from django.utils.translation import gettext as _
from django.utils.translation import gettext_noop

from agent_core.contract import Artifact, RunContext, Tool, completed, transient
from tickets.errors import PaymentMissing, TicketRefused
from tickets.policies import ADD_TICKET, POLICIES
from tickets.services import Opened, ticket_identity
from tickets.services import ticket_create as create

Answer = tuple[str, Artifact]


def ticket_create(
    context: RunContext,
    *,
    subject: Annotated[str, "What the ticket is about, in one line of at most 200 characters."],
    body: Annotated[str, "What happened and what is wanted, in the staff member's words."] = "",
    payment: Annotated[
        str, "The reference of the payment it is about, such as PAY-10011; empty without one."
    ] = "",
) -> Answer:
    """Open a ticket for a colleague to work on, linked to this conversation and a payment."""
    if not all(isinstance(text, str) for text in (subject, body, payment)):
        text = _("Subject, text and payment of a ticket are written as text. Nothing was opened.")
        return text, transient("ticket.invalid")
    try:
        opened = create(context, subject=subject, body=body, payment=payment)
    except (TicketRefused, PaymentMissing) as refusal:
        return str(refusal), transient(refusal.code)
    return _text(opened), completed(
        "ticket.created",
        stop=True,
        already_applied=opened.already_applied,
        data={"ticket": opened.ticket.reference, "ticket_id": opened.ticket.pk},
    )


def _text(opened: Opened) -> str:
    ticket = opened.ticket
    if opened.already_applied:
        text = _("Ticket {reference} is there already: “{subject}”. No second one was opened.")
    else:
        text = _("Ticket {reference} was opened: “{subject}”.")
    lines = [text.format(reference=ticket.reference, subject=ticket.subject)]
    if ticket.payment_reference:
        lines.append(_("It is linked to {payment}.").format(payment=ticket.payment_reference))
    return " ".join(lines)


def _identity(context: RunContext, arguments: Mapping[str, Any]) -> str:
    return ticket_identity(str(arguments.get("subject", "")), str(arguments.get("payment", "")))


TOOLS: Final[tuple[Tool, ...]] = (
    Tool(
        name="ticket_create",
        run=ticket_create,
        doing=gettext_noop("Opening a ticket"),
        done=gettext_noop("Opened a ticket"),
        right=ADD_TICKET,
        effect=True,
        may_stop=True,
        policies=POLICIES,
        identity=_identity,
    ),
)
