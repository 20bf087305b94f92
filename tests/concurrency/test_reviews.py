"""Two people, or two clicks, at one review, on two real connections."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import Permission, User
from django.db import transaction

from reviews import services_deciding
from reviews.errors import AlreadyDecided, Changed, Expired, ReviewConsumed
from reviews.models import Review, ReviewDecision
from reviews.services import (
    review_approve,
    review_consume,
    review_propose,
    review_raise,
    review_reject,
    reviews_expire,
)
from tests.reviews import fakes
from tests.rig.threads import Meeting, at_once, elsewhere

pytestmark = pytest.mark.django_db(transaction=True)

TEAM = uuid4()


@pytest.fixture(autouse=True)
def wiring(settings: Any) -> Iterator[None]:
    """Name the stand-ins where the settings name the other apps."""
    settings.RUN_SCOPE = "tests.reviews.fakes.scope_of"
    settings.REVIEW_DECIDED = "tests.reviews.fakes.decided"
    settings.REVIEW_SUBJECTS = {"refund": "tests.reviews.fakes.FakeSubject"}
    fakes.reset()
    yield
    fakes.reset()


@pytest.fixture
def review() -> Review:
    """Ask for a refund of 25.00 EUR of a payment with 100.00 EUR left."""
    subject_id = uuid4()
    fakes.LEFT[subject_id] = 10_000
    return asked(User.objects.create_user("ana"), subject_id, uuid4())


def asked(ana: User, subject_id: UUID, call_id: UUID) -> Review:
    """Ask on behalf of Ana."""
    return review_propose(
        run_id=uuid4(),
        call_id=call_id,
        conversation_id=uuid4(),
        requester=ana,
        proposal=fakes.proposal(subject_id, TEAM),
        arguments={"amount": "25.00"},
    )


def lead(name: str) -> User:
    """Make somebody who decides for the team."""
    user = User.objects.create_user(name, first_name=name.title())
    user.user_permissions.add(Permission.objects.get(codename="decide_review"))
    fakes.SCOPES[user.pk] = frozenset({TEAM})
    return user


@pytest.fixture
def meet(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hold both tries after they have read the review and before either writes."""
    monkeypatch.setattr(services_deciding, "_store", Meeting(services_deciding._store))


def outcome(review: Review, results: list[object]) -> tuple[list[Review], list[Exception]]:
    """Split what happened into decisions and refusals; prove that one try was accepted."""
    won = [result for result in results if isinstance(result, Review)]
    lost = [result for result in results if isinstance(result, Exception)]
    assert ReviewDecision.objects.filter(review=review, accepted=True).count() == len(won)
    assert ReviewDecision.objects.filter(review=review, accepted=False).count() == len(lost)
    return won, lost


def test_b30_two_clicks_of_one_person_approve_once(review: Review, meet: object) -> None:
    """Both clicks read a pending review; both write; the second finds nothing left to move."""
    lea = lead("lea")

    def click() -> Review:
        return review_approve(review_id=review.pk, actor=lea, channel="desk", version=1)

    won, lost = outcome(review, at_once(click, click))
    assert [type(refusal) for refusal in lost] == [AlreadyDecided]
    assert str(lost[0]).startswith("Lea approved this on ")
    assert len(won) == 1
    assert [(review.pk, "approved")] == fakes.TOLD


def test_b10_an_approval_and_a_rejection_at_once_leave_one_of_them(
    review: Review, meet: object
) -> None:
    """Lea approves less while Leo rejects; both have read the review; one row is moved, once."""
    lea, leo = lead("lea"), lead("leo")
    results = at_once(
        lambda: review_approve(
            review_id=review.pk, actor=lea, channel="desk", changes={"amount": "5.00"}
        ),
        lambda: review_reject(review_id=review.pk, actor=leo, channel="admin", sentence="No."),
    )
    won, lost = outcome(review, results)
    assert [type(refusal) for refusal in lost] == [AlreadyDecided]
    review.refresh_from_db()
    assert (review.state, review.version) == (won[0].state, won[0].version)
    assert [(review.pk, review.state)] == fakes.TOLD
    assert (review.state, review.amount_minor) in {("approved", 500), ("rejected", 2500)}


def test_an_approval_that_raced_a_raise_approves_only_what_was_read(
    review: Review, meet: object
) -> None:
    """Lea approves 25.00 while Leo raises to 90.00; 90.00 is never approved by that click."""
    lea, leo = lead("lea"), lead("leo")
    results = at_once(
        lambda: review_approve(review_id=review.pk, actor=lea, channel="desk"),
        lambda: review_raise(
            review_id=review.pk, actor=leo, channel="desk", changes={"amount": "90.00"}
        ),
    )
    won, lost = outcome(review, results)
    review.refresh_from_db()
    assert len(won) == 1
    if review.state == "approved":
        assert (review.amount_minor, review.editor) == (2500, None)
        assert isinstance(lost[0], AlreadyDecided)
    else:
        assert (review.state, review.amount_minor, review.editor) == ("pending", 9000, leo)
        assert isinstance(lost[0], Changed)


def test_an_approval_in_the_last_moment_and_the_expiry_leave_one_of_them(
    review: Review, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The time runs out after Lea's click has read the review; the sweep moves it; she is told."""
    lea, store = lead("lea"), services_deciding._store

    def expire_first(*given: Any) -> Review:
        elsewhere(overdue_and_sweep)
        return store(*given)

    def overdue_and_sweep() -> int:
        Review.objects.filter(pk=review.pk).update(expires_at=review.created_at)
        return reviews_expire()

    monkeypatch.setattr(services_deciding, "_store", expire_first)
    with pytest.raises(Expired):
        review_approve(review_id=review.pk, actor=lea, channel="desk")
    review.refresh_from_db()
    assert review.state == "expired"
    assert [(review.pk, "expired")] == fakes.TOLD


def test_an_approval_is_used_by_one_of_two_workers(review: Review) -> None:
    """Both workers open their ledger transaction, then both use the approval; one may write."""
    review_approve(review_id=review.pk, actor=lead("lea"), channel="desk")
    meet = Meeting()

    def use() -> Review:
        with transaction.atomic():
            Review.objects.get(pk=review.pk)
            meet()
            return review_consume(review_id=review.pk, subject_hash=review.subject_hash)

    results = at_once(use, use)
    assert sorted(type(result).__name__ for result in results) == ["Review", "ReviewConsumed"]
    assert any(isinstance(result, ReviewConsumed) for result in results)


def test_two_workers_that_ask_for_the_same_call_make_one_review() -> None:
    """Both gates insert the same (call, version) at once; both get the one row."""
    ana, call_id, subject_id = User.objects.create_user("ana"), uuid4(), uuid4()
    meet = Meeting()

    def gate() -> UUID:
        meet()
        return asked(ana, subject_id, call_id).pk

    first, second = at_once(gate, gate)
    assert first == second
    assert Review.objects.count() == 1
