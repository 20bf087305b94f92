"""How a call of the assistant stands in the ledger: asked by call id, told in the tool's shape.

A run that ended before it heard the outcome, and the retry of one, read it here.
"""

from __future__ import annotations

from uuid import UUID

from agent_core.contract import Artifact, completed, transient
from payments.models import Intent, IntentCall
from payments.money import Money, money_format
from payments.results import ChargeResult, RefundResult, failed
from payments.services_charges import charge_result
from payments.services_refunds import refund_result
from payments.services_settle import notice_text, refund_failed_later
from payments.states import IntentState, Operation


def call_outcome(call_id: UUID) -> tuple[str, Artifact] | None:
    """Return text and artifact of what a call has begun; None when it has begun nothing here."""
    row = IntentCall.objects.select_related("intent").filter(call_id=call_id).first()
    return intent_outcome(row.intent) if row is not None else None


def intent_outcome(intent: Intent) -> tuple[str, Artifact]:
    """Return how an intent stands, as the tool that began it would say it."""
    amount = Money(intent.amount_minor, intent.currency)
    data = {
        "summary": money_format(amount),
        "amount_minor": amount.amount_minor,
        "currency": amount.currency,
        "intent_id": intent.pk,
    }
    if intent.state == IntentState.OPEN:
        result = _result(intent)
        return result.sentence, transient(result.code, data={**data, "unknown": True})
    if refund_failed_later(intent) is not None:
        late = _result(intent)
        return late.sentence, failed(late.reason, late.code, data)
    code, text = str(intent.result["code"]), notice_text(intent)
    if intent.state == IntentState.SUCCEEDED:
        return text, completed(code, stop=True, data=data)
    return text, failed(_result(intent).reason, code, data)


def _result(intent: Intent) -> ChargeResult | RefundResult:
    if intent.operation == Operation.CHARGE:
        return charge_result(intent, attached=False)
    return refund_result(intent, attached=False)
