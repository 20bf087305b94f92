"""What every answer of Stripe means: one table, pure data.

A row says how an answer is classed and, where it ends a try, in which of our words it failed. The
words lead on to the reason that the router decides on. What no row names is fatal and logged; it is
never tried again. Codes and classes: https://docs.stripe.com/error-low-level,
https://docs.stripe.com/refunds#failed-refunds and https://docs.stripe.com/declines/codes.
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum
from typing import Final, Literal, NamedTuple

Reason = Literal["transient", "fatal", "policy_block"]
Failure = Literal[
    "",
    "declined",
    "declined_for_now",
    "card_details",
    "card_expired",
    "card_limit",
    "card_unsuited",
    "funds_short",
    "customer_needed",
    "amount_unfit",
    "duplicate",
    "disputed",
    "already_refunded",
    "above_left",
    "undelivered",
    "unavailable",
    "key_conflict",
    "refused",
]


class AnswerClass(StrEnum):
    """What can be done about an answer.

    `TRANSIENT`: the same may work later. `WAITING`: the processor will go on by itself. `FIXABLE`:
    a person has to change something first. `FATAL`: this attempt is over. `CONFIGURATION`: an
    operator has to act. `UNKNOWN`: whether money moved has to be found out before anything else.
    """

    TRANSIENT = "transient"
    WAITING = "waiting"
    FIXABLE = "fixable"
    FATAL = "fatal"
    CONFIGURATION = "configuration"
    UNKNOWN = "unknown"


class Meaning(NamedTuple):
    """A row: the class of an answer, and our word for the failure when it ends the try."""

    kind: AnswerClass
    failure: Failure = ""


FAILURES: Final[Mapping[str, tuple[AnswerClass, Reason]]] = {
    "declined": (AnswerClass.FATAL, "fatal"),
    "declined_for_now": (AnswerClass.TRANSIENT, "transient"),
    "card_details": (AnswerClass.FIXABLE, "fatal"),
    "card_expired": (AnswerClass.FIXABLE, "fatal"),
    "card_limit": (AnswerClass.FIXABLE, "fatal"),
    "card_unsuited": (AnswerClass.FIXABLE, "fatal"),
    "funds_short": (AnswerClass.FIXABLE, "fatal"),
    "customer_needed": (AnswerClass.FIXABLE, "fatal"),
    "amount_unfit": (AnswerClass.FIXABLE, "fatal"),
    "duplicate": (AnswerClass.FIXABLE, "fatal"),
    "above_left": (AnswerClass.FIXABLE, "fatal"),
    # The bank decides, so a rule forbids it here.
    "disputed": (AnswerClass.FATAL, "policy_block"),
    "already_refunded": (AnswerClass.FATAL, "fatal"),
    "undelivered": (AnswerClass.FATAL, "fatal"),
    "key_conflict": (AnswerClass.FATAL, "fatal"),
    "refused": (AnswerClass.FATAL, "fatal"),
    "unavailable": (AnswerClass.CONFIGURATION, "fatal"),
}
"""Each word for a failure: its class, and the reason of the outcome that tells it.

What a person has to fix is fatal to the router: nothing that the model does can help.
"""

_T = Meaning(AnswerClass.TRANSIENT)
_W = Meaning(AnswerClass.WAITING)
_Q = Meaning(AnswerClass.UNKNOWN)
_C = Meaning(AnswerClass.CONFIGURATION, "unavailable")
_REFUSED = Meaning(AnswerClass.FATAL, "refused")
_DECLINED = Meaning(AnswerClass.FATAL, "declined")
_FOR_NOW = Meaning(AnswerClass.TRANSIENT, "declined_for_now")
_DETAILS = Meaning(AnswerClass.FIXABLE, "card_details")
_LIMIT = Meaning(AnswerClass.FIXABLE, "card_limit")
_UNSUITED = Meaning(AnswerClass.FIXABLE, "card_unsuited")
_CUSTOMER = Meaning(AnswerClass.FIXABLE, "customer_needed")
_AMOUNT = Meaning(AnswerClass.FIXABLE, "amount_unfit")
_DISPUTED = Meaning(AnswerClass.FATAL, "disputed")
_UNDELIVERED = Meaning(AnswerClass.FATAL, "undelivered")

TABLE: Final[Mapping[str, Mapping[str, Meaning]]] = {
    "line": {"no_answer": _Q, "unreadable": _Q},
    "status": {
        "401": _C,
        "403": _C,
        "409": _T,
        "429": _T,
        "500": _Q,
        "502": _Q,
        "503": _Q,
        "504": _Q,
    },
    "type": {
        "api_error": _Q,
        "authentication_error": _C,
        "idempotency_error": Meaning(AnswerClass.FATAL, "key_conflict"),
        "rate_limit_error": _T,
    },
    "code": {
        "lock_timeout": _T,
        "idempotency_key_in_use": _T,
        "rate_limit": _T,
        "api_key_expired": _C,
        "livemode_mismatch": _C,
        "testmode_charges_only": _C,
        "secret_key_required": _C,
        "action_blocked": _C,
        "request_blocked": _C,
        "anomalous_money_movement_request": _C,
        "approval_required": _W,
        # What a charge sends is an invoice's amount; nobody can lower it here.
        "amount_too_large": _REFUSED,
        "amount_too_small": _REFUSED,
        "resource_missing": _REFUSED,
        "parameter_*": _REFUSED,
    },
    "refund_code": {
        "charge_already_refunded": Meaning(AnswerClass.FATAL, "already_refunded"),
        "charge_disputed": _DISPUTED,
        "refund_disputed_payment": _DISPUTED,
        "charge_not_refundable": _REFUSED,
        "charge_expired_for_capture": _REFUSED,
        "status_transition_invalid": _REFUSED,
        "balance_insufficient": _W,
        "insufficient_funds": _W,
        "amount_too_large": Meaning(AnswerClass.FIXABLE, "above_left"),
        "amount_too_small": _AMOUNT,
    },
    "pending_reason": {"processing": _W, "insufficient_funds": _W, "charge_pending": _W},
    "failure_reason": {
        "lost_or_stolen_card": _UNDELIVERED,
        "expired_or_canceled_card": _UNDELIVERED,
        "charge_for_pending_refund_disputed": _DISPUTED,
        "insufficient_funds": _UNDELIVERED,
        "declined": _UNDELIVERED,
        "merchant_request": _UNDELIVERED,
        "unknown": _UNDELIVERED,
    },
    "advice_code": {
        "try_again_later": _FOR_NOW,
        "confirm_card_data": _DETAILS,
        "do_not_try_again": _DECLINED,
    },
    "decline_code": {
        "approve_with_id": _FOR_NOW,
        "issuer_not_available": _FOR_NOW,
        "processing_error": _FOR_NOW,
        "reenter_transaction": _FOR_NOW,
        "try_again_later": _FOR_NOW,
        "incorrect_number": _DETAILS,
        "incorrect_cvc": _DETAILS,
        "invalid_cvc": _DETAILS,
        "incorrect_pin": _DETAILS,
        "invalid_pin": _DETAILS,
        "incorrect_zip": _DETAILS,
        "invalid_expiry_month": _DETAILS,
        "invalid_expiry_year": _DETAILS,
        "invalid_number": _DETAILS,
        "expired_card": Meaning(AnswerClass.FIXABLE, "card_expired"),
        "insufficient_funds": Meaning(AnswerClass.FIXABLE, "funds_short"),
        "card_velocity_exceeded": _LIMIT,
        "withdrawal_count_limit_exceeded": _LIMIT,
        "pin_try_exceeded": _LIMIT,
        "currency_not_supported": _UNSUITED,
        "card_not_supported": _UNSUITED,
        "authentication_required": _CUSTOMER,
        "offline_pin_required": _CUSTOMER,
        "online_or_offline_pin_required": _CUSTOMER,
        "invalid_amount": _AMOUNT,
        "duplicate_transaction": Meaning(AnswerClass.FIXABLE, "duplicate"),
        "do_not_honor": _DECLINED,
        "generic_decline": _DECLINED,
        "call_issuer": _DECLINED,
        "do_not_try_again": _DECLINED,
        "no_action_taken": _DECLINED,
        "not_permitted": _DECLINED,
        "transaction_not_allowed": _DECLINED,
        "service_not_allowed": _DECLINED,
        "security_violation": _DECLINED,
        "restricted_card": _DECLINED,
        "pickup_card": _DECLINED,
        "invalid_account": _DECLINED,
        "new_account_information_available": _DECLINED,
        "revocation_of_authorization": _DECLINED,
        "revocation_of_all_authorizations": _DECLINED,
        "stop_payment_order": _DECLINED,
        "testmode_decline": _DECLINED,
        "fraudulent": _DECLINED,
        "lost_card": _DECLINED,
        "stolen_card": _DECLINED,
        "merchant_blacklist": _DECLINED,
    },
}

SENSITIVE: Final = frozenset({"fraudulent", "lost_card", "stolen_card", "merchant_blacklist"})
"""Declines that must read like any other: whoever holds the card must not learn why."""

# Looked for before it is believed: an earlier try of ours may be what the answer is about.
DOUBTFUL: Final = frozenset({"key_conflict", "already_refunded", "duplicate"})


def reason_of(failure: str) -> Reason:
    """Return the reason of the outcome that tells a failure; an unknown word is fatal."""
    return FAILURES.get(failure, (AnswerClass.FATAL, "fatal"))[1]


def declined(decline_code: str, advice_code: str) -> Meaning | None:
    """Read a card's decline; the advice comes before the code. None: no row names either.

    A code that agrees with the advice keeps its own, more exact word. A sensitive code is a general
    decline whatever comes with it, so that nothing beside it gives it away.
    """
    code = TABLE["decline_code"].get(decline_code)
    if decline_code in SENSITIVE:
        return code
    advice = TABLE["advice_code"].get(advice_code)
    if advice is None or (code is not None and code.kind == advice.kind):
        return code
    return advice
