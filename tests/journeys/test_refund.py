"""Refund: a second person decides, the money moves once, the receipt is the answer."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import Group
from django.db import connection

from agent_core.runs.models import Run
from payments.models import Intent, Payment, Refund
from reviews.errors import AlreadyDecided, FourEyes, NotFound, ReviewRefused
from reviews.models import Review, ReviewDecision
from reviews.services import review_approve, reviews_expire
from tests.journeys.chat import (
    Chat,
    approve,
    payment_add,
    person,
    pump,
    reject,
    sent_back,
    settle_pump,
    stop,
    withdraw,
)
from tests.payments.processor import Processor
from tests.runs.scripting import ScriptedModel

Script = Callable[..., ScriptedModel]


def card(review: Review) -> dict[str, str]:
    """Return the rows of a review's card by their label."""
    return {row["label"]: row["text"] for row in review.card}


def receipt(amount: str, payment: str, left: str) -> str:
    """Return the receipt of the newest refund of a payment of Ana's."""
    refund = Refund.objects.filter(payment__reference=payment).latest("created_at")
    return (
        f"{refund.reference}: {amount} of {payment} was refunded to Ana Silva, to Visa ending in "
        f"4242. {left} of this payment is left to refund."
    )


def test_a_refund_waits_is_approved_moves_once_and_its_receipt_is_the_answer(
    chat: Chat, product: Processor, style: str
) -> None:
    run = chat.say("refund 5.00 of PAY-10011 because the box was crushed")
    assert (run.state, chat.answers(), product.books()["requests"]) == ("waiting", [], [])
    (review,) = chat.reviews()
    rows = card(review)
    assert (review.title, review.button) == ("Refund 5.00 EUR to Ana Silva", "Approve 5.00 EUR")
    assert "Left to refund 35.00 EUR." in rows["Effect"]
    assert rows["Asked by"] == "Tom Becker, through the assistant"
    assert rows["Reason"] == "the box was crushed"
    assert rows["Customer"] == "Ana Silva, good-card@example.com, CUS-1001"
    approve(review)
    run.refresh_from_db()
    assert stop(run) == ("completed", 1, 1)
    assert chat.answer() == receipt("5.00 EUR", "PAY-10011", "35.00 EUR")
    assert sent_back(product, "PAY-10011") == [500]
    pump()
    assert len(chat.answers()) == 1


def test_without_an_amount_all_that_is_left_goes_back(chat: Chat, product: Processor) -> None:
    chat.say("refund PAY-10014")
    approve(chat.reviews()[0])
    assert chat.answer() == receipt("50.00 EUR", "PAY-10014", "0.00 EUR")
    assert sent_back(product, "PAY-10014") == [5000]


@pytest.mark.parametrize("asker", ["agent", "lead", "admin"])
def test_who_asked_cannot_approve_whatever_their_role(
    chats: Callable[[str], Chat], product: Processor, asker: str
) -> None:
    chat = chats(asker)
    chat.say("refund 5.00 of PAY-10011")
    (review,) = chat.reviews()
    with pytest.raises(FourEyes if asker != "agent" else ReviewRefused):
        approve(review, by=asker)
    review.refresh_from_db()
    assert (review.state, product.books()["requests"]) == ("pending", [])
    approve(review, by="lead2")
    assert sent_back(product, "PAY-10011") == [500]


@pytest.mark.parametrize("nobody", ["trainee", "south"])
def test_who_may_not_decide_changes_nothing(chat: Chat, product: Processor, nobody: str) -> None:
    chat.say("refund 5.00 of PAY-10011")
    (review,) = chat.reviews()
    with pytest.raises((ReviewRefused, NotFound)):
        approve(review, by=nobody)
    review.refresh_from_db()
    assert (review.state, product.books()["requests"]) == ("pending", [])


def test_rejected_nothing_moves_and_the_staff_member_reads_why(
    chat: Chat, product: Processor, style: str
) -> None:
    run = chat.say("refund 5.00 of PAY-10011")
    reject(chat.reviews()[0], "The box arrived in order.")
    run.refresh_from_db()
    assert stop(run) == ("policy_block", 1, 1)
    assert chat.answer() == (
        "Refund 5.00 EUR to Ana Silva: rejected by Maria Lopes. Nothing was done. Reason: The box "
        "arrived in order."
    )
    assert (product.books()["requests"], Refund.objects.filter(intent__isnull=False).count()) == (
        [],
        0,
    )


def test_withdrawn_by_who_asked_nothing_moves(chat: Chat, product: Processor) -> None:
    run = chat.say("refund 5.00 of PAY-10011")
    withdraw(chat.reviews()[0])
    run.refresh_from_db()
    assert stop(run)[0] == "policy_block"
    assert "withdrawn by Tom Becker. Nothing was done." in chat.answer()
    assert product.books()["requests"] == []


@pytest.mark.parametrize("first", ["approve", "reject"])
@pytest.mark.parametrize("approved", [0, 1])
def test_of_two_refunds_in_one_message_only_the_approved_one_moves(
    chat: Chat, product: Processor, first: str, approved: int
) -> None:
    run = chat.say("refund 5.00 of PAY-10011 and 3.00 of PAY-10012")
    reviews = chat.reviews()
    assert [review.amount_minor for review in reviews] == [500, 300]
    steps: list[Callable[[], Review]] = [
        lambda: approve(reviews[approved]),
        lambda: reject(reviews[1 - approved], "Once is enough."),
    ]
    for step in steps if first == "approve" else reversed(steps):
        run.refresh_from_db()
        assert (run.state, product.books()["requests"]) == ("waiting", [])
        step()
    run.refresh_from_db()
    assert stop(run) == ("policy_block", 1, 1)
    amounts = ("5.00 EUR", "3.00 EUR")
    headline, refused, made = chat.answer().split("\n\n")
    payment = ("PAY-10011", "PAY-10012")[approved]
    assert headline == (
        f"1 of 2 done: {amounts[approved]} of {payment}; 1 not: Refund {amounts[1 - approved]} to "
        "Ana Silva."
    )
    assert refused.endswith("rejected by Maria Lopes. Nothing was done. Reason: Once is enough.")
    assert made == receipt(amounts[approved], payment, ("35.00 EUR", "22.00 EUR")[approved])
    sent = [sent_back(product, "PAY-10011"), sent_back(product, "PAY-10012")]
    assert sent == ([[500], []] if approved == 0 else [[], [300]])


def test_b02_the_old_amount_after_the_reviewer_lowered_it_is_blocked(
    chat: Chat, product: Processor, script: Script
) -> None:
    asked = {"payment": "PAY-10011", "amount": "20.00", "remaining": "tell the customer"}
    model = script(
        [("refund_request", asked)],
        [("refund_request", {"payment": "pay-10011", "amount": "20,00 EUR"})],
    )
    run = chat.say("refund 20.00 of PAY-10011, then tell the customer")
    approve(chat.reviews()[0], amount="12.00")
    run.refresh_from_db()
    assert stop(run) == ("policy_block", 2, 1)
    first, second = chat.calls()
    assert (first.state, second.state, second.rule) == ("done", "refused", "repeat.changed")
    assert len(chat.reviews()) == 1
    assert sent_back(product, "PAY-10011") == [1200]
    headline, refused, made = chat.answer().split("\n\n")
    assert headline.startswith("1 of 2 done: 12.00 EUR of PAY-10011; 1 not: ")
    assert refused.startswith("A reviewer has already changed and decided this request")
    assert "12.00 EUR of PAY-10011 was refunded to Ana Silva" in made
    assert "20.00 EUR was asked for; the reviewer changed it to 12.00 EUR." in made
    told = model.requests[1][-1]
    assert "12.00 EUR of PAY-10011 was refunded" in told.text
    pump()
    assert sent_back(product, "PAY-10011") == [1200]


def test_b02_with_the_planner_the_answer_names_both_amounts(chat: Chat, product: Processor) -> None:
    run = chat.say("refund 20.00 of PAY-10011")
    approve(chat.reviews()[0], amount="12.00")
    run.refresh_from_db()
    assert stop(run) == ("completed", 1, 1)
    assert "12.00 EUR of PAY-10011 was refunded" in chat.answer()
    assert "20.00 EUR was asked for; the reviewer changed it to 12.00 EUR." in chat.answer()
    assert sent_back(product, "PAY-10011") == [1200]


def test_a_reviewer_cannot_change_it_to_more_than_is_left(chat: Chat, product: Processor) -> None:
    chat.say("refund 5.00 of PAY-10011")
    (review,) = chat.reviews()
    for amount in ("40.01", "6.00"):
        with pytest.raises(ReviewRefused):
            approve(review, amount=amount)
    review.refresh_from_db()
    assert (review.state, review.amount_minor, product.books()["requests"]) == ("pending", 500, [])


def test_b10_every_later_try_to_decide_is_told_who_and_kept(chat: Chat, product: Processor) -> None:
    run = chat.say("refund 5.00 of PAY-10011")
    (review,) = chat.reviews()
    approve(review)
    late_tries: list[Callable[[], Review]] = [
        lambda: approve(review),
        lambda: reject(review, "No."),
        lambda: withdraw(review),
    ]
    for late in late_tries:
        with pytest.raises(AlreadyDecided, match="Maria Lopes"):
            late()
    tries = ReviewDecision.objects.filter(review=review).values_list("decision", "accepted")
    assert list(tries) == [
        ("approve", True),
        ("approve", False),
        ("reject", False),
        ("withdraw", False),
    ]
    run.refresh_from_db()
    assert (stop(run)[0], len(chat.answers())) == ("completed", 1)
    assert sent_back(product, "PAY-10011") == [500]


def test_b33_in_steps_never_more_goes_back_than_was_paid(
    chats: Callable[[str], Chat], product: Processor
) -> None:
    payment_add(10_000, unique="B33A")
    first = chats("agent")
    first.say("refund 99.00 of PAY-B33A")
    approve(first.reviews()[0])
    for amount in ("1.01", "100.00"):
        chat = chats("agent")
        run = chat.say(f"refund {amount} of PAY-B33A")
        assert stop(run) == ("policy_block", 1, 1)
        assert chat.answer() == (
            f"{amount} EUR is more than is left on PAY-B33A: 1.00 EUR can still be refunded. "
            "Nothing was refunded."
        )
        assert chat.reviews() == []
    last = chats("agent")
    last.say("refund 1.00 of PAY-B33A")
    approve(last.reviews()[0])
    assert sent_back(product, "PAY-B33A") == [100, 9900]


def test_b33_what_waits_counts_against_the_rest(
    chats: Callable[[str], Chat], product: Processor
) -> None:
    payment_add(10_000, unique="B33B")
    first, second = chats("agent"), chats("lead")
    first.say("refund 60.00 of PAY-B33B")
    run = second.say("refund 60.00 of PAY-B33B")
    assert stop(run) == ("policy_block", 1, 1)
    assert second.answer() == (
        "60.00 EUR of PAY-B33B already waits for a decision; beside it 40.00 EUR can still be "
        "refunded. Nothing was refunded now."
    )
    approve(first.reviews()[0])
    assert sent_back(product, "PAY-B33B") == [6000]


def test_b33_two_of_one_message_that_exceed_the_payment_are_both_refused_at_once(
    chat: Chat, product: Processor
) -> None:
    """Judged in order; two conversations at once meet the ledger's lock (tests/concurrency)."""
    payment_add(10_000, unique="B33C")
    run = chat.say("refund 60.00 of PAY-B33C and 70.00 of PAY-B33C")
    assert (stop(run)[0], chat.reviews()) == ("policy_block", [])
    assert [call.rule for call in chat.calls()] == ["batch.held", "refund.above_left"]
    refused = chat.calls()[1].content
    assert refused == (
        "60.00 EUR of PAY-B33C is asked for in the same message; beside it 40.00 EUR can still be "
        "refunded, and 70.00 EUR is more. Nothing was refunded."
    )
    assert refused in chat.answer()
    assert (sent_back(product, "PAY-B33C"), Intent.objects.count()) == ([], 0)


def test_b33_two_of_one_message_that_fit_are_both_made(chat: Chat, product: Processor) -> None:
    payment_add(10_000, unique="B33D")
    chat.say("refund 60.00 of PAY-B33D and 40.00 of PAY-B33D")
    for review in chat.reviews():
        approve(review)
    assert sorted(sent_back(product, "PAY-B33D")) == [4000, 6000]


def test_b34_five_hundred_yen_are_five_hundred(chat: Chat, product: Processor, style: str) -> None:
    chat.say("refund 500 JPY of PAY-10061")
    (review,) = chat.reviews()
    assert (review.button, review.amount_minor) == ("Approve 500 JPY", 500)
    approve(review)
    assert "500 JPY of PAY-10061 was refunded to 山田 花子" in chat.answer()
    assert "9399 JPY of this payment is left to refund." in chat.answer()
    assert sent_back(product, "PAY-10061") == [500]


def test_b34_half_a_yen_is_refused_and_the_whole_goes_back(
    chats: Callable[[str], Chat], product: Processor
) -> None:
    half = chats("agent")
    half.say("refund 500.50 JPY of PAY-10061")
    assert (half.reviews(), product.books()["requests"]) == ([], [])
    assert half.outcomes() == [("refund_request", "refund.amount_unclear")]
    whole = chats("agent")
    whole.say("refund PAY-10061")
    approve(whole.reviews()[0])
    assert sent_back(product, "PAY-10061") == [9899]


def test_a_refund_on_a_slow_line_is_checked_and_posted_once_it_is_known(
    chat: Chat, product: Processor
) -> None:
    run = chat.say("refund 5.00 of PAY-10031")
    approve(chat.reviews()[0])
    run.refresh_from_db()
    assert stop(run)[0] == "answered"
    assert chat.answer() == (
        "The refund of 5.00 EUR for PAY-10031 is being checked with the payment processor. You "
        "get a message here when it is settled."
    )
    assert sent_back(product, "PAY-10031") == []
    again = chat.say("refund 5.00 of PAY-10031")
    assert (stop(again)[0], len(chat.reviews()), Intent.objects.count()) == ("answered", 1, 1)
    settle_pump()
    settle_pump()
    reference = Refund.objects.get(payment__reference="PAY-10031").reference
    assert chat.notices() == [f"5.00 EUR of PAY-10031 was refunded. Its reference is {reference}."]
    assert sent_back(product, "PAY-10031") == [500]


def test_a_payment_disputed_after_the_approval_was_asked_for_is_not_refunded(
    chat: Chat, product: Processor
) -> None:
    chat.say("refund 5.00 of PAY-10011")
    Payment.objects.filter(reference="PAY-10011").update(disputed=True)
    with pytest.raises(ReviewRefused, match="has been disputed at the bank"):
        approve(chat.reviews()[0])
    assert product.books()["requests"] == []


def test_a_right_lost_after_the_approval_is_missed_when_it_would_run(
    chat: Chat, product: Processor
) -> None:
    run = chat.say("refund 5.00 of PAY-10011")
    review_approve(review_id=chat.reviews()[0].pk, actor=person("lead"), channel="desk")
    chat.owner.groups.set([Group.objects.get(name="Trainees")])
    pump()
    run.refresh_from_db()
    assert stop(run) == ("policy_block", 1, 1)
    assert chat.calls()[0].state == "refused"
    assert product.books()["requests"] == []
    assert not person("agent").has_perm("payments.request_refund")


def test_b58_a_message_during_a_review_is_its_own_run_and_touches_nothing(
    chat: Chat, product: Processor, style: str
) -> None:
    first = chat.say("refund 5.00 of PAY-10011")
    (review,) = chat.reviews()
    second = chat.say("what is the status?")
    assert (second.state, stop(second)[0]) == ("done", "answered")
    assert "waits for a person's approval" in chat.answer()
    third = chat.say("refund 2.00 of PAY-10011")
    first.refresh_from_db()
    review.refresh_from_db()
    assert (first.state, third.state, review.state) == ("waiting", "waiting", "pending")
    approve(review)
    first.refresh_from_db()
    third.refresh_from_db()
    assert (stop(first)[0], third.state) == ("completed", "waiting")
    assert sent_back(product, "PAY-10011") == [500]
    reject(chat.reviews()[1], "Once is enough.")
    third.refresh_from_db()
    assert stop(third)[0] == "policy_block"
    assert sent_back(product, "PAY-10011") == [500]
    assert [role for role, _text in chat.lines()] == [
        "staff",
        "staff",
        "assistant",
        "staff",
        "assistant",
        "assistant",
    ]
    assert chat.say("find CUS-1001").state == "done"


def test_a_review_left_alone_expires_and_nothing_is_done(chat: Chat, product: Processor) -> None:
    run = chat.say("refund 5.00 of PAY-10011")
    with connection.cursor() as cursor:
        cursor.execute("UPDATE reviews_review SET expires_at = now() - interval '1 second'")
    assert reviews_expire() == 1
    pump()
    run.refresh_from_db()
    assert stop(run)[0] == "policy_block"
    assert "nobody decided in time" in chat.answer()
    assert product.books()["requests"] == []
    assert Run.objects.filter(state="waiting").count() == 0
