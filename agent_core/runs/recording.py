"""What the audit keeps of runs: what was asked, what a rule refused, and what operators pushed.

Called in the transaction of what is recorded, but for a refusal right before an effect: its call is
one statement, and a death right after that one leaves the entry to whoever goes on.
"""

from __future__ import annotations

from collections.abc import Iterable

from django.contrib.auth.models import User

from agent_core.runs.models import Call, Run
from reviews.audit.services import Subject, Trail, assistant_for, audit_write, person, task
from reviews.audit.words import Action


def asked_recorded(run: Run) -> None:
    """Write that a person has asked for something; what they said stands in the transcript."""
    audit_write(
        Action.MESSAGE_ASKED,
        actor=person(run.requester),
        subject=Subject("message", run.message_id),
        trail=Trail(run.pk, run.conversation_id),
    )


def blocked_recorded(run: Run, calls: Iterable[Call]) -> None:
    """Write which of these calls a rule has refused, and which rule."""
    for call in calls:
        outcome = call.outcome or {}
        # A person's refusal is an entry of its review.
        if outcome.get("reason") != "policy_block" or outcome["code"].startswith("review."):
            continue
        audit_write(
            Action.CALL_BLOCKED,
            actor=assistant_for(run.requester_id),
            subject=Subject("call", call.pk, call.label),
            rule=call.rule or outcome["code"],
            after={"arguments": call.arguments},
            trail=Trail(run.pk, run.conversation_id, call.pk),
        )


def parked_recorded(run: Run, reference: str) -> None:
    """Write that a run was set aside, under the reference that its requester reads."""
    audit_write(
        Action.RUN_PARKED,
        actor=task("runs.run_sweep"),
        subject=Subject("run", run.pk, reference),
        trail=Trail(run.pk, run.conversation_id),
    )


def pushed_recorded(action: Action, run: Run, actor: User) -> None:
    """Write that an operator has sent a run on, or requeued one that was set aside."""
    audit_write(
        action,
        actor=person(actor),
        subject=Subject("run", run.pk),
        after={"state": run.state},
        trail=Trail(run.pk, run.conversation_id),
    )
