"""Asking, expiring, using an approval, and who finds which review."""

import logging
from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone

from agent_core.errors import ContractBroken
from reviews import words
from reviews.errors import (
    Expired,
    NoRight,
    NotFound,
    ReviewConsumed,
    ReviewMismatch,
    ReviewNotApproved,
)
from reviews.models import Review
from reviews.selectors import (
    choices_for,
    review_for,
    reviews_for,
    reviews_of_run,
    reviews_visible,
    waiting_for,
)
from reviews.services import (
    review_approve,
    review_consume,
    review_propose,
    review_raise,
    review_reject,
    reviews_expire,
)
from reviews.states import Decision
from reviews.tasks import reviews_expire as task
from tests.reviews import fakes
from tests.reviews.conftest import OTHER_TEAM, TEAM, Ask, confirmation, facts, person


def overdue(review: Review) -> None:
    """Let the time of a review run out."""
    late = timezone.now() - timedelta(seconds=1)
    Review.objects.filter(pk=review.pk).update(expires_at=late)


def test_asking_again_for_the_same_call_changes_nothing(ask: Ask) -> None:
    call_id = uuid4()
    first, again = ask(call_id=call_id), ask(call_id=call_id, minor=9900)
    assert again.pk == first.pk
    assert again.amount_minor == 2500
    assert Review.objects.count() == 1


def test_a_gate_that_runs_again_finds_the_review_whose_version_moved_on(
    ask: Ask, lea: User
) -> None:
    review = ask(call_id=uuid4())
    review_approve(review_id=review.pk, actor=lea, channel="desk", changes={"amount": "5.00"})
    again = ask(call_id=review.call_id)
    assert (again.pk, again.state, again.version) == (review.pk, "approved", 2)
    assert Review.objects.count() == 1


def test_another_version_of_a_call_is_another_review(ask: Ask, ana: User) -> None:
    review = ask()
    second = review_propose(
        run_id=review.run_id,
        call_id=review.call_id,
        conversation_id=review.conversation_id,
        requester=ana,
        proposal=fakes.proposal(uuid4(), TEAM),
        arguments={},
        version=2,
    )
    assert second.pk != review.pk
    assert list(reviews_of_run(review.run_id)) == [review, second]


def test_expiry_ends_what_is_overdue_and_nothing_else(ask: Ask, lea: User) -> None:
    late, fresh, done = ask(), ask(), ask()
    review_approve(review_id=done.pk, actor=lea, channel="desk")
    overdue(late)
    overdue(done)
    fakes.TOLD.clear()
    assert task() == 1
    assert reviews_expire() == 0
    states = dict(Review.objects.values_list("pk", "state"))
    assert states == {late.pk: "expired", fresh.pk: "pending", done.pk: "approved"}
    assert [(late.pk, "expired")] == fakes.TOLD


def test_a_decision_after_the_time_is_refused_and_ends_the_review(ask: Ask, lea: User) -> None:
    review = ask()
    overdue(review)
    with pytest.raises(Expired, match=r"expired on .* and nothing was done"):
        review_approve(review_id=review.pk, actor=lea, channel="desk")
    review.refresh_from_db()
    assert (review.state, review.decided_by) == ("expired", None)
    assert [(review.pk, "expired")] == fakes.TOLD
    with pytest.raises(Expired):
        review_reject(review_id=review.pk, actor=lea, channel="desk", sentence="No.")
    refused = review.decisions.values_list("accepted", "refused_because")
    assert list(refused) == [(False, "review.expired")] * 2


def test_an_approval_is_used_once_and_only_for_exactly_its_subject(ask: Ask, lea: User) -> None:
    review = review_approve(review_id=ask().pk, actor=lea, channel="desk")
    with pytest.raises(ReviewMismatch):
        review_consume(review_id=review.pk, subject_hash="something else")
    review.refresh_from_db()
    assert review.consumed_at is None
    used = review_consume(review_id=review.pk, subject_hash=review.subject_hash)
    assert used.consumed_at is not None
    with pytest.raises(ReviewConsumed):
        review_consume(review_id=review.pk, subject_hash=review.subject_hash)


def test_what_was_asked_is_not_what_may_be_done_after_a_change(ask: Ask, lea: User) -> None:
    asked = ask()
    review = review_approve(
        review_id=asked.pk, actor=lea, channel="desk", changes={"amount": "5.00"}
    )
    with pytest.raises(ReviewMismatch):
        review_consume(review_id=asked.pk, subject_hash=asked.subject_hash)
    assert review_consume(review_id=asked.pk, subject_hash=review.subject_hash).pk == asked.pk


def test_nothing_but_an_approved_review_can_be_used(ask: Ask, lea: User) -> None:
    pending, rejected, expired = ask(), ask(), ask()
    review_reject(review_id=rejected.pk, actor=lea, channel="desk", sentence="No.")
    overdue(expired)
    reviews_expire()
    for review in (pending, rejected, expired):
        with pytest.raises(ReviewNotApproved):
            review_consume(review_id=review.pk, subject_hash=review.subject_hash)
    with pytest.raises(ReviewNotApproved):
        review_consume(review_id=uuid4(), subject_hash=pending.subject_hash)


@pytest.mark.django_db(transaction=True)
def test_an_approval_is_not_used_outside_a_transaction(ask: Ask, lea: User) -> None:
    review = review_approve(review_id=ask().pk, actor=lea, channel="desk")
    with pytest.raises(ContractBroken):
        review_consume(review_id=review.pk, subject_hash=review.subject_hash)
    with transaction.atomic():
        review_consume(review_id=review.pk, subject_hash=review.subject_hash)
        transaction.set_rollback(True)
    review.refresh_from_db()
    assert review.consumed_at is None


def test_the_list_shows_what_waits_first_by_time_left(
    ask: Ask, ana: User, lea: User, olga: User, tom: User
) -> None:
    done, later, sooner = ask(), ask(), ask()
    review_approve(review_id=done.pk, actor=lea, channel="desk")
    Review.objects.filter(pk=sooner.pk).update(expires_at=timezone.now() + timedelta(minutes=5))
    assert list(reviews_for(lea)) == [sooner, later, done]
    assert list(reviews_for(ana)) == [sooner, later, done]
    assert list(reviews_for(olga)) == []
    assert list(reviews_for(tom)) == []
    assert list(reviews_visible(tom)) == [sooner, later, done]
    assert (waiting_for(lea), waiting_for(ana), waiting_for(tom)) == (2, 0, 0)


def test_a_review_opens_for_who_may_decide_and_who_asked_and_the_opening_is_logged(
    ask: Ask, ana: User, lea: User, caplog: pytest.LogCaptureFixture
) -> None:
    olga = person("olga", "view_review", "decide_review", team=OTHER_TEAM)
    tom = person("tom", "view_review")
    review = ask()
    caplog.set_level(logging.INFO, "reviews")
    assert review_for(lea, review.pk) == review
    assert review_for(ana, review.pk) == review
    texts = set()
    for user, review_id in ((olga, review.pk), (tom, review.pk), (lea, uuid4())):
        with pytest.raises(NotFound) as refused:
            review_for(user, review_id)
        texts.add(str(refused.value))
    assert texts == {"There is no such request for a decision."}
    opened = [vars(r)["actor"] for r in caplog.records if r.message == "review.opened"]
    denied = [vars(r)["actor"] for r in caplog.records if r.message == "scope.denied"]
    assert (opened, denied) == ([lea.pk, ana.pk], [olga.pk, tom.pk])


def test_a_page_offers_exactly_what_the_service_takes(ask: Ask, ana: User, lea: User) -> None:
    review = ask()
    assert choices_for(lea, review) == (
        (Decision.APPROVE, Decision.CHANGE, Decision.RAISE, Decision.REJECT),
        "",
    )
    own, why = choices_for(ana, review)
    assert own == (Decision.WITHDRAW,)
    assert why == "You asked for this yourself, so somebody else has to decide it."
    raised = review_raise(
        review_id=review.pk, actor=lea, channel="desk", changes={"amount": "30.00"}
    )
    assert choices_for(lea, raised)[0] == (Decision.RAISE, Decision.REJECT)


def test_time_left_is_written_for_people(ask: Ask) -> None:
    review, now = ask(), timezone.now()
    expected = {
        timedelta(days=1, hours=2): "1 day 2 h left",
        timedelta(hours=3, minutes=40): "3 h 40 min left",
        timedelta(minutes=1): "1 min left",
        timedelta(seconds=59): "less than a minute left",
        timedelta(0): "time is up",
    }
    for left, text in expected.items():
        review.expires_at = now + left
        assert words.time_left(review, now) == text


def test_a_refused_try_leaves_the_row_as_it_was(ask: Ask, tom: User) -> None:
    review = ask()
    before = facts(review)
    from reviews.services import review_try_refused

    review_try_refused(review_id=review.pk, actor=tom, channel="admin", decision=Decision.APPROVE)
    assert facts(review) == before
    assert review.decisions.get().refused_because == "review.no_right"


def test_the_count_of_what_waits_agrees_with_what_each_page_offers(
    ask: Ask, ana: User, lea: User, leo: User
) -> None:
    ask()
    ask(requester=lea)
    confirmation(lea)
    overdue(ask())
    review_raise(review_id=ask().pk, actor=leo, channel="desk", changes={"amount": "40.00"})
    twice = ask()
    for actor, amount in ((leo, "40.00"), (lea, "50.00")):
        review_raise(review_id=twice.pk, actor=actor, channel="desk", changes={"amount": amount})
    for user, expected in ((lea, 3), (leo, 2), (ana, 0)):
        offered = [choices_for(user, review)[0] for review in reviews_for(user)]
        assert sum(Decision.APPROVE in decisions for decisions in offered) == expected
        assert waiting_for(user) == expected


def test_the_command_line_decides_in_the_demo_only(ask: Ask, lea: User, settings: Any) -> None:
    review = ask()
    settings.DEMO = False
    with pytest.raises(NoRight, match=r"exists in the demo only\."):
        review_approve(review_id=review.pk, actor=lea, channel="cli")
    review.refresh_from_db()
    assert review.state == "pending"
    settings.DEMO = True
    assert review_approve(review_id=review.pk, actor=lea, channel="cli").state == "approved"
