"""A refund from the staff member's wish to the receipt: gate, card, decision, ledger, sandbox."""

from typing import Any
from uuid import UUID, uuid4

import pytest
from django.contrib.auth.models import User

from payments.models import Intent, Payment, Refund
from payments.services import intent_settle
from reviews.errors import ChangeRefused, FourEyes, ReviewRefused, Stale
from reviews.models import Review
from reviews.services import review_propose, review_raise, review_reject
from tests.payments.assistant.stage import Conversation, notices
from tests.payments.processor import Processor


def paid_ref(reference: str) -> str:
    """Return the processor's name of a payment."""
    return str(Payment.objects.values_list("processor_ref", flat=True).get(reference=reference))


def row(review: Review, label: str) -> str:
    """Return the text of one row of the card."""
    return str(next(line["text"] for line in review.card if line["label"] == label))


def test_a_part_is_refunded_once_and_the_receipt_says_it_all(
    talk: Conversation, lead: User, processor: Processor
) -> None:
    talk.say("refund 5.00 of PAY-10011, the box was crushed")
    review = talk.ask(
        "refund_request", payment="PAY-10011", amount="5.00", reason="the box was crushed"
    )
    assert not Intent.objects.exists()
    talk.approved(review, lead)
    content, artifact = talk.act("refund_request", review)
    refund = Refund.objects.get(payment__reference="PAY-10011")
    assert content == (
        f"{refund.reference}: 5.00 EUR of PAY-10011 was refunded to Ana Silva, to Visa ending in "
        "4242. 35.00 EUR of this payment is left to refund."
    )
    assert (artifact["reason"], artifact["stop"], artifact["code"]) == (
        "completed",
        True,
        "refund.completed",
    )
    assert artifact["data"]["summary"] == "5.00 EUR of PAY-10011"
    assert (refund.amount_minor, refund.state, refund.reason) == (
        500,
        "succeeded",
        "the box was crushed",
    )
    assert processor.refunded(paid_ref("PAY-10011")) == [500]


def test_the_card_says_in_order_what_a_reviewer_needs(talk: Conversation) -> None:
    talk.say("refund 5.00 of PAY-10014")
    review = talk.ask("refund_request", payment="PAY-10014", amount="5.00", reason="damaged")
    assert (review.title, review.button) == ("Refund 5.00 EUR to Ana Silva", "Approve 5.00 EUR")
    assert [line["label"] for line in review.card[:6]] == [
        "Why you",
        "Effect",
        "Watch",
        "Asked by",
        "Reason",
        "Customer",
    ]
    day = Payment.objects.get(reference="PAY-10014").paid_at.date().isoformat()
    assert row(review, "Why you") == "Every refund needs a second person, whatever its amount."
    assert row(review, "Effect") == (
        f"Payment PAY-10014, 60.00 EUR, of {day}. Refunded so far 10.00 EUR, after this 15.00 "
        "EUR. Left to refund 45.00 EUR. Goes back to Visa ending in 4242."
    )
    assert row(review, "Watch") == "No other refund lately, no dispute."
    assert row(review, "Asked by") == "Tom Becker, through the assistant"
    assert row(review, "Reason") == "damaged"
    assert row(review, "Customer") == "Ana Silva, good-card@example.com, CUS-1001"
    assert row(review, "Payment named") == "PAY-10014: in the staff member's words"
    assert row(review, "Amount named") == "5.00: in the staff member's words"
    assert row(review, "Reason named") == "damaged: not in the staff member's words"
    assert review.fields == {"amount": "5.00", "reason": "damaged"}
    assert (review.amount_minor, review.currency) == (500, "EUR")


def test_the_card_warns_of_other_refunds_and_disputes(talk: Conversation, lead: User) -> None:
    talk.say("refund 5.00 of PAY-10011")
    first = talk.ask("refund_request", payment="PAY-10011", amount="5.00")
    talk.approved(first, lead)
    talk.act("refund_request", first)
    Payment.objects.filter(reference="PAY-10012").update(disputed=True)
    second = talk.ask("refund_request", payment="PAY-10011", amount="6.00")
    reference = Refund.objects.get(amount_minor=500).reference
    day = Refund.objects.get(amount_minor=500).created_at.date().isoformat()
    assert second.warnings == [
        f"1 refund to this customer in the last 30 days: {reference} 5.00 EUR ({day})",
        "1 payment of this customer is disputed at the bank.",
    ]


def test_nothing_moves_without_an_approval_even_past_the_gate(
    talk: Conversation, processor: Processor
) -> None:
    talk.say("refund PAY-10011")
    content, artifact = talk.run("refund_request", payment="PAY-10011", amount="5.00")
    assert (artifact["reason"], artifact["code"]) == ("policy_block", "review.missing")
    assert content == "PAY-10011: Nobody has approved this, so nothing was moved."
    review = talk.ask("refund_request", payment="PAY-10011", amount="5.00")
    content, artifact = talk.act("refund_request", review)
    assert artifact["reason"] == "policy_block"
    assert not Intent.objects.exists()
    assert processor.asked("POST /v1/refunds") == 0


def test_an_approval_does_not_pay_another_payment(
    talk: Conversation, lead: User, processor: Processor
) -> None:
    talk.say("refund 5.00 of PAY-10011")
    review = talk.ask("refund_request", payment="PAY-10011", amount="5.00")
    talk.approved(review, lead)
    Review.objects.filter(pk=review.pk).update(
        original={"payment": "PAY-10012", "amount": "5.00", "reason": ""}
    )
    content, artifact = talk.act("refund_request", review)
    assert (artifact["reason"], artifact["code"]) == ("policy_block", "review.missing")
    assert content == "No approval allows exactly this for PAY-10012, so nothing was moved."
    assert processor.asked("POST /v1/refunds") == 0


def test_a_lowered_amount_is_what_is_paid_and_what_the_chat_says(
    talk: Conversation, lead: User, processor: Processor
) -> None:
    talk.say("refund 8.00 of PAY-10011")
    review = talk.ask("refund_request", payment="PAY-10011", amount="8.00")
    talk.approved(review, lead, {"amount": "5,00"})
    content, _artifact = talk.act("refund_request", review)
    assert "5.00 EUR of PAY-10011 was refunded" in content
    assert "8.00 EUR was asked for; the reviewer changed it to 5.00 EUR." in content
    assert processor.refunded(paid_ref("PAY-10011")) == [500]
    review.refresh_from_db()
    assert (review.title, review.button) == ("Refund 5.00 EUR to Ana Silva", "Approve 5.00 EUR")
    assert row(review, "Why you") == "Every refund needs a second person, whatever its amount."
    assert row(review, "Asked by") == "Tom Becker, through the assistant"
    assert row(review, "Amount named") == "8.00: in the staff member's words"


def test_another_reason_is_stored_with_the_refund(talk: Conversation, lead: User) -> None:
    talk.say("refund 8.00 of PAY-10011")
    review = talk.ask("refund_request", payment="PAY-10011", amount="8.00", reason="late")
    talk.approved(review, lead, {"reason": "arrived late"})
    talk.act("refund_request", review)
    assert Refund.objects.get(amount_minor=800).reason == "arrived late"


@pytest.mark.parametrize(
    "changes",
    [
        {"amount": "abc"},
        {"amount": ""},
        {"amount": None},
        {"amount": 7},
        {"amount": "0"},
        {"amount": "-1"},
        {"amount": "1.005"},
        {"amount": "1e1"},
        {"amount": "25,000"},
        {"amount": "8.01"},
        {"amount": "40.01"},
        {"payment": "PAY-10012"},
        {"customer": "CUS-1002"},
        {"amount": "5.00", "payment": "PAY-10012"},
    ],
)
def test_no_other_change_is_taken_and_the_review_stays_open(
    talk: Conversation, lead: User, changes: dict[str, Any]
) -> None:
    talk.say("refund 8.00 of PAY-10011")
    review = talk.ask("refund_request", payment="PAY-10011", amount="8.00")
    with pytest.raises(ChangeRefused):
        talk.approved(review, lead, changes)
    review.refresh_from_db()
    assert (review.state, review.amount_minor, review.version) == ("pending", 800, 1)
    assert review.decisions.filter(accepted=False).count() == 1


@pytest.mark.parametrize(("text", "minor"), [("7", 700), ("7.5", 750), ("7,50", 750)])
def test_clean_money_text_is_taken_however_it_is_written(
    talk: Conversation, lead: User, text: str, minor: int
) -> None:
    talk.say("refund 8.00 of PAY-10011")
    review = talk.ask("refund_request", payment="PAY-10011", amount="8.00")
    assert talk.approved(review, lead, {"amount": text}).amount_minor == minor


def test_a_raise_goes_up_to_what_is_left_and_waits_for_somebody_else(
    talk: Conversation, lead: User, processor: Processor
) -> None:
    talk.say("refund 8.00 of PAY-10011")
    review = talk.ask("refund_request", payment="PAY-10011", amount="8.00")
    with pytest.raises(ChangeRefused) as refused:
        review_raise(review_id=review.pk, actor=lead, channel="desk", changes={"amount": "40.01"})
    assert str(refused.value) == (
        "40.01 EUR is more than is left on PAY-10011: 40.00 EUR can still be refunded."
    )
    review_raise(review_id=review.pk, actor=lead, channel="desk", changes={"amount": "40.00"})
    review.refresh_from_db()
    assert (review.state, review.amount_minor, review.editor) == ("pending", 4000, lead)
    with pytest.raises(FourEyes):
        talk.approved(review, lead)
    talk.approved(review, User.objects.get(username="lead2"))
    assert talk.act("refund_request", review)[1]["code"] == "refund.completed"
    assert processor.refunded(paid_ref("PAY-10011")) == [4000]


def test_what_was_refunded_meanwhile_makes_a_request_stale(talk: Conversation, lead: User) -> None:
    talk.say("refund PAY-10012")
    first = talk.ask("refund_request", payment="PAY-10012", amount="20.00")
    paid = Payment.objects.get(reference="PAY-10012")
    Refund.objects.create(
        reference="REF-OUTSIDE", payment=paid, amount_minor=1000, currency="EUR", state="succeeded"
    )
    with pytest.raises(Stale) as refused:
        talk.approved(first, lead)
    assert str(refused.value) == (
        "PAY-10012 changed since this was asked: 15.00 EUR can still be refunded. Lower the "
        "amount or reject the request."
    )
    assert talk.approved(first, lead, {"amount": "15.00"}).amount_minor == 1500


def test_a_dispute_meanwhile_stops_the_approval(talk: Conversation, lead: User) -> None:
    talk.say("refund PAY-10012")
    review = talk.ask("refund_request", payment="PAY-10012")
    Payment.objects.filter(reference="PAY-10012").update(disputed=True)
    with pytest.raises(ReviewRefused, match="disputed at the bank since this was asked"):
        talk.approved(review, lead)


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


def test_a_disputed_payment_is_blocked_at_the_gate(
    talk: Conversation, processor: Processor
) -> None:
    talk.say("refund PAY-10051")
    blocked = talk.gated("refund_request", payment="PAY-10051")
    assert (blocked.record.verdict, blocked.record.rule) == ("block", "payment.disputed")
    assert "PAY-10051 is disputed at the bank" in blocked.record.content
    # The customer's other payment is not disputed.
    assert talk.gated("refund_request", payment="PAY-10052").record.verdict == "review"
    assert processor.asked("POST /v1/refunds") == 0


def test_a_slow_processor_is_being_checked_and_settles_with_one_refund(
    talk: Conversation, lead: User, processor: Processor
) -> None:
    """The processor commits and then hangs: the line is cut, the outcome unknown, then found."""
    talk.say("refund 5.00 of PAY-10021")
    review = talk.ask("refund_request", payment="PAY-10021", amount="5.00")
    talk.approved(review, lead)
    content, artifact = talk.act("refund_request", review)
    assert (artifact["reason"], artifact["code"]) == ("transient", "refund.being_checked")
    assert content == (
        "The refund of 5.00 EUR for PAY-10021 is being checked with the payment processor. "
        "You get a message here when it is settled."
    )
    # The same wish again joins it: no review, no second request to the processor.
    again = talk.gated("refund_request", payment="PAY-10021", amount="5.00")
    assert (again.record.verdict, again.record.rule) == ("allow", "refund.attaches")
    assert talk.run("refund_request", payment="PAY-10021", amount="5")[1]["reason"] == "transient"
    assert processor.asked("POST /v1/refunds") == 1
    intent = Intent.objects.get()
    Intent.objects.update(next_try_at=intent.created_at)
    assert intent_settle(intent_id=intent.pk) is True
    assert processor.refunded(paid_ref("PAY-10021")) == [500]
    reference = Refund.objects.get(intent=intent).reference
    texts = {text for _id, text in notices}
    assert len(texts) == 1
    text = texts.pop()
    assert text.startswith("5.00 EUR of PAY-10021 was refunded.")
    assert reference in text


def test_a_refund_that_was_joined_is_told_as_made_already(
    talk: Conversation, lead: User, processor: Processor
) -> None:
    """The second call joins what is being checked, and runs again once that has settled."""
    talk.say("refund 5.00 of PAY-10021")
    review = talk.ask("refund_request", payment="PAY-10021", amount="5.00")
    talk.approved(review, lead)
    talk.act("refund_request", review)
    joined = uuid4()
    talk.run("refund_request", joined, payment="PAY-10021", amount="5.00")
    intent = Intent.objects.get()
    Intent.objects.update(next_try_at=intent.created_at)
    assert intent_settle(intent_id=intent.pk) is True
    content, artifact = talk.run("refund_request", joined, payment="PAY-10021", amount="5.00")
    refund = Refund.objects.select_related("payment__customer").get(intent=intent)
    assert content.startswith(
        f"{refund.reference}: 5.00 EUR of PAY-10021 was already refunded to "
        f"{refund.payment.customer.name}, to "
    )
    assert "Nothing was refunded again." in content
    assert artifact["already_applied"] is True
    made, artifact = talk.act("refund_request", review)
    assert "5.00 EUR of PAY-10021 was refunded to" in made
    assert artifact["already_applied"] is False
    assert processor.refunded(paid_ref("PAY-10021")) == [500]


def test_a_replay_of_the_call_gives_the_first_result_past_gate_and_limit(
    talk: Conversation, lead: User, processor: Processor
) -> None:
    """The worker died after the refund was made: the same call runs again from its checkpoint."""
    talk.say("refund PAY-10011")
    review = talk.ask("refund_request", payment="PAY-10011")
    talk.approved(review, lead)
    first = talk.act("refund_request", review)
    again = talk.act("refund_request", review)
    assert again == first
    assert again[1]["already_applied"] is False
    assert processor.refunded(paid_ref("PAY-10011")) == [4000]


def test_the_identity_of_a_refund_is_the_payment_and_the_amount(talk: Conversation) -> None:
    def identity(**arguments: str) -> str:
        return talk.gated("refund_request", **arguments).record.identity

    talk.say("refund PAY-10011")
    one = identity(payment="PAY-10011", amount="5.00", reason="late")
    assert identity(payment=" pay-10011", amount="€5,00") == one
    assert identity(payment="#10011", amount="5") == one
    assert identity(payment="PAY-10011", amount="5.01") != one
    assert identity(payment="PAY-10011") != one
    assert identity(payment="PAY-10012", amount="5.00") != one
