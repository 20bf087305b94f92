"""What an attempt writes while it works: locks, fence, row and events in one statement each.

A statement is a transaction of its own, so a write costs one round trip, and nobody waits for a
lock while Python thinks.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

from django.db import connection
from django.utils import timezone

from agent_core.errors import StaleAttempt
from agent_core.host import ModelUsage
from agent_core.runs import live
from agent_core.runs.models import Call, Event, Run
from agent_core.runs.states import RunState

# As in `claims.run_hold`, the rows are locked in the order of the clauses. Everything else takes
# its row from `going`, so it is done under the locks, and not at all by a stale attempt.
_HELD: Final = """
WITH held AS (
    SELECT run.id, run.conversation_id, run.attempt,
        run.cancel_requested_at IS NOT NULL AS asked
    FROM runs_conversation conversation
    JOIN runs_run run ON run.conversation_id = conversation.id
    WHERE run.id = %(run)s AND run.attempt = %(attempt)s AND run.state = %(running)s
    FOR UPDATE OF conversation FOR SHARE OF run
), going AS (
    SELECT * FROM held WHERE NOT (asked AND %(heeds)s)
), stored AS (
"""

_TOLD: Final = """
), told AS (
    INSERT INTO runs_event (conversation_id, run_id, attempt, kind, payload, created_at)
    SELECT going.conversation_id, going.id, going.attempt, event.kind, event.payload,
        clock_timestamp()
    FROM going, ROWS FROM (
        jsonb_to_recordset(%(events)s::jsonb) AS (kind text, payload jsonb)
    ) WITH ORDINALITY AS event (kind, payload, place)
    ORDER BY event.place
    RETURNING id
)
SELECT held.asked, (SELECT max(id) FROM told) FROM held
"""

_BATCH: Final = """
    INSERT INTO runs_call (
        run_id, id, batch, position, tool, arguments, verdict, rule, label, identity, effect,
        content, outcome, state, review_id, ended_at
    )
    SELECT going.id, call.* FROM going, jsonb_to_recordset(%(calls)s::jsonb) AS call (
        id uuid, batch int, position int, tool text, arguments jsonb, verdict text, rule text,
        label text, identity text, effect boolean,
        content text, outcome jsonb, state text, review_id uuid, ended_at timestamptz
    )
    ON CONFLICT (id) DO UPDATE SET
        run_id = EXCLUDED.run_id, batch = EXCLUDED.batch, position = EXCLUDED.position,
        tool = EXCLUDED.tool, arguments = EXCLUDED.arguments, verdict = EXCLUDED.verdict,
        rule = EXCLUDED.rule, label = EXCLUDED.label, identity = EXCLUDED.identity,
        effect = EXCLUDED.effect, content = EXCLUDED.content, outcome = EXCLUDED.outcome,
        state = EXCLUDED.state, review_id = EXCLUDED.review_id, ended_at = EXCLUDED.ended_at
"""

_BEGAN: Final = """
    UPDATE runs_call SET state = %(state)s, started_at = %(started_at)s
    FROM going WHERE runs_call.id = %(call)s
"""

_ENDED: Final = """
    UPDATE runs_call SET state = %(state)s, label = %(label)s, content = %(content)s,
        outcome = %(outcome)s::jsonb, ended_at = %(ended_at)s
    FROM going WHERE runs_call.id = %(call)s
"""

# It tells no event, so it needs no conversation's lock.
_MODEL_CALL: Final = """
WITH held AS (
    SELECT id, attempt, cancel_requested_at IS NOT NULL AS asked FROM runs_run
    WHERE id = %(run)s AND attempt = %(attempt)s AND state = %(running)s FOR SHARE
), stored AS (
    INSERT INTO runs_modelcall (
        run_id, attempt, number, model, input_tokens, output_tokens, milliseconds,
        finish_reason, created_at
    )
    SELECT id, attempt, %(number)s, %(model)s, %(input_tokens)s, %(output_tokens)s,
        %(milliseconds)s, %(finish_reason)s, %(now)s
    FROM held
    ON CONFLICT (run_id, attempt, number) DO UPDATE SET
        model = EXCLUDED.model, input_tokens = EXCLUDED.input_tokens,
        output_tokens = EXCLUDED.output_tokens, milliseconds = EXCLUDED.milliseconds,
        finish_reason = EXCLUDED.finish_reason
)
SELECT asked, NULL FROM held
"""


def batch_write(run: Run, calls: Sequence[Call], events: Sequence[Event]) -> bool:
    """Store what the gate says of a batch, again after a crash; as `_write` otherwise."""
    stored = [
        {
            "id": str(call.pk),
            "batch": call.batch,
            "position": call.position,
            "tool": call.tool,
            "arguments": call.arguments,
            "verdict": call.verdict,
            "rule": call.rule,
            "label": call.label,
            "identity": call.identity,
            "effect": call.effect,
            "content": call.content,
            "outcome": call.outcome,
            "state": str(call.state),
            "review_id": str(call.review_id) if call.review_id else None,
            "ended_at": call.ended_at.isoformat() if call.ended_at else None,
        }
        for call in calls
    ]
    return _write(run, _BATCH, {"calls": json.dumps(stored)}, events)


def call_began_write(run: Run, call: Call, event: Event) -> bool:
    """Store that a call is being executed, unless a person has asked the run to stop."""
    values = {"call": call.pk, "state": str(call.state), "started_at": call.started_at}
    return _write(run, _BEGAN, values, [event], heeds=True)


def call_ended_write(run: Run, call: Call, event: Event) -> bool:
    """Store what came of a call; as `_write` otherwise."""
    values = {
        "call": call.pk,
        "state": str(call.state),
        "label": call.label,
        "content": call.content,
        "outcome": None if call.outcome is None else json.dumps(call.outcome),
        "ended_at": call.ended_at,
    }
    return _write(run, _ENDED, values, [event])


def model_call_write(run: Run, usage: ModelUsage) -> bool:
    """Store what a model call used; as `_write` otherwise."""
    values = {
        "number": usage.number,
        "model": usage.model or run.model,
        "input_tokens": usage.input_tokens,
        "output_tokens": usage.output_tokens,
        "milliseconds": usage.milliseconds,
        "finish_reason": usage.finish_reason,
    }
    asked, _event = _sent(run, _MODEL_CALL, values)
    return asked


def _write(
    run: Run,
    stored: str,
    values: Mapping[str, Any],
    events: Sequence[Event],
    *,
    heeds: bool = False,
) -> bool:
    """Store something and tell it, in one statement; return whether a person asks for a stop.

    Of a write that `heeds` such a wish nothing is stored then.

    Raises:
        StaleAttempt: the run is no longer worked on by this attempt.
    """
    told = [{"kind": event.kind, "payload": event.payload} for event in events]
    given = {**values, "events": json.dumps(told), "heeds": heeds}
    asked, latest = _sent(run, "".join((_HELD, stored, _TOLD)), given)
    if latest is not None:
        live.tick_after_commit(run.conversation_id, latest)
    return asked


def _sent(run: Run, statement: str, values: Mapping[str, Any]) -> tuple[bool, int | None]:
    fence: dict[str, Any] = {
        "run": run.pk,
        "attempt": run.attempt,
        "running": str(RunState.RUNNING),
    }
    with connection.cursor() as cursor:
        cursor.execute(statement, {**fence, "now": timezone.now(), **values})
        found = cursor.fetchone()
    if found is None:
        raise StaleAttempt
    return bool(found[0]), found[1]
