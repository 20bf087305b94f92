"""The graph's host in the product: rows, events and streams of one claimed run."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Final
from uuid import UUID

from django.db import connection, transaction
from django.utils import timezone, translation
from langchain_core.messages import BaseMessage

from agent_core import faults
from agent_core.contract import RunContext, outcome_read
from agent_core.errors import RunCancelled, RunDrained, StaleAttempt
from agent_core.gate import history_entry
from agent_core.host import CallRecord, ModelUsage, RunEnd
from agent_core.runs import drain, live
from agent_core.runs.acting import FRESH_SECONDS, Acting
from agent_core.runs.claims import run_hold, worked
from agent_core.runs.endings import run_end
from agent_core.runs.fenced import (
    batch_write,
    call_began_write,
    call_ended_write,
    model_call_write,
)
from agent_core.runs.journal import event_of_call, event_of_review, event_write
from agent_core.runs.models import Call, Conversation, Run
from agent_core.runs.recording import blocked_recorded
from agent_core.runs.states import CallState
from agent_core.runs.window import window_build
from agent_core.toolset import Toolset
from reviews.models import Review
from reviews.services import review_propose

_STATE_BY_REASON = {
    "completed": CallState.DONE,
    "transient": CallState.FAILED,
    "fatal": CallState.FAILED,
    "policy_block": CallState.REFUSED,
}


LOOK_SECONDS: Final = 1.0
"""How often a streaming answer looks whether it shall stop."""


class DjangoHost:
    """Keeps one attempt of one run. Every write is fenced by the attempt; none holds a connection.

    Steps run in threads of their own, so each method gives its thread's connection back: none
    stays open across a model call. A call's scope gives it back when the tool is done, and a tool
    that speaks to a processor does before it does so.
    """

    def __init__(self, run: Run, toolset: Toolset) -> None:
        self._run = run
        self._toolset = toolset
        self._whole = ""
        self._looked = time.monotonic()
        self._acting = Acting(run, self._bind)
        self._calls: dict[UUID, Call] = {}
        # The claim has just read the row.
        self._checked(run.cancel_requested_at is not None)
        self.lost = False
        self.thinking = False

    def context(self) -> RunContext:
        """Return who acts, with rights, teams and the bound customer as they are now."""
        with _released():
            return self._acting.context()

    def window(self) -> list[BaseMessage]:
        """Return the messages the model is shown first."""
        with _released():
            return window_build(self._run)

    def earlier(self) -> list[dict[str, Any]]:
        """Return what the continued run has done, so that a retry does not do it again."""
        with _released():
            done: list[dict[str, Any]] = []
            past = self._run.continues
            while past is not None:
                done = [*self._done(past), *done]
                past = past.continues
            return done

    def worked_seconds(self) -> int:
        """Return the seconds of work so far, over all attempts."""
        return self._run.worked_seconds + worked(self._run)

    def safe_point(self) -> None:
        """Stop here when the run was cancelled or taken over, or when the worker is leaving."""
        if self.lost:
            raise StaleAttempt
        if time.monotonic() - self._checked_at > FRESH_SECONDS:
            with _released():
                self._checked(_asked_to_stop(self._run))
        if self._cancelled:
            raise RunCancelled
        if drain.leaving():
            raise RunDrained

    def _checked(self, cancelled: bool) -> None:
        """Note what the run's row has just said."""
        self._cancelled = cancelled
        self._checked_at = time.monotonic()

    def model_began(self, number: int) -> None:
        """Void the half-written text of an earlier try; before the first one there is none."""
        self._whole = ""
        if self._run.attempt > 1 or number > 1:
            with _released(), faults.commit("model.began", transaction.atomic()):
                self._checked(run_hold(self._run.pk, self._run.attempt))
                event_write(
                    conversation_id=self._run.conversation_id,
                    kind="reset",
                    payload={"attempt": self._run.attempt},
                    run=self._run,
                )
            live.partial_reset(self._run.pk, self._run.attempt)
        self.thinking = True

    def model_delta(self, text: str) -> None:
        """Send a piece of text to whoever is looking."""
        if self.lost:
            raise StaleAttempt
        if time.monotonic() - self._looked > LOOK_SECONDS:
            # A long answer must not make a person, or a worker that leaves, wait for its end.
            self._looked = time.monotonic()
            self._checked_at = float("-inf")
            self.safe_point()
        self._whole += text
        live.delta_publish(
            self._run.conversation_id, self._run.pk, self._run.attempt, self._whole, text
        )

    def model_ended(self, usage: ModelUsage) -> None:
        """Store what a model call used."""
        self.thinking = False
        with _released(), faults.around("model.ended"):
            self._checked(model_call_write(self._run, usage))

    def gated(self, batch: int, calls: Sequence[CallRecord]) -> None:
        """Store the batch with its verdicts, and ask for the reviews it needs."""
        run = self._run
        with _released(), faults.commit("batch.gated", transaction.atomic()):
            reviews = {
                record.id: review_propose(
                    run_id=run.pk,
                    call_id=UUID(record.id),
                    conversation_id=run.conversation_id,
                    requester=run.requester,
                    proposal=record.proposal,
                    arguments=record.arguments,
                )
                for record in calls
                if record.proposal is not None
            }
            stored = [
                self._call(batch, record, asked.pk if (asked := reviews.get(record.id)) else None)
                for record in calls
            ]
            events = [event_of_call(run, call) for call in stored]
            events += [event_of_review(run, asked) for asked in reviews.values()]
            self._checked(batch_write(run, stored, events))
            self._calls |= {call.pk: call for call in stored}
            blocked_recorded(run, stored)

    @contextmanager
    def call_scope(self, call_id: UUID) -> Iterator[None]:
        """Run a tool in the run's language; give its thread's connection back afterwards."""
        # Right before an effect nothing counts but what holds now.
        self._acting.changed()
        with _released(), translation.override(self._run.language):
            yield

    def call_began(self, call_id: UUID) -> None:
        """Show that a call is being executed, unless a person has just asked the run to stop."""
        with _released(), faults.around("call.began"):
            call = self._stored(call_id)
            call.state = CallState.RUNNING
            call.started_at = call.started_at or timezone.now()
            self._checked(call_began_write(self._run, call, event_of_call(self._run, call)))
        if self._cancelled:
            raise RunCancelled

    def call_ended(
        self, call_id: UUID, label: str, content: str, artifact: Mapping[str, Any] | None
    ) -> None:
        """Store what came of a call."""
        with _released(), faults.around("call.ended"):
            call = self._stored(call_id)
            call.state = call_state(artifact, effect=call.effect)
            call.label = label
            call.content = content
            call.outcome = dict(artifact) if artifact is not None else None
            call.ended_at = timezone.now()
            self._checked(call_ended_write(self._run, call, event_of_call(self._run, call)))
            blocked_recorded(self._run, [call])
        self._acting.answered()

    def _stored(self, call_id: UUID) -> Call:
        """Return a call as this attempt has stored it, or as an earlier one left it."""
        if call_id not in self._calls:
            self._calls[call_id] = Call.objects.get(pk=call_id)
        return self._calls[call_id]

    def ended(self, end: RunEnd) -> None:
        """Store the stop record and the answer."""
        with _released(), translation.override(self._run.language):
            run_end(self._run, end)

    def _call(self, batch: int, record: CallRecord, review_id: UUID | None) -> Call:
        state = CallState.WAITING if record.verdict == "review" else CallState.QUEUED
        if record.artifact is not None:
            state = call_state(record.artifact, effect=record.effect)
        return Call(
            pk=UUID(record.id),
            run=self._run,
            batch=batch,
            position=record.position,
            tool=record.tool,
            arguments=dict(record.arguments),
            verdict=record.verdict,
            rule=record.rule,
            label=record.label,
            identity=record.identity,
            effect=record.effect,
            content=record.content,
            outcome=dict(record.artifact) if record.artifact is not None else None,
            state=state,
            review_id=review_id,
            ended_at=timezone.now() if record.artifact is not None else None,
        )

    def _bind(self, customer_id: UUID, label: str) -> None:
        """Bind the conversation to its customer, once and for all."""
        with faults.commit("conversation.bound", transaction.atomic()):
            run_hold(self._run.pk, self._run.attempt)
            Conversation.objects.filter(
                pk=self._run.conversation_id, customer_id__isnull=True
            ).update(customer_id=customer_id, customer_label=label[:200])
        self._acting.changed()

    def _done(self, past: Run) -> list[dict[str, Any]]:
        """Return the calls of an earlier run that must not be made again.

        They are those that completed, and those that a reviewer changed, whatever came of them.
        What failed for good may be tried once more: a person has asked for that.
        """
        calls = past.calls.exclude(identity="").filter(outcome__isnull=False)
        reviews = {review.pk: review for review in Review.objects.filter(run_id=past.pk)}
        done = []
        for call in calls.order_by("batch", "position"):
            review = reviews.get(call.review_id) if call.review_id else None
            changes = dict(review.changes) if review else {}
            if changes or (call.outcome or {}).get("reason") == "completed":
                done.append(self._finished(call, changes))
        return done

    def _finished(self, call: Call, changes: dict[str, Any]) -> dict[str, Any]:
        """Return a call of an earlier run as the no-repeat rule reads it."""
        return history_entry(
            self._toolset,
            self.context,
            {
                "id": str(call.pk),
                "tool": call.tool,
                "label": call.label,
                "identity": call.identity,
                "verdict": call.verdict,
                "effect": call.effect,
                "changed": bool(changes),
                "executed": {**call.arguments, **changes},
            },
            content=call.content,
            artifact=call.outcome,
        )


def call_state(artifact: Mapping[str, Any] | None, *, effect: bool) -> CallState:
    """Return the state a call ends in; an outcome that nobody knows yet says so."""
    outcome = outcome_read(artifact)
    if outcome is None or (outcome.reason == "transient" and outcome.data.get("unknown")):
        return CallState.UNKNOWN
    if outcome.code.endswith(".not_found") and not effect:
        # A look-up that finds nothing has done its work; its text says what it did not find.
        return CallState.DONE
    return _STATE_BY_REASON[outcome.reason]


_using = threading.local()


@contextmanager
def _released() -> Iterator[None]:
    """Give this thread's connection back afterwards, unless somebody further out still uses it."""
    if connection.in_atomic_block or getattr(_using, "now", False):
        yield
        return
    _using.now = True
    try:
        yield
    finally:
        _using.now = False
        if not connection.in_atomic_block:
            connection.close()


def _asked_to_stop(run: Run) -> bool:
    """Return whether a person has asked the run to stop.

    Raises:
        StaleAttempt: another attempt has begun, or there is no such run any more.
    """
    rows = Run.objects.filter(pk=run.pk, attempt=run.attempt)
    found = list(rows.values_list("cancel_requested_at", flat=True))
    if not found:
        raise StaleAttempt
    return found[0] is not None
