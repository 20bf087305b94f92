"""Deciding at the desk: what is offered to whom, and refused whatever a page offers."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.urls import reverse

from agent_core.policy import ReviewProposal
from agent_core.runs.models import Call, Conversation, Event, Run
from reviews.models import Review, ReviewDecision
from reviews.services import review_propose
from tests.desk.conftest import Enter, asked, called
from tests.desk.test_chat import DATA, words


def card(enter: Enter, user: User, review: Review) -> str:
    """Return the review's page as this person gets it."""
    answer = enter(user).get(reverse("review", args=[review.pk]))
    assert answer.status_code == 200
    return answer.content.decode()


def decide(enter: Enter, user: User, review: Review, **form: str) -> Any:
    """Post a decision as a browser without scripts does."""
    posted = {"version": "1", **form}
    return enter(user).post(reverse("api-decision", args=[review.pk]), posted, follow=True)


def facts(review: Review) -> dict[str, Any]:
    """Return what is stored of the review."""
    return {**Review.objects.filter(pk=review.pk).values().get()}


def test_the_card_has_its_rows_in_a_fixed_order_and_the_button_repeats_the_amount(
    enter: Enter, maria: User, review: Review
) -> None:
    said = words(card(enter, maria, review))
    order = [
        "Refund 5.00 EUR to Ana Silva",
        "Why you Every refund needs a second person",
        "Effect Payment PAY-7001, 25.00 EUR",
        "Left to refund 20.00 EUR",
        "Watch",
        "Asked by Tom Becker, through the assistant",
        "Reason the box was crushed",
        "Customer Ana Silva, ana@example.com, CUS-1",
        "Approve 5.00 EUR",
        "Change…",
        "Reject…",
    ]
    places = [said.index(piece) for piece in order]
    assert places == sorted(places)


def test_no_button_has_the_focus_when_the_card_opens(
    enter: Enter, maria: User, review: Review
) -> None:
    assert "autofocus" not in card(enter, maria, review)


def test_a_lead_approves_and_the_run_goes_on(enter: Enter, maria: User, review: Review) -> None:
    answer = decide(enter, maria, review, decision="approve", version="1")
    assert answer.redirect_chain[-1][0] == reverse("review", args=[review.pk]) + "#result"
    said = words(answer.content.decode())
    assert "Maria Lopes approved this on" in said
    assert "Approved. It is about to be sent." in said
    assert "Approve 5.00 EUR" not in said
    assert facts(review)["state"] == "approved"
    # No worker has it yet: decided, or already in line.
    assert Run.objects.get(pk=review.run_id).state in {"decided", "queued"}


def test_an_approval_that_a_rule_stopped_says_so_and_is_over(
    enter: Enter, maria: User, review: Review
) -> None:
    decide(enter, maria, review, decision="approve", version="1")
    text = "PAY-7001 is disputed at the bank, so it cannot be refunded here."
    Call.objects.filter(pk=review.call_id).update(state="refused", content=text)
    html = card(enter, maria, review)
    said = words(html)
    assert f"Approved, but not done: {text}" in said
    assert "about to be sent" not in said
    assert 'data-settled="1"' in html
    assert "notice--bad" in html


@pytest.mark.parametrize(
    ("state", "why"),
    [
        ("cancelled", "the request was stopped before it."),
        ("failed", "the request failed before it."),
        ("parked", "the request was set aside before it."),
    ],
)
def test_an_approval_whose_run_ended_first_says_so_and_is_over(
    enter: Enter, maria: User, review: Review, state: str, why: str
) -> None:
    decide(enter, maria, review, decision="approve", version="1")
    # Ended between the decision and the call, which then never runs.
    Run.objects.filter(pk=review.run_id).update(state=state, lease_until=None)
    html = card(enter, maria, review)
    assert f"Approved, but not done: {why}" in words(html)
    assert 'data-settled="1"' in html


@pytest.mark.parametrize("state", ["queued", "running", "waiting"])
def test_an_approval_whose_call_still_comes_is_not_over(
    enter: Enter, maria: User, review: Review, state: str
) -> None:
    decide(enter, maria, review, decision="approve", version="1")
    Call.objects.filter(pk=review.call_id).update(state=state)
    html = card(enter, maria, review)
    assert "Approved. It is about to be sent." in words(html)
    assert 'data-settled="1"' not in html


def test_who_asked_is_offered_no_approval_and_gets_none_by_hand(
    enter: Enter, tom: User, review: Review
) -> None:
    """The rule is the server's: the post is made by hand, without a button (B54)."""
    html = card(enter, tom, review)
    assert 'value="approve"' not in html
    assert 'value="withdraw"' in html
    before = facts(review)
    for channel in ("chat", "desk"):
        answer = decide(enter, tom, review, decision="approve", channel=channel)
        assert "You asked for this yourself, so somebody else has to decide it." in words(
            answer.content.decode()
        )
    assert facts(review) == before
    assert ReviewDecision.objects.filter(accepted=True).count() == 0
    assert ReviewDecision.objects.filter(refused_because="review.four_eyes").count() == 2


def test_who_may_only_look_sees_the_list_and_cannot_decide(
    enter: Enter, iris: User, review: Review
) -> None:
    said = words(enter(iris).get(reverse("reviews")).content.decode())
    assert "You can see reviews but not decide them." in said
    assert "Refund 5.00 EUR to Ana Silva" in said
    before = facts(review)
    answer = decide(enter, iris, review, decision="approve")
    assert answer.status_code == 404
    assert facts(review) == before


def test_the_second_to_decide_is_told_who_and_when(
    enter: Enter, maria: User, teams: Any, review: Review
) -> None:
    from payments.roles import LEADS
    from tests.desk.conftest import person

    samuel = person("Samuel", LEADS, teams["North"])
    decide(enter, maria, review, decision="approve")
    before = facts(review)
    answer = decide(enter, samuel, review, decision="reject", sentence="No.")
    assert answer.status_code == 200
    assert "Maria Lopes approved this on" in words(answer.content.decode())
    assert facts(review) == before
    as_data = enter(samuel).post(
        reverse("api-decision", args=[review.pk]), {"decision": "approve", "version": "1"}, **DATA
    )
    assert as_data.status_code == 409
    assert as_data.json()["error"].startswith("Maria Lopes approved this on")


def test_a_lower_amount_is_approved_in_one_step(enter: Enter, maria: User, review: Review) -> None:
    decide(
        enter,
        maria,
        review,
        decision="change",
        amount="3.50",
        reason="the box was crushed",
        version="1",
    )
    stored = facts(review)
    assert (stored["state"], stored["amount_minor"], stored["version"]) == ("approved", 350, 2)
    assert stored["changes"] == {"amount": "3.50"}


def test_a_higher_amount_waits_for_somebody_else(enter: Enter, maria: User, review: Review) -> None:
    decide(enter, maria, review, decision="raise", amount="7.00", version="1")
    stored = facts(review)
    assert (stored["state"], stored["amount_minor"], stored["version"]) == ("pending", 700, 2)
    assert stored["editor_id"] == maria.pk
    html = card(enter, maria, review)
    assert 'value="approve"' not in html
    assert "You raised the amount yourself" in words(html)


def test_a_raise_tells_the_chat_at_once_so_that_its_card_shows_the_new_amount(
    enter: Enter, maria: User, tom: User, talk: Conversation, review: Review
) -> None:
    seen = Event.objects.latest("pk").pk
    decide(enter, maria, review, decision="raise", amount="7.00", version="1")
    (event,) = Event.objects.filter(conversation=talk, pk__gt=seen)
    assert (event.kind, event.payload) == (
        "review",
        {"review": str(review.pk), "state": "pending", "title": "Refund 7.00 EUR to Ana Silva"},
    )
    assert Run.objects.get(pk=review.run_id).state == "waiting"
    parts = reverse("fragment", args=[talk.pk, "review", review.pk])
    assert "Refund 7.00 EUR to Ana Silva" in words(enter(tom).get(parts).content.decode())


def test_an_amount_above_what_is_left_is_refused_with_what_is_left(
    enter: Enter, maria: User, review: Review
) -> None:
    before = facts(review)
    answer = decide(enter, maria, review, decision="raise", amount="25.01", version="1")
    assert "25.00 EUR can still be refunded" in words(answer.content.decode())
    assert facts(review) == before


def test_a_card_that_changed_meanwhile_is_not_approved_as_it_was(
    enter: Enter, maria: User, teams: Any, review: Review
) -> None:
    from payments.roles import LEADS
    from tests.desk.conftest import person

    samuel = person("Samuel", LEADS, teams["North"])
    decide(enter, maria, review, decision="raise", amount="7.00", version="1")
    before = facts(review)
    answer = decide(enter, samuel, review, decision="approve", version="1")
    assert "This request was changed since you opened it." in words(answer.content.decode())
    assert facts(review) == before
    decide(enter, samuel, review, decision="approve", version="2")
    assert facts(review)["state"] == "approved"


def test_a_rejection_has_a_sentence_for_the_chat_and_a_note_that_stays_inside(
    enter: Enter, maria: User, tom: User, review: Review
) -> None:
    decide(
        enter,
        maria,
        review,
        decision="reject",
        sentence="Ask for a photo first.",
        note="third time this month",
    )
    stored = facts(review)
    assert (stored["state"], stored["sentence"]) == ("rejected", "Ask for a photo first.")
    assert stored["note"] == "third time this month"
    assert "third time this month" in card(enter, maria, review)
    for address in (
        reverse("review", args=[review.pk]),
        reverse("chat", args=[review.conversation_id]),
        reverse("run", args=[review.run_id]),
    ):
        html = enter(tom).get(address).content.decode()
        assert "third time this month" not in html, address
        assert "Ask for a photo first." in words(html), address


def test_a_ready_reason_is_the_sentence_where_no_script_fills_the_field(
    enter: Enter, maria: User, review: Review
) -> None:
    ready = "The reason is not covered by our refund rules."
    assert ready in card(enter, maria, review)
    decide(enter, maria, review, decision="reject", sentence=" ", ready=ready)
    assert facts(review)["sentence"] == ready


def test_a_rejection_without_a_sentence_is_refused(
    enter: Enter, maria: User, review: Review
) -> None:
    before = facts(review)
    answer = decide(enter, maria, review, decision="reject", sentence="  ")
    assert answer.status_code == 422
    assert facts(review) == before


def test_who_asked_can_withdraw_from_the_chat(enter: Enter, tom: User, review: Review) -> None:
    answer = decide(enter, tom, review, decision="withdraw", channel="chat")
    at = reverse("chat", args=[review.conversation_id]) + f"#review-{review.pk}"
    assert answer.redirect_chain[-1][0] == at
    assert facts(review)["state"] == "withdrawn"
    assert "Tom Becker withdrew this on" in words(answer.content.decode())


def test_an_odd_decision_changes_nothing(enter: Enter, maria: User, review: Review) -> None:
    before = facts(review)
    for odd in ("", "settle", "APPROVE", "expire"):
        assert decide(enter, maria, review, decision=odd).status_code == 422
    assert facts(review) == before


def test_the_reviewer_reads_the_conversation_and_nothing_else_of_it(
    enter: Enter, maria: User, review: Review
) -> None:
    html = card(enter, maria, review)
    assert "refund 5 EUR of PAY-7001" in words(html)
    assert "The conversation, for reading" in words(html)
    assert str(review.conversation_id) not in html
    assert "composer" not in html


def test_the_card_in_the_chat_offers_the_requester_no_approval(
    enter: Enter, tom: User, review: Review
) -> None:
    html = enter(tom).get(reverse("chat", args=[review.conversation_id])).content.decode()
    assert 'value="approve"' not in html
    assert "You asked for this, so a colleague decides." in words(html)


@pytest.fixture
def unnamed(talk: Conversation) -> Review:
    """Return a charge that Tom has to confirm himself."""
    run = asked(talk, "charge the open invoice")
    call = called(run, tool="charge_invoice", state="waiting", label="Charging the invoice")
    return review_propose(
        run_id=run.pk,
        call_id=call.pk,
        conversation_id=talk.pk,
        requester=talk.owner,
        proposal=ReviewProposal(
            kind="charge",
            subject_id=None,
            subject_hash="h",
            title="Confirm before Ana Silva is charged 25.00 EUR",
            button="Confirm 25.00 EUR",
            amount_minor=2500,
            currency="EUR",
            fields={"confirm": "requester"},
        ),
        arguments={},
    )


def test_an_unnamed_charge_is_confirmed_on_the_card_by_who_asked(
    enter: Enter, tom: User, unnamed: Review
) -> None:
    html = enter(tom).get(reverse("chat", args=[unnamed.conversation_id])).content.decode()
    assert re.search(r'<button class="button button--main"[^>]*>Confirm 25.00 EUR</button>', html)
    assert "Waiting for you to confirm" in words(html)
    assert "change" not in html.split('id="review-')[1].split("</article>")[0]


def test_the_inbox_puts_what_ends_first_on_top_and_counts_what_waits(
    enter: Enter, maria: User, review: Review, talk: Conversation, payment: Any
) -> None:
    from datetime import timedelta

    from tests.desk.conftest import waiting_refund

    later = waiting_refund(asked(talk, "refund 6 EUR of PAY-7001"), payment, amount_minor=600)
    Review.objects.filter(pk=later.pk).update(expires_at=review.expires_at - timedelta(hours=1))
    said = words(enter(maria).get(reverse("reviews")).content.decode())
    assert said.index("Refund 6.00 EUR") < said.index("Refund 5.00 EUR")
    assert "Waiting for you 2" in said
    assert said.startswith("(2) Reviews")


def test_a_changed_request_does_not_warn_of_itself(
    enter: Enter, maria: User, review: Review
) -> None:
    decide(enter, maria, review, decision="raise", amount="7.00")
    assert facts(review)["warnings"] == []


def test_an_empty_inbox_says_so(enter: Enter, maria: User) -> None:
    said = words(enter(maria).get(reverse("reviews")).content.decode())
    assert "Nothing waits for you" in said
