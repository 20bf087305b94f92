"""What bounds a refund: what is left of the payment, the person's day, and what waits of both."""

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from agent_core.gate import Gated
from payments.models import Refund
from reviews.errors import ChangeRefused, Stale
from reviews.models import Review
from reviews.services import review_raise, review_reject
from tests.payments.assistant.stage import Conversation, paid_ref
from tests.payments.processor import Processor


def test_what_waits_counts_for_a_new_request(talk: Conversation) -> None:
    talk.say("refund PAY-10011")
    talk.ask("refund_request", payment="PAY-10011", amount="30.00")
    blocked = talk.gated("refund_request", payment="PAY-10011", amount="10.01")
    assert (blocked.record.verdict, blocked.record.rule) == ("block", "refund.above_left")
    assert blocked.record.content == (
        "30.00 EUR of PAY-10011 already waits for a decision; beside it 10.00 EUR can still be "
        "refunded. Nothing was refunded now."
    )
    rest = talk.ask("refund_request", payment="PAY-10011")
    assert rest.amount_minor == 1000


def test_of_two_approved_only_what_is_left_passes_and_the_rest_can_be_asked_again(
    talk: Conversation, lead: User, processor: Processor
) -> None:
    """Both are judged at once in two runs, so neither waits yet for the other one (B33)."""
    talk.say("refund 30.00 of PAY-10011, twice")
    gated = [talk.gated("refund_request", payment="PAY-10011", amount="30.00") for _ in range(2)]
    both = [talk.stored(item) for item in gated]
    for review in both:
        talk.approved(review, lead)
    assert talk.act("refund_request", both[0])[1]["code"] == "refund.completed"
    content, artifact = talk.act("refund_request", both[1])
    assert artifact == {"reason": "policy_block", "code": "refund.above_left"}
    assert content == (
        "30.00 EUR is more than is left on PAY-10011: 10.00 EUR can still be refunded. "
        "Nothing was refunded."
    )
    assert processor.refunded(paid_ref("PAY-10011")) == [3000]
    # The approval that was never used must not hold the rest back.
    assert talk.ask("refund_request", payment="PAY-10011").amount_minor == 1000


def test_an_approval_of_all_that_was_left_stays_at_its_amount(
    talk: Conversation, lead: User, processor: Processor
) -> None:
    """More is left by the time of sending, because a request that waited was rejected."""
    talk.say("refund PAY-10011")
    first = talk.ask("refund_request", payment="PAY-10011", amount="10.00")
    rest = talk.ask("refund_request", payment="PAY-10011")
    assert rest.amount_minor == 3000
    talk.approved(rest, lead)
    review_reject(review_id=first.pk, actor=lead, channel="desk", sentence="Not this one.")
    content, _artifact = talk.act("refund_request", rest)
    assert "30.00 EUR of PAY-10011 was refunded" in content
    assert processor.refunded(paid_ref("PAY-10011")) == [3000]


def test_the_daily_limit_counts_what_waits_and_what_was_sent(
    talk: Conversation, lead: User
) -> None:
    talk.say("refund PAY-10013")
    blocked = talk.gated("refund_request", payment="PAY-10013")
    assert (blocked.record.verdict, blocked.record.rule) == ("block", "refund.daily_limit")
    assert "500.00 EUR is still free today" in blocked.record.content
    waiting = talk.ask("refund_request", payment="PAY-10013", amount="460.00")
    assert talk.gated("refund_request", payment="PAY-10011", amount="40.01").record.rule == (
        "refund.above_left"
    )
    assert talk.gated("refund_request", payment="PAY-10011", amount="40.00").record.verdict == (
        "review"
    )
    talk.approved(waiting, lead)
    assert talk.act("refund_request", waiting)[1]["code"] == "refund.completed"
    again = talk.gated("refund_request", payment="PAY-10013", amount="40.01")
    assert (again.record.verdict, again.record.rule) == ("block", "refund.daily_limit")
    assert "40.00 EUR is still free today" in again.record.content
    assert Refund.objects.filter(requested_by=talk.user).count() == 1


def part(payment: str, amount: str) -> dict[str, str]:
    """Return the arguments of one refund."""
    return {"payment": payment, "amount": amount}


def ruled(gated: list[Gated]) -> list[tuple[str, str]]:
    """Return verdict and rule of each call."""
    return [(item.record.verdict, item.record.rule) for item in gated]


def test_two_refunds_of_one_message_do_not_both_count_on_the_same_rest(talk: Conversation) -> None:
    talk.say("refund 25.00 and 20.00 of PAY-10011")
    first, second = talk.gated_together(
        "refund_request", part("PAY-10011", "25.00"), part("PAY-10011", "20.00")
    )
    assert ruled([first, second]) == [("block", "batch.held"), ("block", "refund.above_left")]
    assert second.record.content == (
        "25.00 EUR of PAY-10011 is asked for in the same message; beside it 15.00 EUR can still be "
        "refunded, and 20.00 EUR is more. Nothing was refunded."
    )
    assert Review.objects.count() == 0


def test_two_refunds_of_one_message_that_fit_wait_and_the_cards_count_down(
    talk: Conversation,
) -> None:
    talk.say("refund 25.00 and the rest of PAY-10011")
    gated = talk.gated_together("refund_request", part("PAY-10011", "25.00"), part("PAY-10011", ""))
    assert ruled(gated) == [("review", "refund.always")] * 2
    assert [talk.stored(item).amount_minor for item in gated] == [2500, 1500]
    left = [item.record.proposal.card[1]["text"] for item in gated if item.record.proposal]
    assert "Left to refund 15.00 EUR." in left[0]
    assert "Left to refund 0.00 EUR." in left[1]


def test_refunds_of_two_payments_of_one_message_count_for_the_day_together(
    talk: Conversation, settings: Any
) -> None:
    settings.REFUND_DAILY_LIMIT = {"EUR": 1000}
    talk.say("refund 6.00 of PAY-10011 and 4.01 of PAY-10012")
    calls = [part("PAY-10011", "6.00"), part("PAY-10012", "4.01")]
    gated = talk.gated_together("refund_request", *calls)
    assert ruled(gated)[1] == ("block", "refund.daily_limit")
    assert "4.00 EUR is still free today" in gated[1].record.content
    calls[1]["amount"] = "4.00"
    gated = talk.gated_together("refund_request", *calls)
    assert ruled(gated) == [("review", "refund.always")] * 2


def test_a_gate_that_runs_again_judges_its_batch_as_before(talk: Conversation) -> None:
    """The worker died between storing the reviews and the checkpoint behind them."""
    talk.say("refund 25.00 and 15.00 of PAY-10011")
    gated = talk.gated_together(
        "refund_request", part("PAY-10011", "25.00"), part("PAY-10011", "15.00")
    )
    for item in gated:
        talk.stored(item)
    calls = [
        {
            "id": item.record.id,
            "position": item.record.position,
            "tool": item.record.tool,
            "arguments": item.record.arguments,
        }
        for item in gated
    ]
    assert ruled(talk.gated_again(calls)) == ruled(gated) == [("review", "refund.always")] * 2
    # For everybody else they wait.
    assert talk.gated("refund_request", payment="PAY-10011").record.rule == "refund.above_left"


def raised(review: Review, lead: User, amount: str) -> Review:
    """Have a reviewer ask for more."""
    return review_raise(review_id=review.pk, actor=lead, channel="desk", changes={"amount": amount})


def stands(review: Review) -> tuple[str, int | None, int]:
    """Return what is stored of the review."""
    review.refresh_from_db()
    return review.state, review.amount_minor, review.version


def test_a_raise_is_gated_like_a_request_of_that_amount(
    talk: Conversation, lead: User, settings: Any
) -> None:
    settings.REFUND_DAILY_LIMIT = {"EUR": 1000}
    talk.say("refund 5.00 of PAY-10011")
    review = talk.ask("refund_request", payment="PAY-10011", amount="5.00")
    with pytest.raises(ChangeRefused) as refused:
        raised(review, lead, "20.00")
    assert str(refused.value) == (
        "Tom Becker, who asked, would be told: With 20.00 EUR more, your refunds today would be "
        "above your daily limit of 10.00 EUR. 10.00 EUR is still free today. Nothing was refunded."
    )
    assert stands(review) == ("pending", 500, 1)
    assert raised(review, lead, "10.00").amount_minor == 1000


def test_a_raise_counts_what_waits_of_the_person_and_of_the_payment(
    talk: Conversation, lead: User, settings: Any
) -> None:
    settings.REFUND_DAILY_LIMIT = {"EUR": 3000}
    talk.say("refund PAY-10011")
    review = talk.ask("refund_request", payment="PAY-10011", amount="5.00")
    talk.ask("refund_request", payment="PAY-10012", amount="15.00")
    with pytest.raises(ChangeRefused, match=r"15.00 EUR is still free today"):
        raised(review, lead, "15.01")
    settings.REFUND_DAILY_LIMIT = {}
    talk.ask("refund_request", payment="PAY-10011", amount="30.00")
    with pytest.raises(ChangeRefused, match=r"30.00 EUR of PAY-10011 already waits"):
        raised(review, lead, "10.01")
    assert stands(review) == ("pending", 500, 1)
    assert raised(review, lead, "10.00").amount_minor == 1000


def test_nothing_is_approved_that_would_be_blocked_a_moment_later(
    talk: Conversation, lead: User, settings: Any
) -> None:
    talk.say("refund 5.00 of PAY-10011")
    review = talk.ask("refund_request", payment="PAY-10011", amount="5.00")
    settings.REFUND_DAILY_LIMIT = {"EUR": 499}
    with pytest.raises(Stale, match=r"4.99 EUR is still free today"):
        talk.approved(review, lead)
    settings.REFUND_DAILY_LIMIT = {"EUR": 500}
    talk.user.groups.clear()
    with pytest.raises(Stale) as refused:
        talk.approved(review, lead)
    assert str(refused.value) == (
        "Tom Becker, who asked, would be told: Your role may not ask for refunds. "
        "Nothing was refunded."
    )
    assert stands(review) == ("pending", 500, 1)


def test_what_waits_beside_it_does_not_stop_an_approval(talk: Conversation, lead: User) -> None:
    """First approved, first made: only when asking does what waits count."""
    talk.say("refund PAY-10011")
    first = talk.ask("refund_request", payment="PAY-10011", amount="30.00")
    talk.ask("refund_request", payment="PAY-10011", amount="10.00")
    Review.objects.filter(pk=first.pk).update(created_at=timezone.now() - timedelta(minutes=1))
    assert talk.approved(first, lead).state == "approved"
