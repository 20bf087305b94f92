"""Old threads go; waiting ones and every record stay."""

from collections.abc import Callable
from datetime import timedelta

from django.db import connection
from django.utils import timezone

from agent_core.runs.models import Message, Run, StopRecord
from agent_core.runs.retention import checkpoints_prune
from agent_core.runs.states import RunState
from tests.runs.scripting import ScriptedModel


def threads() -> set[str]:
    """Return the threads that have checkpoints."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT DISTINCT thread_id FROM checkpoints")
        return {row[0] for row in cursor.fetchall()}


def test_only_the_threads_of_runs_that_ended_long_ago_are_deleted(
    script: Callable[..., ScriptedModel], say: Callable[[str], Run], effects: list[str]
) -> None:
    script([("probe_pay", {"amount": "5"})], "hello", [("probe_refund", {"amount": "5"})])
    old, fresh, waiting = say("pay 5"), say("hello"), say("refund 5")
    assert waiting.state == RunState.WAITING
    long_ago = timezone.now() - timedelta(days=30)
    Run.objects.filter(pk__in=[old.pk, waiting.pk]).update(created_at=long_ago)
    Run.objects.filter(pk=old.pk).update(ended_at=long_ago)

    assert checkpoints_prune() == 1

    mine = {str(run.pk) for run in (old, fresh, waiting)}
    assert threads() & mine == {str(fresh.pk), str(waiting.pk)}
    assert StopRecord.objects.filter(run=old).exists()
    assert Message.objects.filter(run=old).exists()
    assert checkpoints_prune() == 0
