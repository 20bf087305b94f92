"""How a run ends: one stop record, the answer in the transcript, and the next one in line."""

from __future__ import annotations

import logging
from typing import Final

from django.db import connection, transaction
from django.db.models import F, QuerySet
from django.utils import timezone, translation
from django.utils.translation import gettext as _

from agent_core import faults
from agent_core.answer import STUB, Answer, answer_compose
from agent_core.errors import StaleAttempt, reference_new
from agent_core.host import RunEnd
from agent_core.runs import live
from agent_core.runs.claims import expired, run_next, worked
from agent_core.runs.journal import (
    conversation_hold,
    event_of,
    event_of_call,
    event_of_message,
    event_of_review,
    event_of_run,
    events_write,
    message_add,
)
from agent_core.runs.models import Call, Event, Message, Run, StopRecord
from agent_core.runs.moves import run_move
from agent_core.runs.recording import parked_recorded
from agent_core.runs.settling import outcome_ask, unknown_settle
from agent_core.runs.states import CallState, Role, RunState
from agent_core.runs.wording import explain, outcome_unknown
from reviews.services_closing import reviews_close

logger = logging.getLogger(__name__)

_STATE_BY_RULE = {
    "cancelled": RunState.CANCELLED,
    "failed": RunState.FAILED,
    "parked": RunState.PARKED,
}

_OPEN: Final = [str(state) for state in (CallState.QUEUED, CallState.RUNNING, CallState.WAITING)]
_TO_CLOSE: Final = [*_OPEN, str(CallState.UNKNOWN)]
_IN_LINE: Final = [str(state) for state in (RunState.DECIDED, RunState.PENDING)]


def run_end(
    run: Run,
    end: RunEnd,
    *,
    from_state: RunState = RunState.RUNNING,
    only: QuerySet[Run] | None = None,
) -> StopRecord:
    """End a run once: state, reviews, stop record, answer and events in one transaction.

    `only` narrows further which row may be ended.

    Raises:
        StaleAttempt: the run was taken over or has ended already.
    """
    with faults.commit("run.end", transaction.atomic()):
        # Reviews first: the order of locks is review, conversation, run.
        closed = reviews_close(
            run_id=run.pk, withdrawn_by=run.requester if end.rule == "cancelled" else None
        )
        conversation_hold(run.conversation_id)
        _row_end(run, end, from_state, only)
        events_write([event_of_review(run, review) for review in closed])
        calls_open, line_waits = _left(run)
        if calls_open:
            _calls_close(run)
        record = _record_write(run, end)
        if end.rule == "parked":
            parked_recorded(run, str(end.evidence.get("reference", "")))
        said = _answer_write(run, end)
        events_write([*said, event_of_run(run), _event_of_stop(run, record)])
        if line_waits:
            run_next(run.conversation_id)
        transaction.on_commit(lambda: live.partial_forget(run.pk))
    return record


def _row_end(run: Run, end: RunEnd, from_state: RunState, only: QuerySet[Run] | None) -> None:
    rows = Run.objects.all() if only is None else only
    state, now = _STATE_BY_RULE.get(end.rule, RunState.DONE), timezone.now()
    moved = run_move(
        rows.filter(pk=run.pk, attempt=run.attempt, state=from_state),
        state,
        lease_until=None,
        ended_at=now,
        worked_seconds=F("worked_seconds") + worked(run),
        failure_reference=str(end.evidence.get("reference", "")),
        strikes=end.evidence.get("strikes", F("strikes")),
    )
    if not moved:
        raise StaleAttempt
    run.state, run.lease_until, run.ended_at = state, None, now


def _left(run: Run) -> tuple[bool, bool]:
    """Tell whether an ended run has calls to close, and whether others wait behind it.

    Mostly neither; the conversation's lock is held, so nobody adds any meanwhile.
    """
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT EXISTS (SELECT FROM runs_call WHERE run_id = %s AND state = ANY(%s)),"
            " EXISTS (SELECT FROM runs_run WHERE conversation_id = %s AND state = ANY(%s))",
            [run.pk, _TO_CLOSE, run.conversation_id, _IN_LINE],
        )
        calls_open, line_waits = cursor.fetchone()
    return calls_open, line_waits


def _answer_write(run: Run, end: RunEnd) -> list[Event]:
    """Add the answer to the transcript, if there is one, and return its event."""
    if not end.answer:
        return []
    answer = Message(
        conversation_id=run.conversation_id,
        run_id=run.pk,
        role=Role.ASSISTANT,
        text=end.answer,
        stub=end.stub,
    )
    message_add(answer)
    return [event_of_message(answer, run)]


def _record_write(run: Run, end: RunEnd) -> StopRecord:
    return StopRecord.objects.create(
        run=run,
        rule=end.rule,
        evidence=dict(end.evidence),
        headline=end.headline,
        done=list(end.done),
        not_done=list(end.not_done),
        model_calls_made=end.model_calls_made,
        model_calls_saved=end.model_calls_saved,
        tokens_saved=end.tokens_saved,
        tokens_estimated=end.tokens_estimated,
    )


def _event_of_stop(run: Run, record: StopRecord) -> Event:
    words = explain(record)
    return event_of(
        conversation_id=run.conversation_id,
        kind="stop",
        payload={
            "rule": record.rule,
            "mode": str(run.stop_mode),
            "headline": words["cause"],
            "explanation": words["rule_words"],
            "notes": words["notes"],
            "made": record.model_calls_made,
            "saved": record.model_calls_saved,
            "tokens_saved": record.tokens_saved,
            "tokens_estimated": record.tokens_estimated,
        },
        run=run,
    )


def run_failed(run: Run, *, sentence: str, reference: str) -> None:
    """End a run that could not be worked off, saying what had already been done."""
    said = f"{sentence} {_referred(reference)}"
    run_end(run, _abrupt("failed", said, so_far(run), run, {"reference": reference}))


def run_cancelled(run: Run, *, from_state: RunState = RunState.RUNNING) -> None:
    """End a run that a person has stopped, saying what had already happened."""
    answer = so_far(run)
    said = _("Stopped as you asked.")
    if not answer.text:
        said = _("Stopped as you asked. Nothing was done.")
    run_end(run, _abrupt("cancelled", said, answer, run, {}), from_state=from_state)


def run_removed(run: Run) -> None:
    """End a run whose message was taken back before anybody worked on it; nothing is answered."""
    end = RunEnd(rule="cancelled", answer="", evidence={"removed": True})
    run_end(run, end, from_state=RunState(run.state))


def run_parked(run: Run) -> None:
    """Set a run aside that has taken several workers down with it.

    Raises:
        StaleAttempt: its lease was renewed, or somebody else has it.
    """
    said = _(
        "This request was set aside because it could not be worked off. "
        "An operator has been told; the assistant does not go on with it."
    )
    evidence = {"reference": reference_new(), "strikes": run.strikes + 1}
    said = f"{said} {_referred(evidence['reference'])}"
    run_end(run, _abrupt("parked", said, so_far(run), run, evidence), only=expired(run))
    logger.error("run.parked", extra={"run": str(run.pk), **evidence})


def _referred(reference: object) -> str:
    return _("Reference: %(reference)s.") % {"reference": reference}


def so_far(run: Run) -> Answer:
    """Compose what the calls of a run have brought until now.

    An effect that was being executed may have happened: it is told as not known yet.
    """
    with translation.override(run.language):
        calls = [_told(call) for call in run.calls.all() if call.outcome or _in_the_air(call)]
    return answer_compose(calls, rule="", evidence={})


def _told(call: Call) -> dict[str, object]:
    content, outcome = call.content, call.outcome
    if outcome is None:
        # Its worker died: the ledger may know more than the row.
        content, outcome = outcome_ask(call) or (outcome_unknown(call.label), None)
    return {
        "content": content,
        "artifact": outcome,
        "effect": call.effect,
        "label": call.label,
        "identity": call.identity,
    }


def _in_the_air(call: Call) -> bool:
    return call.effect and call.state in (CallState.RUNNING, CallState.UNKNOWN)


def _abrupt(rule: str, said: str, answer: Answer, run: Run, evidence: dict[str, object]) -> RunEnd:
    text = f"{said}\n\n{answer.text}" if answer.text else said
    return RunEnd(
        rule=rule,
        answer=text,
        stub=STUB if answer.text else said,
        evidence=evidence,
        done=answer.done,
        not_done=answer.not_done,
        model_calls_made=run.model_calls.values("number").distinct().count(),
    )


def _calls_close(run: Run) -> None:
    """Leave no call of an ended run as if it were still going on."""
    closed = list(Call.objects.filter(run=run, state__in=_OPEN))
    for call in closed:
        call.state = CallState.UNKNOWN if _in_the_air(call) else CallState.CANCELLED
        call.ended_at = timezone.now()
        call.save(update_fields=["state", "ended_at"])
    events_write([event_of_call(run, call) for call in closed])
    unknown_settle(run)
