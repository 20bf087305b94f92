"""What the sandbox reads from the names it is given: faults from tokens, books from references.

Pure. The sample data names its saved methods and earlier payments with these two functions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

# How a saved method behaves. The first two hold the line longer than any client waits.
SLOW_COMMITTED: Final = "slow_committed"
SLOW_LOST: Final = "slow_lost"
DECLINED: Final = "declined"
DISPUTED: Final = "disputed"
# The bank wants the customer to confirm the payment.
NEEDS_ACTION: Final = "needs_action"
# How refunds of it go: pending until `/control/refunds` ends them, for want of our own funds, or
# succeeded at first.
REFUND_PENDING: Final = "refund_pending"
REFUND_UNFUNDED: Final = "refund_unfunded"
FAULTS: Final = (
    SLOW_COMMITTED,
    SLOW_LOST,
    DECLINED,
    DISPUTED,
    NEEDS_ACTION,
    REFUND_PENDING,
    REFUND_UNFUNDED,
)

_DECLINING: Final = re.compile(
    r"pm_decline-(?P<code>[a-z_]+)-(?P<advice>[a-z_]+)-(?P<unique>[A-Za-z0-9]+)"
)
_GENERIC: Final = ("generic_decline", "")
# Stripe's own test methods, by what they do: https://docs.stripe.com/testing.
_STRIPES_FAULTS: Final = {
    "pm_card_authenticationRequired": NEEDS_ACTION,
    "pm_card_createDispute": DISPUTED,
    "pm_card_pendingRefund": REFUND_PENDING,
}
_STRIPES_DECLINES: Final = {
    "pm_card_visa_chargeDeclined": _GENERIC,
    "pm_card_chargeDeclined": _GENERIC,
    "pm_card_chargeDeclinedInsufficientFunds": ("insufficient_funds", ""),
    "pm_card_visa_chargeDeclinedInsufficientFunds": ("insufficient_funds", ""),
    "pm_card_visa_chargeDeclinedLostCard": ("lost_card", ""),
    "pm_card_visa_chargeDeclinedStolenCard": ("stolen_card", ""),
    "pm_card_visa_chargeDeclinedVelocityLimitExceeded": ("card_velocity_exceeded", ""),
    "pm_card_chargeDeclinedExpiredCard": ("expired_card", ""),
    "pm_card_chargeDeclinedIncorrectCvc": ("incorrect_cvc", ""),
    "pm_card_chargeDeclinedProcessingError": ("processing_error", ""),
    "pm_card_chargeDeclinedFraudulent": ("fraudulent", ""),
    "pm_card_radarBlock": ("fraudulent", ""),
}

_EARLIER: Final = re.compile(
    r"pi_earlier_(?P<amount>[0-9]{1,13})_(?P<currency>[a-z]{3})_(?P<refunded>[0-9]{1,13})"
    r"_(?P<fault>[a-z]+(?:_[a-z]+)?)_(?P<unique>[A-Za-z0-9]+)"
)


def method_token(unique: str, fault: str = "") -> str:
    """Name a saved method: "pm_good_17", or "pm_slow_lost_17" for one that loses the first try."""
    return f"pm_{fault or 'good'}_{unique}"


def fault_of(token: str) -> str:
    """Return the fault that a method's token names; empty for a good one."""
    known = _STRIPES_FAULTS.get(token, "")
    return known or next((fault for fault in FAULTS if token.startswith(f"pm_{fault}")), "")


def decline_token(unique: str, decline_code: str, advice_code: str = "none") -> str:
    """Name a saved method that is declined with this code, and this advice if any."""
    return f"pm_decline-{decline_code}-{advice_code}-{unique}"


def decline_of(token: str) -> tuple[str, str] | None:
    """Return the code and the advice with which a method is declined; None when it is not."""
    found = _DECLINING.fullmatch(token)
    if found is not None:
        return found["code"], "" if found["advice"] == "none" else found["advice"]
    return _GENERIC if fault_of(token) == DECLINED else _STRIPES_DECLINES.get(token)


def earlier_ref(
    unique: str, amount_minor: int, currency: str, *, refunded_minor: int = 0, fault: str = ""
) -> str:
    """Name a payment of earlier days so that the sandbox can enter it when it is first asked.

    Sample payments need no second store filled beside ours: the reference says all there is.
    `unique` is made of letters and digits.
    """
    words = (amount_minor, currency.lower(), refunded_minor, fault or "good", unique)
    return "pi_earlier_" + "_".join(str(word) for word in words)


@dataclass(frozen=True, slots=True)
class Earlier:
    """A payment of earlier days, as its reference tells it."""

    amount: int
    currency: str
    refunded: int
    method: str


def earlier_of(reference: str) -> Earlier | None:
    """Read a reference made by `earlier_ref`; None for any other."""
    found = _EARLIER.fullmatch(reference)
    if found is None:
        return None
    fault = "" if found["fault"] == "good" else found["fault"]
    return Earlier(
        amount=int(found["amount"]),
        currency=found["currency"],
        refunded=int(found["refunded"]),
        method=method_token(found["unique"], fault),
    )
