"""Sweeps beside what holds rows: a process that stalled, a slow step, a Redis that forgot."""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import datetime, timedelta
from typing import Any

import psycopg
import pytest
import redis
from django.contrib.auth.models import User
from django.utils import timezone

from agent_core.runs import claims, queue
from agent_core.runs.models import Run
from agent_core.runs.services import conversation_start, message_send
from agent_core.runs.states import RunState
from agent_core.runs.sweeping import sleepers_end
from agent_core.runs.tasks import sweep
from agent_core.runs.work import conninfo
from tests.rig.waiting import until

pytestmark = pytest.mark.django_db(transaction=True)

LONG_AGO = timedelta(minutes=1)


@pytest.fixture
def tom() -> User:
    """Return a staff member."""
    return User.objects.create_superuser("tom", password="x")


def claimed(owner: User) -> Run:
    """Return a run that a worker has claimed and whose lease is over."""
    run = message_send(conversation=conversation_start(owner=owner), sender=owner, text="hello")
    found = claims.run_claim(run.pk, quarantined=False)
    assert found is not None
    Run.objects.filter(pk=run.pk).update(lease_until=timezone.now() - LONG_AGO)
    return found


def lease(run: Run) -> datetime:
    """Return until when a run is held."""
    until = Run.objects.get(pk=run.pk).lease_until
    assert until is not None
    return until


@contextmanager
def asleep(statement: str, row: object, name: str = "countersign") -> Iterator[psycopg.Connection]:
    """Hold a transaction open on another connection, as a stopped process does."""
    with psycopg.connect(conninfo(), application_name=name) as session:
        session.execute(statement, [row])
        yield session


HOLD_CONVERSATION = "SELECT 1 FROM runs_conversation WHERE id = %s FOR UPDATE"
HOLD_RUN = "SELECT 1 FROM runs_run WHERE id = %s FOR SHARE"


@pytest.mark.parametrize("statement", [HOLD_CONVERSATION, HOLD_RUN])
def test_a_run_whose_rows_are_held_is_passed_over_and_the_others_are_taken_back(
    statement: str, tom: User
) -> None:
    """The other session holds the first run's row all the while; the sweep waits for nobody."""
    held, free = claimed(tom), claimed(tom)
    row = held.conversation_id if statement is HOLD_CONVERSATION else held.pk
    with asleep(statement, row):
        sweep()
        states = dict(Run.objects.values_list("pk", "state"))
        assert states == {held.pk: RunState.RUNNING, free.pk: RunState.QUEUED}

    sweep()
    assert Run.objects.get(pk=held.pk).state == RunState.QUEUED


@pytest.mark.parametrize("statement", [HOLD_CONVERSATION, HOLD_RUN])
def test_a_session_that_sleeps_on_rows_for_the_length_of_a_lease_is_ended(
    statement: str, tom: User, settings: Any
) -> None:
    """The other session has said its last word before the lease began to run out."""
    settings.RUN_LEASE_SECONDS = 0
    run = claimed(tom)
    row = run.conversation_id if statement is HOLD_CONVERSATION else run.pk
    with asleep(statement, row) as session:
        assert sleepers_end() == 1
        with pytest.raises(psycopg.OperationalError):
            session.execute("SELECT 1")
    sweep()
    assert Run.objects.get(pk=run.pk).state == RunState.QUEUED


def test_a_session_that_sleeps_in_the_middle_of_what_it_sends_at_once_is_ended(
    tom: User, settings: Any
) -> None:
    """A checkpoint goes out together with its fence; its process stops when half of it is out."""
    settings.RUN_LEASE_SECONDS = 0
    run = claimed(tom)
    with closing(psycopg.connect(conninfo(), application_name="countersign")) as session:
        session.pgconn.enter_pipeline_mode()
        for statement in ("BEGIN", HOLD_RUN.replace("%s", f"'{run.pk}'")):
            session.pgconn.send_query_params(statement.encode(), None)
        session.pgconn.send_flush_request()
        session.pgconn.flush()
        until(sleepers_end, "the end of what sleeps", 30)
    sweep()
    assert Run.objects.get(pk=run.pk).state == RunState.QUEUED


def test_a_session_that_is_young_reads_only_or_is_a_persons_own_is_left_alone(
    tom: User, settings: Any
) -> None:
    """Three sessions are open in mid-transaction while the sweep looks."""
    conversation = conversation_start(owner=tom)
    with asleep(HOLD_CONVERSATION, conversation.pk):
        assert sleepers_end() == 0
    settings.RUN_LEASE_SECONDS = 0
    with asleep(HOLD_CONVERSATION, conversation.pk, name="psql"):
        assert sleepers_end() == 0
    with asleep("SELECT 1 FROM runs_conversation WHERE id = %s", conversation.pk):
        assert sleepers_end() == 0


def test_a_slow_step_costs_no_other_run_of_the_process_its_lease(tom: User) -> None:
    """One run's row is locked by a step while all leases are renewed: it is left for next time."""
    slow, other = claimed(tom), claimed(tom)
    with asleep(HOLD_RUN, slow.pk):
        assert claims.leases_renew({slow.pk: slow.attempt, other.pk: other.attempt}) == set()
        assert (lease(slow) < timezone.now(), lease(other) > timezone.now()) == (True, True)
    assert claims.leases_renew({slow.pk: slow.attempt}) == set()
    assert lease(slow) > timezone.now()


def test_what_a_restarted_redis_has_forgotten_is_sent_again_at_once(
    tom: User, redis_url: str
) -> None:
    """A message is taken out of the queue by nobody: Redis was emptied a moment after the send."""
    with redis.Redis.from_url(redis_url, decode_responses=True) as broker:
        queue.broker_forgot()
        broker.delete("turns")
        run = message_send(conversation=conversation_start(owner=tom), sender=tom, text="hello")
        sweep()
        assert len(broker.lrange("turns", 0, -1)) == 1

        broker.flushdb()
        sweep()

        assert [str(run.pk) in item for item in broker.lrange("turns", 0, -1)] == [True]
        broker.delete("turns")
