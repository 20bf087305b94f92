"""What a comparison came to, and each way in which the books may differ. Touches no database."""

from __future__ import annotations

from typing import Final

from django.db.models import TextChoices
from django.utils.translation import gettext_lazy as _


class Result(TextChoices):
    """Only of the last two does a person have to know."""

    RUNNING = "running", _("being compared")
    EQUAL = "equal", _("both sides agree")
    REPAIRED = "repaired", _("both sides agree after repairs")
    LOOK = "look", _("somebody must look")
    SILENT = "silent", _("could not be compared")


class Difference(TextChoices):
    """One line of the two books that does not agree."""

    # The processor has it and we do not.
    PAYMENT_UNKNOWN = "payment_unknown", _("payment unknown here")
    REFUND_OUTSIDE = "refund_outside", _("refund made at the processor")
    REFUND_OF_UNKNOWN = "refund_of_unknown", _("refund of a payment unknown here")
    DISPUTE_MISSING = "dispute_missing", _("dispute unknown here")
    DISPUTE_OF_UNKNOWN = "dispute_of_unknown", _("dispute of a payment unknown here")
    # We have it and the processor does not.
    MISSING_THERE = "missing_there", _("unknown to the processor")
    UNSETTLED = "unsettled", _("outcome not known for too long")
    FLAG_WITHOUT_DISPUTE = "flag_without_dispute", _("marked as disputed, and no dispute")
    # Both have it.
    AMOUNT = "amount", _("other amount")
    CURRENCY = "currency", _("other currency")
    STATE = "state", _("other state")


# What our services may put right from what the processor says. Of all else a person decides.
REPAIRABLE: Final = frozenset(
    {Difference.REFUND_OUTSIDE, Difference.DISPUTE_MISSING, Difference.STATE}
)
