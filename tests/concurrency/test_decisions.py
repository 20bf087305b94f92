"""Several people, pages and clicks at one waiting refund: one decision, one effect, all told.

Everything is real: pages, rows, checkpoints, ledger and the processor's own books. What decides
whether somebody may decide are the rights that stand when their decision has the row.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Permission
from django.db import transaction
from django.utils import timezone

from agent_core.runs import services
from agent_core.runs.models import Run
from agent_core.runs.states import RunState
from payments.roles import LEADS
from reviews import services_deciding
from reviews.errors import NoRight, NotFound
from reviews.models import Review
from reviews.services import review_approve, review_withdraw, reviews_expire
from reviews.words import moment
from tests.concurrency.conftest import Meet
from tests.concurrency.turns import Person, Turn, told
from tests.desk.test_chat import words
from tests.rig.threads import Caller, at_once, elsewhere

# The word of each state in the sentence that says who decided.
DID = {"approved": "approved", "rejected": "rejected", "withdrawn": "withdrew"}

RACES = [
    (("lea", "data", "approve"), ("leo", "data", "approve")),
    (("lea", "data", "approve"), ("leo", "admin", "reject")),
    (("lea", "admin", "approve"), ("leo", "admin", "approve")),
    (("lea", "data", "approve"), ("lea", "data", "approve")),
    (("lea", "admin", "approve"), ("ana", "chat", "withdraw")),
]
MORE_RACES = [
    (("lea", "page", "approve"), ("leo", "page", "reject")),
    (("lea", "admin", "approve"), ("lea", "page", "approve")),
    (("lea", "data", "reject"), ("ana", "chat", "withdraw")),
]


def who_and_when(review: Review) -> str:
    """Return the sentence that whoever comes second is told."""
    assert review.decided_by is not None
    assert review.decided_at is not None
    name = review.decided_by.first_name
    return f"{name} {DID[review.state]} this on {moment(review.decided_at)}."


@pytest.mark.parametrize(
    ("first", "second"),
    [*RACES, *(pytest.param(*pair, marks=pytest.mark.full) for pair in MORE_RACES)],
)
def test_b10_of_two_decisions_at_once_one_holds_and_the_other_is_told_who_and_when(
    turn: Turn,
    meet: Meet,
    first: tuple[str, str, str],
    second: tuple[str, str, str],
    request: pytest.FixtureRequest,
) -> None:
    """Both posts have passed every check and meet before either writes; then both write."""
    meet(services_deciding, "_store")

    def press(who: str, where: str, decision: str) -> Callable[[], Any]:
        # Two tabs of one person: a browser of its own for each.
        person = Person(request.getfixturevalue(who).user, turn)
        return lambda: getattr(person, where)(decision)

    answers = at_once(press(*first), press(*second))

    turn.review.refresh_from_db()
    sentence = who_and_when(turn.review)
    accepted = [decision for decision, taken, _why in turn.tries() if taken]
    assert len(accepted) == 1
    refusals = [why for _decision, taken, why in turn.tries() if not taken]
    assert refusals == ["review.already_decided"]
    # Pages show the sentence to both, since both look at the decided review.
    assert any(sentence in told(answer) for answer in answers)
    refused = [answer for answer in answers if answer.status_code == 409]
    assert all(told(answer) == sentence for answer in refused)
    turn.ended_as_decided()


@pytest.mark.parametrize("decided", ["approve", "reject"])
def test_b10_a_decision_posted_again_anywhere_changes_nothing_and_is_told_who_and_when(
    turn: Turn, lea: Person, leo: Person, ana: Person, decided: str
) -> None:
    """Back button, second tab, a script, the administration and the asker's chat, all later."""
    assert lea.data(decided).status_code == 200
    turn.ended_as_decided()
    turn.review.refresh_from_db()
    sentence, before = who_and_when(turn.review), turn.untouched()

    late = [
        lea.data("approve"),
        lea.page("approve"),
        lea.admin("approve"),
        leo.data("reject"),
        leo.page("reject"),
        leo.admin("reject"),
        leo.data("raise", amount="9.00"),
        leo.data("change", amount="1.00"),
        ana.chat("withdraw"),
        # What a script makes up: no version, the version of a later one, a wrong one.
        leo.data("approve", version=""),
        leo.data("approve", version="2"),
    ]

    for answer in late:
        assert sentence in told(answer)
    assert [taken for _decision, taken, _why in turn.tries()] == [True, *[False] * len(late)]
    assert {why for _decision, taken, why in turn.tries() if not taken} == {
        "review.already_decided"
    }
    turn.work()
    assert turn.untouched() == before


def test_every_try_is_shown_in_the_administration_and_none_can_be_changed(
    turn: Turn, lea: Person, leo: Person
) -> None:
    lea.data("approve")
    leo.admin("reject")
    page = told(leo.client.get(f"/admin/reviews/review/{turn.review.pk}/change/"))
    rows = [words(row) for row in page.split("<tr>") if "Desk" in row or "Administration" in row]
    assert [row.partition("UTC ")[2].split(" View")[0] for row in rows][:2] == [
        "Lea Approve Desk yes",
        "Leo Reject Administration refused",
    ]
    assert [taken for _decision, taken, _why in turn.tries()] == [True, False]


def test_a_chat_withdraws_while_the_administration_has_decided_a_moment_ago(
    turn: Turn, lea: Person, ana: Person
) -> None:
    """The asker's page was loaded before the approval, and posts after it."""
    lea.admin("approve")
    answer = ana.chat("withdraw")
    turn.review.refresh_from_db()
    assert (answer.status_code, told(answer)) == (409, who_and_when(turn.review))
    turn.work()
    turn.paid_once()


def right_removed(turn: Turn) -> None:
    """Take Lea's role away."""
    turn.lea.groups.clear()


def deactivated(turn: Turn) -> None:
    """Deactivate Lea."""
    turn.lea.is_active = False
    turn.lea.save()


def out_of_the_team(turn: Turn) -> None:
    """Move Lea to another team."""
    turn.desk.team.members.remove(turn.lea)


LOSSES = [right_removed, deactivated, out_of_the_team]


@pytest.mark.parametrize("lose", LOSSES)
def test_who_lost_the_right_between_page_and_post_decides_nothing(
    turn: Turn, lea: Person, leo: Person, lose: Callable[[Turn], None]
) -> None:
    """Lea has the card open; the right goes; she posts in all three places."""
    assert lea.client.get(f"/reviews/{turn.review.pk}/").status_code == 200
    lose(turn)
    for answer in (lea.data("approve"), lea.page("approve"), lea.admin("approve")):
        assert "approved this" not in told(answer)
    turn.review.refresh_from_db()
    assert turn.review.state == "pending"
    assert not any(taken for _decision, taken, _why in turn.tries())
    # The thread is as it was: the right decision works, once.
    leo.data("approve")
    turn.work()
    turn.paid_once()


@pytest.mark.parametrize("lose", LOSSES)
def test_who_loses_the_right_while_the_decision_waits_for_the_row_decides_nothing(
    turn: Turn, lea: Person, lose: Callable[[Turn], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lea's click has passed its checks; the right goes and is committed; then her click writes.

    The rights are read again once her decision holds the row. What is committed after that read
    comes after the decision.
    """
    store = services_deciding._store

    def lose_first(*given: Any) -> Review:
        elsewhere(lambda: lose(turn))
        return store(*given)

    monkeypatch.setattr(services_deciding, "_store", lose_first)
    assert lea.data("approve").status_code in {403, 404}
    with pytest.raises((NoRight, NotFound)):
        turn.approve()
    monkeypatch.undo()

    turn.review.refresh_from_db()
    assert turn.review.state == "pending"
    assert [taken for _decision, taken, _why in turn.tries()] == [False, False]
    turn.approve(actor=turn.leo)
    turn.work()
    turn.paid_once()


def test_what_was_approved_with_the_right_stays_approved_when_the_right_goes_later(
    turn: Turn,
) -> None:
    turn.approve()
    right_removed(turn)
    turn.work()
    turn.paid_once()


def requester_right_removed(turn: Turn, settings: Any) -> None:
    """Take the right to ask for refunds from Ana."""
    turn.ana.groups.clear()


def requester_out_of_the_team(turn: Turn, settings: Any) -> None:
    """Move Ana to another team."""
    turn.desk.team.members.remove(turn.ana)


def limit_lowered(turn: Turn, settings: Any) -> None:
    """Lower the daily limit below what was asked."""
    settings.REFUND_DAILY_LIMIT = {"EUR": 400}


@pytest.mark.parametrize("change", [requester_right_removed, limit_lowered])
def test_an_approval_is_no_use_when_the_asker_may_no_longer_ask(
    turn: Turn, settings: Any, change: Callable[[Turn, Any], None]
) -> None:
    """Between the approval and the worker the asker's right, or the limit, has gone."""
    turn.approve()
    change(turn, settings)
    turn.work()
    assert turn.run.state == RunState.DONE
    turn.never_paid()


def test_an_approval_is_no_use_when_the_asker_has_left_the_team(turn: Turn, settings: Any) -> None:
    """Out of scope is not found, as everywhere: the assistant answers, and nothing moves."""
    turn.approve()
    requester_out_of_the_team(turn, settings)
    turn.work()
    assert turn.run.state in {RunState.DONE, RunState.FAILED}
    assert turn.sent() == []


def test_at_the_very_moment_of_expiry_nobody_can_decide_any_more(
    turn: Turn, lea: Person, leo: Person
) -> None:
    """The row's time is over and the sweep has not come: two clicks and the sweep start at once."""
    Review.objects.filter(pk=turn.review.pk).update(expires_at=timezone.now())
    first, second, _swept = at_once(
        lambda: lea.data("approve"), lambda: leo.admin("approve"), reviews_expire
    )
    assert "This expired on" in told(first)
    assert "This expired on" in told(second)
    assert [why for _decision, _taken, why in turn.tries()] == ["review.expired"] * 2
    turn.review.refresh_from_db()
    assert turn.review.state == "expired"
    turn.work()
    turn.never_paid()


def test_the_sweep_and_an_approval_in_the_last_second_leave_one_of_them(
    turn: Turn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lea's click has passed its checks; time runs out and the sweep waits for her row."""
    store, begun = services_deciding._store, threading.Event()
    sweeping: list[Caller] = []

    def store_then_sweep(*given: Any) -> Review:
        review = store(*given)
        begun.set()
        return review

    monkeypatch.setattr(services_deciding, "_store", store_then_sweep)

    def approve() -> Review:
        with transaction.atomic():
            approved = turn.approve()
            # Her transaction is open; its row is held until it commits.
            sweeping.append(Caller(sweep))
            sweeping[0].waits(0.3)
            return approved

    def sweep() -> None:
        assert begun.wait(30)
        Review.objects.filter(pk=turn.review.pk).update(
            expires_at=timezone.now() - timedelta(hours=1)
        )
        reviews_expire()

    approve()
    sweeping[0].outcome()
    turn.review.refresh_from_db()
    assert turn.review.state == "approved"
    turn.work()
    turn.paid_once()


def test_a_cancel_and_an_approval_at_once_pay_nothing_and_say_so(turn: Turn, meet: Meet) -> None:
    """Ana stops the run while Lea's approval is about to be written: both meet there."""
    meet(services_deciding, "_store")
    at_once(turn.approve, lambda: services.run_cancel(run=turn.run, actor=turn.ana))
    turn.review.refresh_from_db()
    turn.work()
    assert turn.sent() == []
    # Whichever was first: the run was asked to stop before its next step.
    assert turn.review.state in {"approved", "withdrawn"}
    assert turn.run.state == RunState.CANCELLED
    assert turn.answers() == ["Stopped as you asked. Nothing was done."]


def test_a_cancel_after_the_money_has_moved_says_what_happened(turn: Turn) -> None:
    turn.approve()
    turn.work()
    services.run_cancel(run=turn.run, actor=turn.ana)
    turn.paid_once()
    assert Run.objects.get(pk=turn.run.pk).state == RunState.DONE


def test_an_approval_of_the_version_that_was_just_replaced_is_told_the_new_one(
    turn: Turn, lea: Person, leo: Person
) -> None:
    """Leo raises to 9.00 while Lea has 5.00 on her page; then a third person approves 9.00."""
    assert leo.data("raise", amount="9.00").status_code == 200
    answer = lea.data("approve")
    assert answer.status_code == 409
    assert "This request was changed since you opened it." in told(answer)
    assert "9.00 EUR" in told(answer)
    # Leo raised it, so he is no second person for it.
    assert leo.data("approve", version="2").status_code == 409
    turn.review.refresh_from_db()
    assert turn.review.state == "pending"
    assert lea.data("approve", version="2").status_code == 200
    turn.work()
    turn.paid_once(900)


def test_a_lowered_amount_and_an_approval_of_the_whole_at_once_pay_one_of_them(
    turn: Turn, meet: Meet, lea: Person, leo: Person
) -> None:
    """Lea approves 2.00 instead while Leo approves 5.00; both meet before either writes."""
    meet(services_deciding, "_store")
    at_once(lambda: lea.data("change", amount="2.00"), lambda: leo.data("approve"))
    turn.review.refresh_from_db()
    turn.work()
    assert turn.review.state == "approved"
    turn.paid_once(200 if turn.review.changes else 500)


def test_a_withdrawal_and_an_approval_in_two_transactions_leave_one_of_them(
    turn: Turn, meet: Meet
) -> None:
    """The services themselves, as scripts would call them, meet before either writes."""
    meet(services_deciding, "_store")
    results = at_once(
        turn.approve,
        lambda: review_withdraw(review_id=turn.review.pk, actor=turn.ana, channel="chat"),
    )
    assert sum(isinstance(result, Review) for result in results) == 1
    turn.ended_as_decided()


def test_a_right_that_was_given_directly_counts_like_a_role(turn: Turn) -> None:
    turn.lea.groups.clear()
    turn.lea.user_permissions.add(Permission.objects.get(codename="decide_review"))
    review_approve(review_id=turn.review.pk, actor=turn.lea, channel="desk")
    assert LEADS not in turn.lea.groups.values_list("name", flat=True)
    turn.work()
    turn.paid_once()
