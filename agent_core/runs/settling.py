"""What became of effects whose outcome was not known when their run ended."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.module_loading import import_string

from agent_core import faults
from agent_core.contract import outcome_read
from agent_core.runs.journal import call_event, conversation_hold
from agent_core.runs.models import Call, Run
from agent_core.runs.states import CallState

Told = tuple[str, Mapping[str, Any]]


def outcome_ask(call: Call) -> Told | None:
    """Ask the ledger what a call has come to; None when it has begun nothing there."""
    told: Told | None = import_string(settings.CALL_OUTCOME)(call.pk)
    return told


def call_settled(call_id: UUID, content: str, artifact: Mapping[str, Any]) -> None:
    """Store how a call of unknown outcome has ended; a call that knows its outcome keeps it."""
    call = Call.objects.select_related("run").filter(pk=call_id).first()
    outcome = outcome_read(artifact)
    if call is None or outcome is None or outcome.reason == "transient":
        return
    done = outcome.reason == "completed"
    with faults.commit("call.settled", transaction.atomic()):
        conversation_hold(call.run.conversation_id)
        moved = Call.objects.filter(pk=call_id, state=CallState.UNKNOWN).update(
            state=CallState.DONE if done else CallState.FAILED,
            content=content,
            outcome=dict(artifact),
            ended_at=timezone.now(),
        )
        if moved:
            call.refresh_from_db()
            call_event(call.run, call)


def unknown_settle(run: Run) -> bool:
    """Ask the ledger about every effect of a run whose outcome is not known.

    Return whether one is still being checked.
    """
    checking = False
    for call in run.calls.filter(effect=True, state=CallState.UNKNOWN):
        told = outcome_ask(call)
        if told is None:
            continue
        outcome = outcome_read(told[1])
        if outcome is None or outcome.reason == "transient":
            checking = True
            continue
        call_settled(call.pk, *told)
    return checking
