"""Hold one line of our books against one of the processor's. Pure.

A line that is young is on its way: its answer, or our row of it, may be a moment off.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from payments.gateways.base import Seen, SeenKind
from payments.processor.ours import WAITING, Ours
from payments.processor.states import Difference

ON_THE_WAY: Final = timedelta(minutes=15)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """A difference, with what each side says: amount in minor units, currency, state."""

    difference: Difference
    kind: SeenKind
    reference: str = ""
    processor_ref: str = ""
    ours: tuple[int, str, str] | None = None
    theirs: tuple[int, str, str] | None = None
    repaired: bool = False

    def as_data(self) -> dict[str, Any]:
        """Return what is kept of it."""
        return {
            "difference": str(self.difference),
            "kind": self.kind,
            "reference": self.reference,
            "processor_ref": self.processor_ref,
            "ours": _side(self.ours),
            "theirs": _side(self.theirs),
            "repaired": self.repaired,
        }


def differs(ours: Ours, seen: Seen, now: datetime) -> Difference | None:
    """Say how two lines of the same thing differ; None when they do not, or not for long yet."""
    if ours.currency != seen.currency:
        return Difference.CURRENCY
    if ours.amount_minor != seen.amount_minor:
        return Difference.AMOUNT
    if ours.state == seen.state:
        return None
    if ours.state == WAITING:
        # A customer may still have to confirm a payment; nothing is certain on either side.
        open_there = seen.kind == "payment" and seen.state == "accepted"
        return None if open_there or is_young(ours.at, now) else Difference.STATE
    return Difference.STATE


def only_theirs(seen: Seen, payment_known: bool, now: datetime) -> Difference | None:
    """Say what it means that we have no line of something; None when no money is in it."""
    if is_young(seen.created_at, now):
        return None
    if seen.kind == "payment":
        return Difference.PAYMENT_UNKNOWN if seen.state == "succeeded" else None
    if seen.kind == "dispute":
        return Difference.DISPUTE_MISSING if payment_known else Difference.DISPUTE_OF_UNKNOWN
    if seen.state == "failed":
        return None
    return Difference.REFUND_OUTSIDE if payment_known else Difference.REFUND_OF_UNKNOWN


def only_ours(ours: Ours, now: datetime) -> Difference | None:
    """Say what it means that the processor has nothing of a line; None when that is as it is."""
    if ours.state == "failed" or is_young(ours.at, now):
        return None
    return Difference.UNSETTLED if ours.state == WAITING else Difference.MISSING_THERE


def is_young(moment: datetime, now: datetime) -> bool:
    """Tell whether something is on its way still."""
    return moment > now - ON_THE_WAY


def finding_of(difference: Difference, ours: Ours | None, seen: Seen | None) -> Finding:
    """Write a difference down with both sides of it."""
    there = [line for line in (seen, ours) if line is not None]
    return Finding(
        difference=difference,
        kind=there[0].kind,
        reference=ours.reference if ours is not None else "",
        processor_ref=there[0].processor_ref,
        ours=(ours.amount_minor, ours.currency, ours.state) if ours is not None else None,
        theirs=(seen.amount_minor, seen.currency, seen.state) if seen is not None else None,
    )


def _side(side: tuple[int, str, str] | None) -> dict[str, Any] | None:
    if side is None:
        return None
    amount_minor, currency, state = side
    return {"amount_minor": amount_minor, "currency": currency, "state": state}
