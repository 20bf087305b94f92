"""What the audit keeps of money: intents from their row to their end, and what was refused."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from agent_core.contract import RunContext
from agent_core.errors import CountersignError
from payments.models import Intent
from payments.states import Operation
from reviews.audit.services import Actor, Subject, Trail, assistant_for, audit_write, task
from reviews.audit.words import Action

SETTLING = "payments.intents_settle"


def acting(context: RunContext | None) -> Actor:
    """Name the assistant and for whom it acts; without a run it is the settle task."""
    if context is None:
        return task(SETTLING)
    return assistant_for(context.requester_id)


def intent_recorded(
    action: Action,
    intent: Intent,
    actor: Actor,
    *,
    reference: str = "",
    rule: str = "",
    before: dict[str, Any] | None = None,
    after: dict[str, Any] | None = None,
    call_id: UUID | None = None,
) -> None:
    """Write an entry about an intent, in the caller's transaction."""
    audit_write(
        action,
        actor=actor,
        subject=Subject(intent.operation, intent.pk, reference or intent.result.get("target", "")),
        rule=rule,
        before=before,
        after=after,
        trail=Trail(intent.run_id, intent.conversation_id, call_id or intent.call_id),
    )


def object_recorded(
    action: Action,
    actor: Actor,
    *,
    kind: str,
    pk: UUID,
    reference: str,
    rule: str,
    before: dict[str, Any],
    after: dict[str, Any],
) -> None:
    """Write an entry about what the processor told of and no intent of ours asked for."""
    subject = Subject(kind, pk, reference)
    audit_write(action, actor=actor, subject=subject, rule=rule, before=before, after=after)


def intent_wanted(intent: Intent) -> dict[str, Any]:
    """Return what an intent wants done."""
    return {
        "target": intent.target_id,
        "amount_minor": intent.amount_minor,
        "currency": intent.currency,
        "gateway": intent.gateway,
        "review": intent.review_id,
    }


def refusal_recorded(
    context: RunContext,
    refusal: CountersignError,
    *,
    operation: Operation,
    target_id: UUID,
    after: dict[str, Any],
) -> None:
    """Write why the ledger refused, after the transaction that it rolled back."""
    audit_write(
        Action.INTENT_REFUSED,
        actor=acting(context),
        subject=Subject(operation, target_id),
        rule=refusal.code,
        after=after,
        trail=Trail(context.run_id, context.conversation_id, context.call_id),
    )
