"""Who works on a run: claims, leases, lines. Each test with two connections says what it forces."""

import threading
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.utils import timezone

from agent_core.errors import StaleAttempt
from agent_core.host import RunEnd
from agent_core.runs import claims, django_host, services, work
from agent_core.runs.django_host import DjangoHost
from agent_core.runs.endings import run_end
from agent_core.runs.models import Conversation, Event, Message, Run, StopRecord
from agent_core.runs.states import RUN_FINAL, RUN_MOVES, RUN_WORKING, RunState, run_moves_to
from agent_core.runs.tasks import sweep
from reviews.models import Review
from reviews.services import review_approve
from tests.rig.threads import at_once
from tests.runs.scripting import ScriptedModel

Play = Callable[..., ScriptedModel]
Say = Callable[[str], Run]


def sent(conversation: Conversation, tom: User, text: str = "hello") -> Run:
    """Send a message as Tom."""
    return services.message_send(conversation=conversation, sender=tom, text=text)


def expire(run: Run) -> None:
    """Let the lease of a claimed run be over."""
    Run.objects.filter(pk=run.pk).update(lease_until=timezone.now() - timedelta(seconds=1))


def test_every_state_has_its_moves_and_the_final_ones_have_none() -> None:
    assert set(RUN_MOVES) == set(RunState)
    assert frozenset({"done", "cancelled", "failed", "parked"}) == RUN_FINAL
    assert frozenset({"queued", "running"}) == RUN_WORKING
    assert run_moves_to(RunState.DECIDED) == {RunState.WAITING}


def test_of_two_workers_that_claim_at_once_one_gets_the_run(
    conversation: Conversation, tom: User
) -> None:
    """Both send the conditional update together; the second finds no queued row."""
    run = sent(conversation, tom)

    results = at_once(*[lambda: claims.run_claim(run.pk, quarantined=False)] * 4)

    assert sum(isinstance(result, Run) for result in results) == 1
    assert Run.objects.get().attempt == 1


def test_a_conversation_never_has_two_working_runs_whatever_the_code_does(
    conversation: Conversation, tom: User
) -> None:
    first, second = sent(conversation, tom), sent(conversation, tom)

    with pytest.raises(IntegrityError), transaction.atomic():
        Run.objects.filter(pk=second.pk).update(state=RunState.QUEUED)

    assert [first.state, second.state] == [RunState.QUEUED, RunState.PENDING]


def test_two_messages_sent_at_once_get_a_place_each_and_one_waits(
    conversation: Conversation, tom: User
) -> None:
    """Both transactions want the conversation's row; the second sees what the first has written."""
    at_once(lambda: sent(conversation, tom, "a"), lambda: sent(conversation, tom, "b"))

    assert sorted(Message.objects.values_list("position", flat=True)) == [1, 2]
    assert sorted(Run.objects.values_list("state", flat=True)) == ["pending", "queued"]


def test_the_same_message_sent_twice_at_once_is_one_message(
    conversation: Conversation, tom: User
) -> None:
    """A double click: both requests carry the page's key and arrive together."""
    key = uuid4()

    runs = at_once(
        *[
            lambda: services.message_send(
                conversation=conversation, sender=tom, text="pay", client_key=key
            )
        ]
        * 2
    )

    assert runs[0] == runs[1]
    assert Message.objects.count() == Run.objects.count() == 1


def test_events_are_committed_in_the_order_of_their_numbers(
    conversation: Conversation, tom: User
) -> None:
    """One writer holds its event uncommitted; the other must wait, so no reader skips a number."""
    holds, release = threading.Event(), threading.Event()

    def slow() -> None:
        with transaction.atomic():
            services.event_post(
                conversation_id=conversation.pk,
                kind="export",
                payload={"export": "slow", "state": "writing", "done": 1, "total": 2},
            )
            holds.set()
            release.wait(10)

    def quick() -> None:
        holds.wait(10)
        threading.Timer(0.3, release.set).start()
        services.event_post(
            conversation_id=conversation.pk,
            kind="export",
            payload={"export": "quick", "state": "writing", "done": 1, "total": 2},
        )

    at_once(slow, quick)

    assert [event.payload["export"] for event in Event.objects.order_by("pk")] == ["slow", "quick"]


def test_a_stale_attempt_can_write_nothing(
    conversation: Conversation, tom: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    # What the claim has read of the row counts for a moment: here it is over.
    monkeypatch.setattr(django_host, "FRESH_SECONDS", 0)
    run = sent(conversation, tom)
    stale = claims.run_claim(run.pk, quarantined=False)
    assert stale is not None
    expire(run)
    sweep()
    fresh = claims.run_claim(run.pk, quarantined=True)
    assert fresh is not None
    before = (Event.objects.count(), Message.objects.count())
    host = DjangoHost(stale, work.toolset())

    writes: tuple[Callable[[], object], ...] = (
        lambda: host.model_began(2),
        lambda: host.gated(1, []),
        lambda: host.context().bind_customer(uuid4(), "x"),
        host.safe_point,
        lambda: host.ended(RunEnd(rule="answered", answer="I was late")),
        lambda: claims.run_hand_back(stale),
        lambda: services.run_wait(stale, 1),
    )
    for write in writes:
        with pytest.raises(StaleAttempt):
            write()
    with pytest.raises(StaleAttempt), transaction.atomic():
        host.context().fence()

    assert (Event.objects.count(), Message.objects.count()) == before
    assert StopRecord.objects.count() == 0
    assert claims.leases_renew({stale.pk: stale.attempt}) == {stale.pk}


def test_a_stale_attempt_can_write_no_checkpoint(conversation: Conversation, tom: User) -> None:

    from agent_core.checkpoints import FencedSaver

    run = sent(conversation, tom)
    claimed = claims.run_claim(run.pk, quarantined=False)
    assert claimed is not None
    saver = FencedSaver(work.saver_pool(), partial(work._fence, run.pk, claimed.attempt - 1))
    config = {"configurable": {"thread_id": str(run.pk), "checkpoint_ns": ""}}
    checkpoint = {"v": 4, "id": "1", "ts": "", "channel_values": {}, "channel_versions": {}}

    with pytest.raises(StaleAttempt):
        saver.put(config, checkpoint, {}, {})  # type: ignore[arg-type]
    config["configurable"]["checkpoint_id"] = "1"
    with pytest.raises(StaleAttempt):
        saver.put_writes(config, [("messages", "x")], "task")  # type: ignore[arg-type]

    assert saver.get_tuple(config) is None  # type: ignore[arg-type]


def test_a_run_is_taken_from_a_dead_worker_and_set_aside_after_three_deaths_in_quarantine(
    conversation: Conversation, tom: User
) -> None:
    run = sent(conversation, tom)
    assert claims.run_claim(run.pk, quarantined=False)
    expire(run)
    sweep()
    run.refresh_from_db()
    assert (run.state, run.quarantined, run.strikes) == (RunState.QUEUED, True, 0)

    for _death in range(claims.MAX_STRIKES):
        assert claims.run_claim(run.pk, quarantined=False) is None
        assert claims.run_claim(run.pk, quarantined=True)
        expire(run)
        sweep()

    run.refresh_from_db()
    assert (run.state, run.stop.rule) == (RunState.PARKED, "parked")
    assert "set aside" in Message.objects.get(run=run).text


def test_a_decision_that_falls_between_the_interrupt_and_the_wait_is_not_lost(
    script: Play,
    say: Say,
    effects: list[str],
    maria: User,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The review is decided after the graph has paused and before the run says that it waits."""
    script([("probe_refund", {"amount": "5"})])
    wait = services.run_wait

    def decided_first(run: Run, seconds: int) -> None:
        review = Review.objects.get(run_id=run.pk)
        results = at_once(lambda: review_approve(review_id=review.pk, actor=maria, channel="desk"))
        assert isinstance(results[0], Review)
        wait(run, seconds)

    monkeypatch.setattr(work, "run_wait", decided_first)
    run = say("refund 5")

    assert run.state == RunState.DECIDED
    work.run_work(run.pk)
    assert effects == ["refund 5 approved"]


def test_two_reviews_decided_at_once_resume_the_run_once(
    script: Play, say: Say, effects: list[str], maria: User
) -> None:
    """Both decisions commit together; whichever is second sees the other and wakes the run."""
    script([("probe_refund", {"amount": "5"}), ("probe_refund", {"amount": "6"})])
    run = say("refund 5 and 6")
    reviews = list(Review.objects.filter(run_id=run.pk))

    results = at_once(
        *[
            lambda review=review: review_approve(review_id=review.pk, actor=maria, channel="desk")
            for review in reviews
        ]
    )
    assert all(isinstance(result, Review) for result in results)
    at_once(*[lambda: work.run_work(run.pk)] * 2)

    assert sorted(effects) == ["refund 5 approved", "refund 6 approved"]
    assert Event.objects.filter(run=run, kind="run", payload__state="decided").count() == 1


def test_a_decided_run_waits_for_the_working_one_of_its_conversation(
    script: Play, say: Say, effects: list[str], maria: User, conversation: Conversation
) -> None:
    tom = conversation.owner
    script([("probe_refund", {"amount": "5"})], "hello")
    waiting = say("refund 5")
    working = sent(conversation, tom, "hello?")
    review_approve(review_id=Review.objects.get().pk, actor=maria, channel="desk")

    work.run_work(waiting.pk)
    waiting.refresh_from_db()
    assert (waiting.state, effects) == (RunState.DECIDED, [])

    work.run_work(working.pk)
    work.run_work(waiting.pk)
    assert effects == ["refund 5 approved"]


def test_a_run_that_ends_twice_has_one_stop_record(conversation: Conversation, tom: User) -> None:
    """Two workers believe that they own the attempt; the second finds it ended."""
    run = sent(conversation, tom)
    claimed = claims.run_claim(run.pk, quarantined=False)
    assert claimed is not None
    copy = Run.objects.select_related("conversation").get(pk=run.pk)

    results = at_once(
        lambda: run_end(claimed, RunEnd(rule="answered", answer="one")),
        lambda: run_end(copy, RunEnd(rule="answered", answer="two")),
    )

    assert sum(isinstance(result, StaleAttempt) for result in results) == 1
    assert StopRecord.objects.count() == 1
    assert Message.objects.filter(run=run, role="assistant").count() == 1


def test_nothing_is_enqueued_when_the_transaction_is_rolled_back(
    conversation: Conversation, tom: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agent_core.runs import queue

    enqueued: list[object] = []
    monkeypatch.setattr(queue, "_send", lambda _task, run_id: enqueued.append(run_id))

    with transaction.atomic():
        sent(conversation, tom)
        assert enqueued == []
        transaction.set_rollback(True)
    assert enqueued == []
    assert Run.objects.count() == 0

    run = sent(conversation, tom)
    assert enqueued == [run.pk]


def test_what_redis_has_lost_is_enqueued_again(
    conversation: Conversation, tom: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    from agent_core.runs import queue

    run = sent(conversation, tom)
    Run.objects.update(enqueued_at=timezone.now() - timedelta(minutes=1))
    enqueued: list[object] = []
    monkeypatch.setattr(queue, "_send", lambda _task, run_id: enqueued.append(run_id))

    for _tick in range(5):
        sweep()

    # Once, and not at every tick: the queue of a busy day must not grow by itself.
    assert enqueued == [run.pk]


def test_a_claim_and_a_stop_at_once_wait_for_each_other_and_never_deadlock(
    conversation: Conversation, tom: User
) -> None:
    """Both take the conversation's row before the run's, whoever is first; twenty rounds."""
    for _round in range(20):
        run = sent(conversation, tom)
        results = at_once(
            partial(claims.run_claim, run.pk, quarantined=False),
            partial(services.run_cancel, run=run, actor=tom),
        )
        assert not [result for result in results if isinstance(result, Exception)]
        run.refresh_from_db()
        if run.state == RunState.RUNNING:
            run_end(run, RunEnd(rule="answered", answer="done"))


def test_a_binding_and_a_stop_at_once_never_deadlock(conversation: Conversation, tom: User) -> None:
    """The look-up binds the customer while the person stops the run; twenty rounds."""
    for _round in range(20):
        run = sent(conversation, tom)
        claimed = claims.run_claim(run.pk, quarantined=False)
        assert claimed is not None
        host = DjangoHost(claimed, work.toolset())
        Conversation.objects.update(customer_id=None)
        results = at_once(
            partial(host.context().bind_customer, uuid4(), "Ana"),
            partial(services.run_cancel, run=run, actor=tom),
        )
        assert not [result for result in results if isinstance(result, Exception)]
        run_end(claimed, RunEnd(rule="answered", answer="done"))
