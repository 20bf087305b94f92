"""The line under two hands at once, on two connections. Each test says which order it forces.

One transaction is stopped just before its commit until the other waits for its lock.
"""

from collections.abc import Callable
from functools import partial
from uuid import uuid4

import pytest
from django.contrib.auth.models import User

from agent_core.errors import RunCancelled
from agent_core.host import RunEnd
from agent_core.runs import claims, services, work
from agent_core.runs.endings import run_cancelled, run_end
from agent_core.runs.errors import MessageTaken, RunRefused
from agent_core.runs.models import Conversation, Message, Run, StopRecord
from agent_core.runs.states import RUN_WORKING, RunState
from reviews.errors import AlreadyDecided
from reviews.models import Review
from reviews.services import review_approve, review_withdraw
from tests.runs.racing import race
from tests.runs.scripting import ScriptedModel

Play = Callable[..., ScriptedModel]
Send = Callable[..., Run]


@pytest.fixture
def send(conversation: Conversation, tom: User) -> Send:
    """Send a message as Tom and leave its run in the queue."""
    return partial(services.message_send, conversation=conversation, sender=tom)


@pytest.fixture
def queued(send: Send) -> Run:
    """Return a run that no worker has claimed yet."""
    return send(text="pay 50")


def now(run: Run) -> Run:
    """Return the run as it is stored."""
    return Run.objects.select_related("message").get(pk=run.pk)


def test_a_change_that_comes_before_the_claim_is_what_the_worker_reads(
    queued: Run, tom: User
) -> None:
    """The edit holds the conversation; the claim waits for it, then reads the new text."""
    _edited, claimed = race(
        lambda: services.message_edit(message=queued.message, actor=tom, text="pay 5"),
        lambda: claims.run_claim(queued.pk, quarantined=False),
        held="message.edit:before",
    )
    assert isinstance(claimed, Run)
    assert claimed.message.text == "pay 5"


def test_a_change_that_comes_after_the_claim_is_refused_and_changes_nothing(
    queued: Run, tom: User
) -> None:
    """The claim holds; the edit, which saw a message in line on the page, waits and is told."""
    claimed, refused = race(
        lambda: claims.run_claim(queued.pk, quarantined=False),
        lambda: services.message_edit(message=queued.message, actor=tom, text="pay 5"),
        held="run.claim:before",
    )
    assert isinstance(refused, MessageTaken)
    assert claimed.message.text == now(queued).message.text == "pay 50"
    assert now(queued).message.edited_at is None


def test_what_is_removed_before_the_claim_is_never_worked_on(
    script: Play, queued: Run, tom: User, effects: list[str]
) -> None:
    """The removal holds; the worker waits for it, then finds nothing to claim."""
    model = script([("probe_pay", {"amount": "50"})])
    race(
        lambda: services.message_remove(message=queued.message, actor=tom),
        lambda: work.run_work(queued.pk),
        held="message.remove:before",
    )
    assert (now(queued).state, now(queued).attempt) == (RunState.CANCELLED, 0)
    assert (model.requests, effects) == ([], [])
    assert StopRecord.objects.count() == 1


def test_what_is_removed_after_the_claim_stays_and_is_worked_on(queued: Run, tom: User) -> None:
    """The claim holds; the removal waits and is told; the run goes on as if nothing had come."""
    _claimed, refused = race(
        lambda: claims.run_claim(queued.pk, quarantined=False),
        lambda: services.message_remove(message=queued.message, actor=tom),
        held="run.claim:before",
    )
    assert isinstance(refused, MessageTaken)
    assert (now(queued).state, now(queued).message.removed_at) == (RunState.RUNNING, None)
    assert StopRecord.objects.count() == 0


def test_a_change_and_the_end_of_the_run_before_it_wait_for_each_other(
    queued: Run, send: Send, tom: User
) -> None:
    """The first run ends and brings the next one on; the edit waits and still finds it unread."""
    behind = send(text="pay 60")
    claimed = claims.run_claim(queued.pk, quarantined=False)
    assert claimed is not None
    _ended, edited = race(
        lambda: run_cancelled(claimed),
        lambda: services.message_edit(message=behind.message, actor=tom, text="pay 6"),
        held="run.end:before",
    )
    assert isinstance(edited, Message)
    assert (now(behind).state, now(behind).message.text) == (RunState.QUEUED, "pay 6")


def test_a_message_that_comes_just_before_the_end_is_brought_on_by_it(
    queued: Run, send: Send
) -> None:
    """The send holds; the end waits for it, then finds the new run in line behind its own."""
    claimed = claims.run_claim(queued.pk, quarantined=False)
    assert claimed is not None
    behind, _ended = race(
        lambda: send(text="pay 60"),
        lambda: run_end(claimed, RunEnd(rule="completed", answer="Paid 50.")),
        held="message.send:before",
    )
    assert behind.state == RunState.PENDING
    assert (now(queued).state, now(behind).state) == (RunState.DONE, RunState.QUEUED)


def test_a_stop_that_comes_just_before_the_end_leaves_the_answer_that_was_made(
    queued: Run, tom: User
) -> None:
    """The stop holds while the worker, past its last safe point, wants to end: one record."""
    claimed = claims.run_claim(queued.pk, quarantined=False)
    assert claimed is not None
    race(
        lambda: services.run_cancel(run=queued, actor=tom),
        lambda: run_end(claimed, RunEnd(rule="completed", answer="Paid 50.")),
        held="run.cancel:before",
    )
    assert now(queued).state == RunState.DONE
    assert [record.rule for record in StopRecord.objects.all()] == ["completed"]
    assert [said.text for said in queued.answers.all()] == ["Paid 50."]


def test_a_stop_that_comes_after_the_end_changes_nothing(queued: Run, tom: User) -> None:
    """The end holds; the stop waits for it, then finds a run that is over."""
    claimed = claims.run_claim(queued.pk, quarantined=False)
    assert claimed is not None
    _ended, stopped = race(
        lambda: run_cancelled(claimed),
        lambda: services.run_cancel(run=queued, actor=tom),
        held="run.end:before",
    )
    assert (stopped.state, stopped.cancel_requested_at) == (RunState.CANCELLED, None)
    assert StopRecord.objects.count() == 1
    assert queued.answers.count() == 1


@pytest.fixture
def pausing(script: Play, queued: Run) -> Run:
    """Return a claimed run that is about to wait for a person, with its review asked for."""
    script([("probe_refund", {"amount": "50"})])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(work, "run_wait", lambda *_given: None)
        work.run_work(queued.pk)
    assert now(queued).state == RunState.RUNNING
    return now(queued)


def test_a_stop_that_comes_just_before_the_wait_is_not_lost(
    pausing: Run, tom: User, effects: list[str]
) -> None:
    """The stop holds; the pause waits for it, sees it, and the run ends with nothing done."""

    def pause() -> None:
        try:
            services.run_wait(pausing, 1)
        except RunCancelled:
            run_cancelled(pausing)

    race(lambda: services.run_cancel(run=pausing, actor=tom), pause, held="run.cancel:before")
    assert (now(pausing).state, effects) == (RunState.CANCELLED, [])
    assert Review.objects.get().state == "withdrawn"
    assert "Nothing was done" in pausing.answers.get().text


def test_a_stop_that_comes_just_after_the_wait_withdraws_what_it_waits_for(
    pausing: Run, tom: User, effects: list[str]
) -> None:
    """The pause holds; the stop waits for it, then takes the review back; nothing was done."""
    race(
        lambda: services.run_wait(pausing, 1),
        lambda: services.run_cancel(run=pausing, actor=tom),
        held="run.wait:before",
    )
    assert now(pausing).state == RunState.DECIDED
    work.run_work(pausing.pk)
    assert (now(pausing).state, effects) == (RunState.CANCELLED, [])
    assert Review.objects.get().state == "withdrawn"
    assert StopRecord.objects.count() == 1


def test_of_two_messages_sent_at_once_exactly_one_is_worked_on(send: Send) -> None:
    """The first send holds; the second waits for the conversation and takes the place behind."""
    first, second = race(
        lambda: send(text="one"), lambda: send(text="two"), held="message.send:before"
    )
    assert [(run.message.position, run.state) for run in (first, second)] == [
        (1, RunState.QUEUED),
        (2, RunState.PENDING),
    ]
    assert Run.objects.filter(state__in=RUN_WORKING).count() == 1


def test_a_double_click_is_one_message_and_one_run(send: Send) -> None:
    """Both carry the page's key; the first holds, the second waits and is given its run."""
    key = uuid4()
    click = partial(send, text="pay", client_key=key)
    first, second = race(click, click, held="message.send:before")
    assert first == second
    assert (Message.objects.count(), Run.objects.count()) == (1, 1)


def test_two_presses_on_go_on_start_one_run(queued: Run, tom: User) -> None:
    """Both find a stopped run; the first holds, the second waits and is given its run."""
    services.run_cancel(run=queued, actor=tom)
    press = partial(services.run_retry, run=queued, actor=tom)
    first, second = race(press, press, held="run.retry:before")
    assert first == second
    assert Run.objects.filter(continues=queued).count() == 1


def test_go_on_that_meets_a_stop_waits_for_it_and_begins_once_it_is_over(
    queued: Run, tom: User
) -> None:
    """The stop of a run in the queue holds; going on waits, then continues the stopped run."""
    _stopped, again = race(
        lambda: services.run_cancel(run=queued, actor=tom),
        lambda: services.run_retry(run=queued, actor=tom),
        held="run.cancel:before",
    )
    assert (now(queued).state, again.continues_id) == (RunState.CANCELLED, queued.pk)
    assert Run.objects.filter(state__in=RUN_WORKING).count() == 1


def test_go_on_of_a_run_that_was_asked_to_stop_but_still_works_is_refused(
    queued: Run, tom: User
) -> None:
    """The stop of a claimed run holds; going on waits, then finds that it has not stopped yet."""
    assert claims.run_claim(queued.pk, quarantined=False)
    _stopped, refused = race(
        lambda: services.run_cancel(run=queued, actor=tom),
        lambda: services.run_retry(run=queued, actor=tom),
        held="run.cancel:before",
    )
    assert isinstance(refused, RunRefused)
    assert Run.objects.count() == 1


@pytest.mark.parametrize("first", ["approve", "withdraw"])
def test_of_a_withdrawal_and_an_approval_at_once_the_first_one_counts(  # noqa: PLR0917
    script: Play, queued: Run, tom: User, maria: User, effects: list[str], first: str
) -> None:
    """One decision holds; the other waits for the review's row and is told who was first."""
    script([("probe_refund", {"amount": "50"})])
    work.run_work(queued.pk)
    review = Review.objects.get().pk
    jobs = {
        "approve": lambda: review_approve(review_id=review, actor=maria, channel="desk"),
        "withdraw": lambda: review_withdraw(review_id=review, actor=tom, channel="chat"),
    }
    second = {"approve": "withdraw", "withdraw": "approve"}[first]
    _won, lost = race(jobs[first], jobs[second], held="review.decide:before")
    assert isinstance(lost, AlreadyDecided)
    assert str(lost).startswith("Maria approved" if first == "approve" else "Tom withdrew")
    work.run_work(queued.pk)
    made, rule = (
        (["refund 50 approved"], "completed") if first == "approve" else ([], "policy_block")
    )
    assert (effects, StopRecord.objects.get().rule) == (made, rule)
