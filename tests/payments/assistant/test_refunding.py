"""A refund from the staff member's wish to the receipt: gate, card, decision, ledger, sandbox."""

from typing import Any

import pytest
from django.contrib.auth.models import User

from payments.models import Intent, Payment, Refund
from reviews.errors import ChangeRefused, FourEyes, ReviewRefused, Stale
from reviews.models import Review
from reviews.services import review_raise
from tests.payments.assistant.stage import Conversation, paid_ref
from tests.payments.processor import Processor


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
        "40.01 EUR is more than is left on PAY-10011: 40.00 EUR can still be refunded. "
        "Nothing was refunded."
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
