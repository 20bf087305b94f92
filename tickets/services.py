"""Open tickets, once per wish; move them and add notes. No mail is sent in this version."""

import logging
from dataclasses import dataclass
from hashlib import sha256
from typing import Final
from uuid import UUID

from django.conf import settings
from django.contrib.auth.models import User
from django.db import connection, transaction
from django.utils import timezone
from django.utils.module_loading import import_string
from django.utils.translation import gettext as _

from agent_core import faults
from agent_core.contract import RunContext
from tickets.errors import MoveRefused, PaymentMissing, TicketRefused
from tickets.models import Note, Ticket
from tickets.recording import case_recorded, moved_recorded, opened_recorded
from tickets.references import ticket_reference
from tickets.states import TRANSITIONS, State
from tickets.texts import REFERENCE_LENGTH, body_clean, one_line, same_text, subject_clean

log = logging.getLogger("tickets")

_TRIES: Final = 3


@dataclass(frozen=True)
class Opened:
    """The ticket, and whether another call had opened it already."""

    ticket: Ticket
    already_applied: bool


def ticket_identity(subject: str, payment: str) -> str:
    """Name a ticket by its subject and payment, however the two are spelled."""
    number = one_line(payment).casefold().removeprefix("pay-").removeprefix("#")
    return f"{same_text(subject)}\n{number}"


def ticket_create(
    context: RunContext, *, subject: str, body: str = "", payment: str = ""
) -> Opened:
    """Open a ticket in the conversation; the same wish said again gives the first one.

    Raises:
        TicketRefused: subject or text cannot be taken; the message says why.
        PaymentMissing: no such payment for this person.
    """
    row = Ticket(
        subject=subject_clean(subject),
        body=body_clean(body),
        payment_reference=_payment_reference(payment),
        customer_id=context.customer_id,
        team_id=_team_id(context),
        conversation_id=context.conversation_id,
        requester_id=context.requester_id,
        call_id=context.call_id,
        identity=sha256(ticket_identity(subject, payment).encode()).hexdigest(),
    )
    first = _first(row)
    if first is not None:
        return _opened(first, row)
    row.payment_id = _payment_id(context, row.payment_reference)
    with faults.commit("ticket.open", transaction.atomic()):
        context.fence()
        opened = _opened(_insert(row), row)
        if opened.ticket.pk == row.pk:
            opened_recorded(opened.ticket, context)
    log.info("ticket.opened", extra={"ticket": opened.ticket.reference})
    return opened


def case_open(
    *,
    key: UUID,
    subject: str,
    body: str,
    requester_id: int,
    conversation_id: UUID,
    customer_id: UUID,
    team_id: UUID,
    payment_id: UUID,
    payment_reference: str,
) -> str:
    """Open a ticket that nobody asked for, in the caller's transaction; one for each `key`.

    Return its reference.
    """
    row = Ticket(
        subject=subject_clean(subject),
        body=body_clean(body),
        payment_reference=payment_reference,
        payment_id=payment_id,
        customer_id=customer_id,
        team_id=team_id,
        conversation_id=conversation_id,
        requester_id=requester_id,
        call_id=key,
        identity=sha256(f"case {key}".encode()).hexdigest(),
    )
    ticket = _first(row) or _insert(row)
    if ticket.pk == row.pk:
        case_recorded(ticket)
        log.info("ticket.opened", extra={"ticket": ticket.reference})
    return ticket.reference


def ticket_move(*, ticket: Ticket, actor: User, to: State) -> Ticket:
    """Move a ticket to another state.

    Raises: MoveRefused when it does not stand where that is possible, or somebody moved it first.
    """
    sources = [state for state, targets in TRANSITIONS.items() if to in targets]
    with faults.commit("ticket.move", transaction.atomic()):
        rows = Ticket.objects.filter(pk=ticket.pk, state__in=sources)
        stood = rows.select_for_update(of=("self",)).first()
        if stood is None:
            raise MoveRefused(
                _("{reference} is not in a state from which it can go there.").format(
                    reference=ticket.reference
                )
            )
        before, stood.state, stood.updated_at = stood.state, to, timezone.now()
        stood.save(update_fields=["state", "updated_at"])
        moved_recorded(stood, actor, before)
    log.info("ticket.moved", extra={"ticket": ticket.reference, "to": to.value, "actor": actor.pk})
    return stood


def note_add(*, ticket: Ticket, author: User, text: str) -> Note:
    """Add a note to a ticket.

    Raises: TicketRefused when the text is empty or too long.
    """
    clean = body_clean(text)
    if not clean:
        raise TicketRefused(_("A note needs a text."))
    return Note.objects.create(ticket=ticket, author=author, text=clean)


def _first(row: Ticket) -> Ticket | None:
    """Return the ticket of this call, else the one that means the same in this conversation."""
    with connection.cursor() as cursor:
        # Mostly there is none, and then the key is all that was asked for.
        cursor.execute(
            "SELECT id FROM tickets_ticket"
            " WHERE call_id = %s OR (conversation_id = %s AND identity = %s)"
            " ORDER BY call_id = %s DESC NULLS LAST LIMIT 1",
            [row.call_id, row.conversation_id, row.identity, row.call_id],
        )
        found = cursor.fetchone()
    return Ticket.objects.filter(pk=found[0]).first() if found else None


def _insert(row: Ticket) -> Ticket:
    """Insert unless another worker was first; a reference that is taken is minted anew."""
    for _try in range(_TRIES):
        row.reference = ticket_reference()
        if _inserted(row):
            return row
        ticket = _first(row)
        if ticket is not None:
            return ticket
    raise TicketRefused(_("No ticket was opened, because no reference was free."))


def _inserted(row: Ticket) -> bool:
    """Insert the row; False when one of its unique values is taken, which aborts nothing."""
    fields = Ticket._meta.concrete_fields
    # The model's own insert that ignores conflicts does not say whether there was one.
    statement = " ".join(
        [
            "INSERT INTO tickets_ticket (",
            ", ".join(str(field.column) for field in fields),
            ") VALUES (",
            ", ".join("%s" for _field in fields),
            ") ON CONFLICT DO NOTHING",
        ]
    )
    values = [field.get_db_prep_save(field.pre_save(row, True), connection) for field in fields]
    with connection.cursor() as cursor:
        cursor.execute(statement, values)
        inserted = bool(cursor.rowcount)
    row._state.adding = not inserted
    return inserted


def _opened(ticket: Ticket, row: Ticket) -> Opened:
    same_call = row.call_id is not None and ticket.call_id == row.call_id
    return Opened(ticket, already_applied=not same_call and ticket.pk != row.pk)


def _payment_reference(text: str) -> str:
    clean = one_line(text)
    if len(clean) > REFERENCE_LENGTH:
        raise PaymentMissing(_missing(clean))
    return clean


def _payment_id(context: RunContext, reference: str) -> UUID | None:
    """Ask the app that knows payments; without one the reference is kept as text only."""
    path: str = getattr(settings, "TICKET_PAYMENT_RESOLVER", "")
    if not reference or not path:
        return None
    found: UUID | None = import_string(path)(context, reference)
    if found is None:
        raise PaymentMissing(_missing(reference))
    return found


def _team_id(context: RunContext) -> UUID | None:
    """Return the customer's team, else the requester's only one.

    Without a customer, somebody of several teams has no team to choose: then nobody but they and
    administrators see the ticket.
    """
    path: str = getattr(settings, "TICKET_TEAM_RESOLVER", "")
    found: UUID | None = import_string(path)(context) if path else None
    if found is None and len(context.team_ids) == 1:
        return next(iter(context.team_ids))
    return found


def _missing(reference: str) -> str:
    # The words of a missing payment elsewhere: out of scope must not read otherwise.
    return _(
        "Nothing was found under “{reference}” for the customer of this conversation. "
        "Please check the reference, or find the customer first."
    ).format(reference=reference[:60])
