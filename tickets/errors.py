"""Why a ticket was not made or moved. Every message is a sentence for the person."""

from agent_core.errors import CountersignError


class TicketRefused(CountersignError):
    """The ticket cannot be made like this."""

    code = "ticket.invalid"


class PaymentMissing(CountersignError):
    """The payment that the ticket is to be linked to is not found."""

    code = "payment.not_found"


class NotFound(CountersignError):
    """There is no such ticket for this person: missing and out of scope read alike."""

    code = "ticket.not_found"


class MoveRefused(CountersignError):
    """The ticket cannot move there from where it stands."""

    code = "ticket.move_refused"
