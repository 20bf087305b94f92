"""First decision wins, four eyes hold on the server, and every try is a row."""

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.utils import timezone

from reviews.errors import AlreadyDecided, FourEyes, NoRight, NotFound, TextRefused
from reviews.models import Review, ReviewDecision
from reviews.services import review_approve, review_raise, review_reject, review_withdraw
from reviews.services_bulk import reviews_approve
from reviews.states import FINAL, TRANSITIONS, State
from tests.reviews import fakes
from tests.reviews.conftest import OTHER_TEAM, Ask, confirmation, facts, person


def tries(review: Review) -> list[tuple[str, str, bool, str]]:
    """Return who tried what, and why it was refused."""
    rows = review.decisions.values_list(
        "actor__username", "decision", "accepted", "refused_because"
    )
    return list(rows)


def test_an_approval_is_stored_told_and_audited(ask: Ask, lea: User) -> None:
    review = review_approve(review_id=ask().pk, actor=lea, channel="desk", note="seen the photo")
    assert review.state == "approved"
    assert (review.decided_by, review.note, review.version) == (lea, "seen the photo", 1)
    assert [(review.pk, "approved")] == fakes.TOLD
    assert tries(review) == [("lea", "approve", True, "")]


def test_b10_every_later_try_is_told_who_and_when_and_changes_nothing(
    ask: Ask, lea: User, leo: User, ana: User
) -> None:
    review = review_approve(review_id=ask().pk, actor=lea, channel="desk")
    before = facts(review)
    common: dict[str, Any] = {"review_id": review.pk, "channel": "desk"}
    assert review.decided_at is not None
    when = timezone.localtime(review.decided_at)
    told = f"Lea Lead approved this on {when.day} {when:%B %Y} at {when:%H:%M} UTC."
    with pytest.raises(AlreadyDecided, match=told):
        review_approve(actor=lea, **common)
    with pytest.raises(AlreadyDecided, match=told):
        review_reject(actor=leo, sentence="No.", **common)
    with pytest.raises(AlreadyDecided, match=told):
        review_withdraw(actor=ana, **common)
    with pytest.raises(AlreadyDecided, match=told):
        review_raise(actor=leo, changes={"amount": "30.00"}, **common)
    assert facts(review) == before
    assert [(review.pk, "approved")] == fakes.TOLD
    late = "review.already_decided"
    assert tries(review) == [
        ("lea", "approve", True, ""),
        ("lea", "approve", False, late),
        ("leo", "reject", False, late),
        ("ana", "withdraw", False, late),
        ("leo", "raise", False, late),
    ]


@pytest.mark.parametrize("superuser", [False, True])
def test_b54_who_asked_cannot_approve_not_even_a_superuser(ask: Ask, superuser: bool) -> None:
    asker = person("both", "decide_review", "view_review", is_superuser=superuser)
    review = ask(requester=asker)
    before = facts(review)
    with pytest.raises(FourEyes, match=r"You asked for this yourself"):
        review_approve(review_id=review.pk, actor=asker, channel="desk")
    with pytest.raises(FourEyes):
        review_approve(review_id=review.pk, actor=asker, channel="chat", changes={"amount": "1.00"})
    with pytest.raises(FourEyes):
        review_raise(review_id=review.pk, actor=asker, channel="desk", changes={"amount": "30.00"})
    assert facts(review) == before
    assert fakes.TOLD == []
    assert [row[3] for row in tries(review)] == ["review.four_eyes"] * 3


def test_b54_the_database_refuses_a_self_approval_that_goes_around_the_service(
    ask: Ask, ana: User
) -> None:
    review = ask()
    stored = Review.objects.filter(pk=review.pk)
    with pytest.raises(IntegrityError, match=r"review_four_eyes"), transaction.atomic():
        stored.update(state="approved", decided_by=ana, decided_at=timezone.now())


def test_b54_after_the_requester_was_changed_on_the_page_the_stored_one_still_counts(
    ask: Ask, lea: User
) -> None:
    review = ask(requester=lea)
    for changes in ({"requested_by": "1"}, {"requester": "ana", "amount": "1.00"}):
        with pytest.raises(FourEyes):
            review_approve(review_id=review.pk, actor=lea, channel="desk", changes=changes)
    review.refresh_from_db()
    assert (review.requested_by, review.state) == (lea, "pending")


def test_b54_in_bulk_only_the_others_pass_and_each_has_its_result(ask: Ask, lea: User) -> None:
    own, first, second = ask(requester=lea), ask(), ask()
    results = reviews_approve(
        items=[(first.pk, 1), (own.pk, 1), (second.pk, 1)], actor=lea, channel="admin"
    )
    assert [result.accepted for result in results] == [True, False, True]
    assert "You asked for this yourself" in results[1].text
    states = dict(Review.objects.values_list("pk", "state"))
    assert states == {own.pk: "pending", first.pk: "approved", second.pk: "approved"}


def test_with_no_second_reviewer_it_stays_pending(ask: Ask, lea: User) -> None:
    review = ask(requester=lea)
    for _ in range(3):
        with pytest.raises(FourEyes):
            review_approve(review_id=review.pk, actor=lea, channel="desk")
    review.refresh_from_db()
    assert review.state == State.PENDING


def test_another_teams_review_reads_like_a_missing_one(ask: Ask, olga: User) -> None:
    review = ask()
    before = facts(review)
    with pytest.raises(NotFound) as scoped:
        review_approve(review_id=review.pk, actor=olga, channel="desk")
    with pytest.raises(NotFound) as missing:
        review_approve(review_id=review.call_id, actor=olga, channel="desk")
    assert (str(scoped.value), scoped.value.code) == (str(missing.value), missing.value.code)
    assert facts(review) == before
    assert tries(review) == [("olga", "approve", False, "review.not_found")]


def test_who_may_only_look_decides_nothing(ask: Ask, tom: User) -> None:
    review = ask()
    before = facts(review)
    with pytest.raises(NoRight, match=r"You can see this request but not decide it."):
        review_approve(review_id=review.pk, actor=tom, channel="desk")
    with pytest.raises(NoRight):
        review_reject(review_id=review.pk, actor=tom, channel="desk", sentence="No.")
    with pytest.raises(NoRight):
        review_withdraw(review_id=review.pk, actor=tom, channel="desk")
    assert facts(review) == before


def test_a_right_that_was_taken_away_counts_at_once(ask: Ask, lea: User) -> None:
    review = ask()
    assert lea.has_perm("reviews.decide_review")  # a session that still remembers the right
    User.objects.get(pk=lea.pk).user_permissions.clear()
    with pytest.raises(NotFound):
        review_approve(review_id=review.pk, actor=lea, channel="desk")
    review.refresh_from_db()
    assert review.state == State.PENDING


def test_somebody_who_left_decides_nothing(ask: Ask, lea: User) -> None:
    review = ask()
    User.objects.filter(pk=lea.pk).update(is_active=False)
    with pytest.raises(NotFound):
        review_approve(review_id=review.pk, actor=lea, channel="desk")
    review.refresh_from_db()
    assert review.state == State.PENDING


def test_a_rejection_needs_a_sentence_and_keeps_the_note_apart(ask: Ask, lea: User) -> None:
    review = ask()
    before = facts(review)
    with pytest.raises(TextRefused):
        review_reject(review_id=review.pk, actor=lea, channel="desk", sentence=" \u2028\x00 ")
    with pytest.raises(TextRefused, match=r"1000 characters"):
        review_reject(review_id=review.pk, actor=lea, channel="desk", sentence="x" * 1001)
    assert facts(review) == before
    done = review_reject(
        review_id=review.pk, actor=lea, channel="desk", sentence="Box was fine.", note="fraud?"
    )
    assert (done.state, done.sentence, done.note) == ("rejected", "Box was fine.", "fraud?")
    assert [(review.pk, "rejected")] == fakes.TOLD


def test_only_who_asked_withdraws(ask: Ask, ana: User, lea: User) -> None:
    review = ask()
    with pytest.raises(NoRight, match=r"Only who asked for this can withdraw it."):
        review_withdraw(review_id=review.pk, actor=lea, channel="desk")
    done = review_withdraw(review_id=review.pk, actor=ana, channel="chat")
    assert (done.state, done.decided_by) == ("withdrawn", ana)
    assert [(review.pk, "withdrawn")] == fakes.TOLD


def test_a_confirmation_is_for_the_requester_alone(ana: User, lea: User) -> None:
    review = confirmation(ana)
    with pytest.raises(NoRight, match=r"Only who asked for this can confirm it."):
        review_approve(review_id=review.pk, actor=lea, channel="desk")
    with pytest.raises(NoRight, match=r"only be confirmed as it is"):
        review_approve(review_id=review.pk, actor=ana, channel="chat", changes={"amount": "1.00"})
    done = review_approve(review_id=review.pk, actor=ana, channel="chat")
    assert (done.state, done.decided_by) == ("approved", ana)


def test_a_charge_without_the_confirm_mark_needs_a_second_person(ana: User, lea: User) -> None:
    review = confirmation(ana, fields={})
    with pytest.raises(FourEyes):
        review_approve(review_id=review.pk, actor=ana, channel="chat")
    assert review_approve(review_id=review.pk, actor=lea, channel="desk").state == "approved"


def test_a_refund_never_becomes_a_confirmation(ask: Ask, ana: User) -> None:
    from dataclasses import replace
    from uuid import uuid4

    from reviews.services import review_propose

    asked = replace(fakes.proposal(uuid4(), OTHER_TEAM), fields={"confirm": "requester"})
    review = review_propose(
        run_id=uuid4(),
        call_id=uuid4(),
        conversation_id=uuid4(),
        requester=ana,
        proposal=asked,
        arguments={},
    )
    with pytest.raises(FourEyes):
        review_approve(review_id=review.pk, actor=ana, channel="chat")
    with pytest.raises(IntegrityError, match=r"review_confirmed_kind"), transaction.atomic():
        Review.objects.filter(pk=review.pk).update(requester_decides=True)


def test_a_failing_host_undoes_the_decision(ask: Ask, lea: User, settings: Any) -> None:
    review = ask()
    settings.REVIEW_DECIDED = "tests.reviews.test_decisions.host_fails"
    with pytest.raises(HostFailed):
        review_approve(review_id=review.pk, actor=lea, channel="desk")
    review.refresh_from_db()
    assert (review.state, review.decisions.count()) == ("pending", 0)


class HostFailed(Exception):
    """The host could not take the decision."""


def host_fails(review: Review) -> None:
    """Be the host that fails."""
    raise HostFailed


def test_the_table_of_moves_and_the_final_states_agree() -> None:
    assert TRANSITIONS[State.PENDING] == FINAL
    assert set(TRANSITIONS) == set(State)
    assert all(not TRANSITIONS[state] for state in FINAL)


def test_the_database_takes_one_accepted_decision(ask: Ask, lea: User) -> None:
    review = review_approve(review_id=ask().pk, actor=lea, channel="desk")
    with pytest.raises(IntegrityError, match=r"review_one_accepted"), transaction.atomic():
        ReviewDecision.objects.create(
            review=review, actor=lea, decision="reject", accepted=True, channel="desk"
        )
