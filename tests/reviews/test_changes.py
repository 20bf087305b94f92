"""What a reviewer may change in one step, what makes a new version, and what is refused."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from reviews.errors import Changed, ChangeRefused, FourEyes, Stale
from reviews.services import review_approve, review_raise
from tests.reviews import fakes
from tests.reviews.conftest import Ask, facts


def test_a_lower_amount_is_approved_in_one_step_and_the_original_is_kept(
    ask: Ask, lea: User
) -> None:
    asked = ask()
    review = review_approve(
        review_id=asked.pk,
        actor=lea,
        channel="desk",
        changes={"amount": " 10.00 ", "reason": "box damaged"},
    )
    assert (review.state, review.version, review.amount_minor) == ("approved", 2, 1000)
    assert review.title == "Refund 10.00 EUR to Ana Silva"
    assert review.subject_hash == f"refund|{asked.subject_id}|1000|EUR|2"
    assert review.changes == {"amount": "10.00", "reason": "box damaged"}
    assert review.original == {"payment": "PAY-1", "amount": "25.00", "reason": "damaged"}
    row = review.decisions.get()
    assert (row.decision, row.accepted, row.changes) == ("change", True, review.changes)


@pytest.mark.parametrize("same", [{}, {"amount": "25.00", "reason": "damaged"}])
def test_changes_that_change_nothing_approve_nothing(
    ask: Ask, lea: User, same: dict[str, str]
) -> None:
    review = ask()
    before = facts(review)
    with pytest.raises(ChangeRefused) as refused:
        review_approve(review_id=review.pk, actor=lea, channel="desk", changes=same)
    assert "Nothing was changed. Use “Approve 25.00 EUR”" in str(refused.value)
    assert facts(review) == before
    assert review.decisions.get().refused_because == "review.change_refused"


@pytest.mark.parametrize(
    "changes",
    [
        {"tool": "charge_make"},
        {"name": "charge_make", "amount": "1.00"},
        {"payment": "PAY-2"},
        {"customer": "CUS-2", "amount": "1.00"},
        {"currency": "JPY"},
        {"subject_hash": "x"},
        {"amount": 7},
        {"amount": 7.5},
        {"amount": "abc"},
        {"amount": ""},
        {"amount": None},
        {"amount": "7,50"},
        {"amount": "1\n2"},
        {"amount": ["1.00"]},
        {"amount": "26.00"},
        {"amount": "-1.00"},
        {"amount": "0"},
        {"reason": "a\u2028b"},
        {"reason": "x" * 301},
    ],
    ids=repr,
)
def test_b03_any_other_change_is_refused_stays_pending_and_is_audited(
    ask: Ask, lea: User, changes: dict[str, Any]
) -> None:
    review = ask()
    before = facts(review)
    with pytest.raises(ChangeRefused) as refused:
        review_approve(review_id=review.pk, actor=lea, channel="desk", changes=changes)
    assert str(refused.value).endswith(".")
    assert facts(review) == before
    assert fakes.TOLD == []
    row = review.decisions.get()
    assert (row.decision, row.accepted) == ("change", False)
    assert row.refused_because == "review.change_refused"
    assert set(row.changes) == set(changes)


def test_b03_a_subject_that_answers_with_another_payment_is_refused(
    ask: Ask, lea: User, settings: Any
) -> None:
    settings.REVIEW_SUBJECTS = {"refund": "tests.reviews.fakes.MovingSubject"}
    review = ask()
    before = facts(review)
    with pytest.raises(ChangeRefused, match=r"Only the amount and the reason"):
        review_approve(review_id=review.pk, actor=lea, channel="desk", changes={"amount": "1.00"})
    assert facts(review) == before


def test_a_kind_nobody_registered_is_approved_as_it_is_or_not_at_all(ask: Ask, lea: User) -> None:
    review = ask(kind="unlisted")
    with pytest.raises(ChangeRefused, match=r"only be approved as it is"):
        review_approve(review_id=review.pk, actor=lea, channel="desk", changes={"amount": "1.00"})
    assert review_approve(review_id=review.pk, actor=lea, channel="desk").state == "approved"


def test_more_than_asked_cannot_be_approved_in_one_step(ask: Ask, lea: User) -> None:
    review = ask()
    with pytest.raises(ChangeRefused, match=r"Raise it, and somebody else can approve it."):
        review_approve(review_id=review.pk, actor=lea, channel="desk", changes={"amount": "30.00"})
    review.refresh_from_db()
    assert (review.state, review.amount_minor, review.version) == ("pending", 2500, 1)


def test_b54_who_raised_the_sum_counts_as_asker_and_another_reviewer_approves(
    ask: Ask, ana: User, lea: User, leo: User
) -> None:
    asked = ask()
    raised = review_raise(
        review_id=asked.pk, actor=lea, channel="desk", changes={"amount": "40.00"}
    )
    assert (raised.state, raised.version, raised.amount_minor) == ("pending", 2, 4000)
    assert (raised.editor, raised.requested_by) == (lea, ana)
    assert [(asked.pk, "pending")] == fakes.TOLD
    for actor in (lea, ana):
        with pytest.raises(FourEyes):
            review_approve(review_id=asked.pk, actor=actor, channel="desk")
    with pytest.raises(FourEyes, match=r"You raised the amount yourself"):
        review_approve(review_id=asked.pk, actor=lea, channel="desk", changes={"amount": "1.00"})
    done = review_approve(review_id=asked.pk, actor=leo, channel="desk", version=2)
    assert (done.state, done.amount_minor, done.version) == ("approved", 4000, 2)
    assert done.changes == {"amount": "40.00"}


def test_who_raised_an_earlier_version_is_still_an_asker(ask: Ask, lea: User, leo: User) -> None:
    asked = ask()
    review_raise(review_id=asked.pk, actor=lea, channel="desk", changes={"amount": "40.00"})
    raised = review_raise(
        review_id=asked.pk, actor=leo, channel="desk", changes={"amount": "50.00"}
    )
    assert raised.editor == leo
    for actor in (lea, leo):
        with pytest.raises(FourEyes):
            review_approve(review_id=asked.pk, actor=actor, channel="desk")


def test_nobody_raises_above_what_is_left_or_without_raising(ask: Ask, lea: User) -> None:
    review = ask(left=3000)
    before = facts(review)
    for amount in ("30.01", "25.00", "24.00"):
        with pytest.raises(ChangeRefused):
            review_raise(review_id=review.pk, actor=lea, channel="desk", changes={"amount": amount})
    assert facts(review) == before


def test_stale_facts_are_refused_with_the_fresh_figures_and_it_stays_pending(
    ask: Ask, lea: User
) -> None:
    review = ask()
    assert review.subject_id is not None
    fakes.LEFT[review.subject_id] = 1000
    before = facts(review)
    with pytest.raises(Stale, match=r"Only 10.00 EUR is left to refund."):
        review_approve(review_id=review.pk, actor=lea, channel="desk")
    assert facts(review) == before
    less = review_approve(
        review_id=review.pk, actor=lea, channel="desk", changes={"amount": "10.00"}
    )
    assert (less.state, less.amount_minor) == ("approved", 1000)


def test_a_version_that_was_not_the_one_on_the_screen_is_not_approved(
    ask: Ask, lea: User, leo: User
) -> None:
    review = ask()
    review_raise(review_id=review.pk, actor=lea, channel="desk", changes={"amount": "40.00"})
    with pytest.raises(Changed, match=r"It now reads: Refund 40.00 EUR to Ana Silva"):
        review_approve(review_id=review.pk, actor=leo, channel="desk", version=1)
    review.refresh_from_db()
    assert review.state == "pending"


def test_what_was_posted_is_kept_cut_whatever_it_holds(ask: Ask, lea: User) -> None:
    review = ask()
    with pytest.raises(ChangeRefused):
        review_approve(
            review_id=review.pk,
            actor=lea,
            channel="desk",
            changes={"\x00tool": "\x00" + "x" * 5000},
            note="\x00",
        )
    row = review.decisions.get()
    assert row.changes == {"tool": "x" * 299}
    assert row.note == ""
