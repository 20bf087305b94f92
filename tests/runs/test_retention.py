"""Old threads go; waiting ones, those of live jobs and every record stay."""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from uuid import uuid4

import pytest
from django.db import connection
from django.utils import timezone

from agent_core.runs import retention
from agent_core.runs.models import Call, Conversation, Event, Message, ModelCall, Run, StopRecord
from agent_core.runs.retention import checkpoints_prune
from agent_core.runs.states import RunState
from exports.models import Export
from exports.selectors import runs_exporting
from exports.states import EXPORT_ACTIVE, ExportState
from reviews.models import Review, ReviewDecision
from tests.bench.cost import statements_counted
from tests.bench.growing import CHECKPOINTS, conversations_copied
from tests.rig.threads import elsewhere
from tests.runs.scripting import ScriptedModel

KEPT = (Conversation, Message, Run, Call, ModelCall, StopRecord, Event, Review, ReviewDecision)
LONG_AGO = timedelta(days=30)


def threads() -> set[str]:
    """Return the threads that have checkpoints."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT DISTINCT thread_id FROM checkpoints")
        return {row[0] for row in cursor.fetchall()}


def records() -> list[int]:
    """Count what must stay: the transcript, the audit, and everything between."""
    return [kind.objects.count() for kind in KEPT]


def ended_long_ago(*runs: Run) -> None:
    """Let runs have ended, or begun to wait, a month ago."""
    long_ago = timezone.now() - LONG_AGO
    mine = Run.objects.filter(pk__in=[run.pk for run in runs])
    mine.update(created_at=long_ago)
    mine.exclude(state=RunState.WAITING).update(ended_at=long_ago)


def export_of(run: Run, state: ExportState) -> Export:
    """Note an export that a run has asked for, with what each state needs."""
    later = timezone.now() + LONG_AGO
    return Export.objects.create(
        lease_until=later,
        expires_at=later,
        rows_total=0,
        sha256="sum",
        file="file",
        reference=f"EXP-{uuid4().hex[:8].upper()}",
        owner=run.requester,
        kind="payments",
        format="csv",
        state=state,
        run_id=run.pk,
        conversation_id=run.conversation_id,
    )


@pytest.fixture(autouse=True)
def no_threads(transactional_db: None) -> None:
    """Begin without checkpoints: no flush empties their tables."""
    with connection.cursor() as cursor:
        for table in CHECKPOINTS:
            cursor.execute(f"TRUNCATE {table}")


def test_only_the_threads_of_runs_that_ended_long_ago_are_deleted(
    script: Callable[..., ScriptedModel], say: Callable[[str], Run], effects: list[str]
) -> None:
    script([("probe_pay", {"amount": "5"})], "hello", [("probe_refund", {"amount": "5"})])
    old, fresh, waiting = say("pay 5"), say("hello"), say("refund 5")
    assert waiting.state == RunState.WAITING
    ended_long_ago(old, waiting)

    assert checkpoints_prune() == 1

    assert threads() == {str(fresh.pk), str(waiting.pk)}
    assert StopRecord.objects.filter(run=old).exists()
    assert Message.objects.filter(run=old).exists()
    assert checkpoints_prune() == 0


@pytest.mark.parametrize("conversations", [200, pytest.param(2_000, marks=pytest.mark.full)])
def test_b12_of_thousands_of_old_threads_only_the_waiting_and_the_exporting_one_stay(
    conversations: int,
    script: Callable[..., ScriptedModel],
    say: Callable[[str], Run],
    effects: list[str],
) -> None:
    """Conversations of five turns each; one run waits for approval, another's export runs."""
    script([("probe_pay", {"amount": "5"})], "hello", [("probe_refund", {"amount": "5"})])
    paid, exporting, waiting = say("pay 5"), say("hello"), say("refund 5")
    Run.objects.filter(pk=paid.pk).update(created_at=timezone.now() + timedelta(seconds=60))
    conversations_copied(paid.conversation, count=conversations, turns=5)
    export_of(exporting, ExportState.WRITING)
    ended_long_ago(*Run.objects.all())
    before = records()
    assert len(threads()) == 5 * conversations + 3

    with statements_counted() as sent:
        assert checkpoints_prune() == 5 * conversations + 1

    assert threads() == {str(waiting.pk), str(exporting.pk)}
    assert records() == before
    with connection.cursor() as cursor:
        for table in CHECKPOINTS:
            cursor.execute(f"SELECT DISTINCT thread_id FROM {table}")  # noqa: S608
            assert {row[0] for row in cursor.fetchall()} <= threads()
    batches = -(-(5 * conversations + 3) // retention.BATCH)
    assert len(sent) <= 12 * (batches + 1), "a handful of statements for each batch"


def test_a_thread_stays_exactly_while_the_export_of_its_run_is_prepared(
    script: Callable[..., ScriptedModel], say: Callable[[str], Run]
) -> None:
    script("hello")
    run = say("hello")
    ended_long_ago(run)
    export = export_of(run, ExportState.QUEUED)
    for state in sorted(EXPORT_ACTIVE):
        Export.objects.filter(pk=export.pk).update(state=state)
        assert checkpoints_prune() == 0, state
    for state in sorted(set(ExportState) - EXPORT_ACTIVE):
        Export.objects.filter(pk=export.pk).update(state=state)
        assert not runs_exporting(), state
    assert checkpoints_prune() == 1


def test_what_was_pruned_costs_a_later_prune_nothing(
    script: Callable[..., ScriptedModel],
    say: Callable[[str], Run],
    effects: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(retention, "BATCH", 10)
    script([("probe_pay", {"amount": "5"})], "hello")
    paid = say("pay 5")
    conversations_copied(paid.conversation, count=10, turns=5)
    ended_long_ago(*Run.objects.all())
    assert checkpoints_prune() == 51
    fresh = say("hello")
    with statements_counted() as sent:
        assert checkpoints_prune() == 0
    assert threads() == {str(fresh.pk)}
    assert len(sent) <= 24


def test_two_prunes_at_once_delete_each_thread_once_and_neither_fails(
    script: Callable[..., ScriptedModel],
    say: Callable[[str], Run],
    effects: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The second begins while the first holds a batch, and leaves the rest to it."""
    monkeypatch.setattr(retention, "BATCH", 10)
    script([("probe_pay", {"amount": "5"})])
    paid = say("pay 5")
    conversations_copied(paid.conversation, count=10, turns=5)
    ended_long_ago(*Run.objects.all())
    found: list[int] = []
    held, first_seen = retention._ended, threading.Event()

    def ended(batch: list[str]) -> list[str]:
        if not first_seen.is_set():
            first_seen.set()
            found.append(elsewhere(checkpoints_prune))
        return held(batch)

    monkeypatch.setattr(retention, "_ended", ended)
    assert checkpoints_prune() == 51
    assert found == [0]
    assert threads() == set()


def test_a_thread_that_is_no_run_of_ours_is_left_alone(
    script: Callable[..., ScriptedModel], say: Callable[[str], Run]
) -> None:
    script("hello")
    run = say("hello")
    ended_long_ago(run)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE checkpoints SET thread_id = 'somebody else'")
    assert checkpoints_prune() == 0
    assert threads() == {"somebody else"}
