"""Why the ledger refuses before anything is sent. Every message is a sentence for the staff member.

Nothing was written and nothing was sent when one of these is raised.
"""

from __future__ import annotations

from django.utils.translation import gettext as _

from agent_core.errors import CountersignError
from payments.money import Money, money_format


class LedgerRefused(CountersignError):
    """The ledger does not allow this."""

    code = "ledger.refused"


class TargetMissing(LedgerRefused):
    """There is no such payment, invoice or saved method within the caller's reach."""

    code = "ledger.not_found"


class ReviewMissing(LedgerRefused):
    """Nobody has approved this, so nothing was moved."""

    code = "review.missing"


class AmountRefused(LedgerRefused):
    """An amount must be above zero and in the currency of what it belongs to."""

    code = "amount.refused"


class AmountDiffers(LedgerRefused):
    """A charge must equal the open amount of its invoice."""

    code = "charge.amount_differs"

    def __init__(self, open_amount: Money) -> None:
        super().__init__(
            _("An invoice is charged in full: {amount}. Nothing was charged.").format(
                amount=money_format(open_amount)
            )
        )
        self.open_amount = open_amount


class InvoiceNotOpen(LedgerRefused):
    """This invoice is not open, so it cannot be charged."""

    code = "charge.not_open"


class PaymentDisputed(LedgerRefused):
    """This payment is disputed at the bank, so it cannot be refunded here."""

    code = "payment.disputed"


class PaymentNotRefundable(LedgerRefused):
    """This payment did not succeed, so there is nothing to refund."""

    code = "payment.not_refundable"


class PaymentTooOld(LedgerRefused):
    """This payment is too old to be refunded to what it was paid with."""

    code = "refund.expired"


class RefundsPaused(LedgerRefused):
    """Operations have paused all refunds; nothing new begins until they let them go on."""

    code = "refund.paused"

    def __init__(self) -> None:
        super().__init__(_("Refunds are paused by operations for now. Nothing was refunded."))


class PauseRefused(CountersignError):
    """Refunds cannot be paused or let go on like this; the message says why."""

    code = "pause.refused"


class RefundAboveLeft(LedgerRefused):
    """More than is left of the payment; `left` says how much that is, at this moment."""

    code = "refund.above_left"

    def __init__(self, left: Money, asked: Money) -> None:
        super().__init__(
            _("{asked} is more than is left: {left} can still be refunded.").format(
                asked=money_format(asked), left=money_format(left)
            )
        )
        self.left = left


class DailyLimitReached(LedgerRefused):
    """Above what one person may refund in a day; `room` says how much is still free."""

    code = "refund.daily_limit"

    def __init__(self, room: Money, limit: Money) -> None:
        super().__init__(
            _("This is above the daily limit of {limit}; {room} is still free today.").format(
                limit=money_format(limit), room=money_format(room)
            )
        )
        self.room = room
        self.limit = limit


class IntentBusy(LedgerRefused):
    """Another refund or charge of the same thing is being checked; this one was not sent."""

    code = "intent.busy"
    retryable = True


class ProcessorResting(LedgerRefused):
    """The payment processor does not answer at the moment, so nothing was begun."""

    code = "processor.resting"
    retryable = True

    def __init__(self) -> None:
        super().__init__(
            _(
                "The payment processor does not answer at the moment, so nothing was begun. "
                "Please try again in a few minutes."
            )
        )


class ProcessorSilent(CountersignError):
    """The payment processor gave no certain answer about what it has."""

    code = "processor.silent"
    retryable = True

    def __init__(self) -> None:
        super().__init__(_("The payment processor gave no certain answer. Nothing was changed."))
