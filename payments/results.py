"""What the services answer; tools turn it into content and artifact. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal
from uuid import UUID

from agent_core.contract import Artifact, fatal, policy_block, transient
from payments.money import Money
from payments.states import IntentState

# `unknown`: the outcome is being checked; it settles by itself and the conversation is told.
Ended = Literal["succeeded", "failed", "unknown"]
# How the router takes it; an open one goes on being asked about by itself.
Reason = Literal["completed", "transient", "fatal", "policy_block"]
_ENDED: Final[Mapping[str, Ended]] = {
    IntentState.OPEN: "unknown",
    IntentState.SUCCEEDED: "succeeded",
    IntentState.FAILED: "failed",
}


def ended(state: str) -> Ended:
    """Read an intent's state as a result's: an open one is being checked."""
    return _ENDED[state]


@dataclass(frozen=True, slots=True, kw_only=True)
class ChargeResult:
    """How a charge stands.

    `reference` is the payment's once there is one, else empty; `method_id` is what it is, or was,
    paid with, whatever a repeat of the call names. `code` is "charge.completed",
    "charge.being_checked" or "charge." and why it failed; `sentence` says it to a customer.
    """

    state: Ended
    reason: Reason
    reference: str
    invoice_reference: str
    amount: Money
    method_id: UUID
    already_applied: bool
    code: str
    sentence: str
    payment_id: UUID | None = None
    intent_id: UUID | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RefundResult:
    """How a refund stands.

    `left` is what was left of the payment once this refund was counted, or had failed. `code` is
    "refund.completed", "refund.being_checked" or "refund." and why it failed.
    """

    state: Ended
    reason: Reason
    reference: str
    payment_reference: str
    amount: Money
    left: Money
    already_applied: bool
    code: str
    sentence: str
    refund_id: UUID
    intent_id: UUID


def failed(reason: Reason, code: str, data: Mapping[str, object]) -> Artifact:
    """Return the artifact of a charge or refund that failed, with the reason of its class."""
    if reason == "transient":
        return transient(code, data=data)
    if reason == "policy_block":
        # What the bank decides has one code, whoever found it out.
        return policy_block("payment.disputed", data=data)
    return fatal(code, data=data)
