"""What bounds a refund: what is left of the payment, the person's day, and what waits of both."""

from uuid import UUID

from django.contrib.auth.models import User

from payments.models import Refund
from reviews.services import review_propose, review_reject
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
    """Both stand in one batch, so neither waits yet when the other is gated (B33)."""
    talk.say("refund 30.00 of PAY-10011, twice")
    gated = [talk.gated("refund_request", payment="PAY-10011", amount="30.00") for _ in range(2)]
    both = []
    for item in gated:
        assert item.record.proposal is not None
        both.append(
            review_propose(
                run_id=talk.run_id,
                call_id=UUID(item.record.id),
                conversation_id=talk.id,
                requester=talk.user,
                proposal=item.record.proposal,
                arguments=item.record.arguments,
            )
        )
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
