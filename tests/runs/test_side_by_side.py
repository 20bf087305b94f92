"""What the calls of a batch and the runs of a process share: who acts, the stop, the leases."""

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone

from agent_core import faults
from agent_core.contract import RunContext
from agent_core.runs import acting, claims, django_host, leases, services, work
from agent_core.runs.acting import Acting
from agent_core.runs.models import Call, Conversation, Message, Run
from agent_core.runs.states import CallState, Role, RunState
from tests.rig.threads import elsewhere
from tests.runs.scripting import ScriptedModel

Play = Callable[..., ScriptedModel]


@pytest.fixture
def claimed(conversation: Conversation, tom: User) -> Run:
    """Return a run that this process has claimed."""
    run = services.message_send(conversation=conversation, sender=tom, text="hello")
    found = claims.run_claim(run.pk, quarantined=False)
    assert found is not None
    return found


def test_a_call_that_ends_while_another_reads_who_acts_leaves_it_a_whole_context(
    claimed: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One call reads; before it has, another one's answer voids what was known."""
    one = Acting(claimed, lambda *_: None)
    read, reads = acting._row, []

    def interrupted(*run: Any, **asked: Any) -> Any:
        found = read(*run, **asked)
        reads.append(asked["told"])
        if len(reads) == 1:
            one.answered()
        return found

    monkeypatch.setattr(acting, "_row", interrupted)

    context = one.context()

    assert isinstance(context, RunContext)
    assert context.told == ()
    # What was read before the answer is not kept as what is known after it.
    assert isinstance(one.context(), RunContext)
    assert reads == [True, True]
    one.context()
    assert len(reads) == 2


def test_a_stop_pressed_after_the_last_safe_point_still_comes_before_the_effect(
    script: Play,
    conversation: Conversation,
    tom: User,
    effects: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The gate has stored the batch; the stop is committed; the call's own look is the first."""
    script([("probe_pay", {"amount": "5"})])
    # What the gate's write has read of the row is fresh for the whole test.
    monkeypatch.setattr(django_host, "FRESH_SECONDS", 60)
    run = services.message_send(conversation=conversation, sender=tom, text="pay 5")

    def stop(name: str) -> None:
        if name == "batch.gated:after":
            elsewhere(lambda: services.run_cancel(run=run, actor=tom))

    faults.install(stop)
    try:
        work.run_work(run.pk)
    finally:
        faults.install(None)

    run.refresh_from_db()
    assert (effects, run.state) == ([], RunState.CANCELLED)
    assert Call.objects.get(run=run).state == CallState.CANCELLED
    assert "Nothing was done" in Message.objects.get(run=run, role=Role.ASSISTANT).text


def test_an_error_of_any_kind_costs_the_keeper_one_look_and_no_lease(
    claimed: Run, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    settings.RUN_LEASE_SECONDS = 2
    monkeypatch.setattr(leases, "LOOK_SECONDS", 0.05)
    whole, tries, renewed = claims.leases_renew, [], threading.Event()

    def broken(*arguments: Any) -> set[Any]:
        tries.append(arguments)
        if len(tries) == 1:
            raise RuntimeError("nobody has thought of this")
        gone = whole(*arguments)
        renewed.set()
        return gone

    monkeypatch.setattr(claims, "leases_renew", broken)
    Run.objects.update(lease_until=timezone.now() - timedelta(minutes=1))
    host = django_host.DjangoHost(claimed, work.toolset())

    with leases.Keeper().kept(claimed, host):
        assert renewed.wait(30)

    until = Run.objects.get(pk=claimed.pk).lease_until
    assert until is not None
    assert until > timezone.now() - timedelta(seconds=30)
    assert not host.lost


def test_the_keeper_waits_for_no_place_in_the_pool(
    claimed: Run, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    """Every connection of the pool is taken while a lease is renewed."""
    settings.RUN_LEASE_SECONDS = 2
    monkeypatch.setattr(leases, "LOOK_SECONDS", 0.05)
    whole, renewed = claims.leases_renew, threading.Event()

    def told(*arguments: Any) -> set[Any]:
        gone = whole(*arguments)
        renewed.set()
        return gone

    monkeypatch.setattr(claims, "leases_renew", told)
    host = django_host.DjangoHost(claimed, work.toolset())
    connection.ensure_connection()
    pool: Any = connection.pool  # type: ignore[attr-defined]
    taken = [pool.getconn() for _place in range(pool.max_size - 1)]
    try:
        with leases.Keeper().kept(claimed, host):
            assert renewed.wait(10)
    finally:
        for one in taken:
            pool.putconn(one)


def test_a_process_that_keeps_its_leases_takes_back_the_runs_of_a_dead_one(
    claimed: Run, tom: User, monkeypatch: pytest.MonkeyPatch, settings: Any
) -> None:
    """No sweep runs: beat, or the worker that sweeps, has died together with the run's own."""
    settings.RUN_LEASE_SECONDS = 2
    monkeypatch.setattr(leases, "LOOK_SECONDS", 0.05)
    other = services.message_send(
        conversation=services.conversation_start(owner=tom), sender=tom, text="hello"
    )
    assert claims.run_claim(other.pk, quarantined=False)
    Run.objects.filter(pk=other.pk).update(lease_until=timezone.now() - timedelta(minutes=1))
    taken, whole = threading.Event(), claims.leases_return

    def told() -> list[Run]:
        parked = whole()
        if Run.objects.get(pk=other.pk).state == RunState.QUEUED:
            taken.set()
        return parked

    monkeypatch.setattr(claims, "leases_return", told)
    host = django_host.DjangoHost(claimed, work.toolset())

    with leases.Keeper().kept(claimed, host):
        assert taken.wait(30)

    assert Run.objects.get(pk=other.pk).quarantined
    assert not host.lost
