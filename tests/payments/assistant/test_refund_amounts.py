"""Amounts of a refund as people and models write them: exact to the last digit, or asked back."""

import pytest
from django.contrib.auth.models import User

from payments.models import Intent, Payment
from reviews.models import Review
from tests.payments.assistant.stage import Conversation
from tests.payments.processor import Processor


@pytest.mark.parametrize(
    ("amount", "minor"), [("", 9899), ("9,899", 9899), ("500", 500), ("¥500", 500)]
)
def test_yen_reach_the_processor_as_they_were_read(
    talk: Conversation, lead: User, processor: Processor, amount: str, minor: int
) -> None:
    talk.say("refund PAY-10061")
    review = talk.ask("refund_request", payment="PAY-10061", amount=amount)
    assert (review.title, review.button) == (
        f"Refund {minor} JPY to 山田 花子",
        f"Approve {minor} JPY",
    )
    talk.approved(review, lead)
    content, _artifact = talk.act("refund_request", review)
    paid = Payment.objects.get(reference="PAY-10061")
    assert f"{minor} JPY of PAY-10061 was refunded" in content
    assert processor.refunded(paid.processor_ref) == [minor]


@pytest.mark.parametrize("amount", ["500.50", "5.00", "abc", "1e2", "0", "-5", "12.000"])
def test_an_unclear_amount_of_yen_is_asked_back_and_nothing_waits(
    talk: Conversation, amount: str
) -> None:
    talk.say("refund PAY-10061")
    assert talk.gated("refund_request", payment="PAY-10061", amount=amount).record.proposal is None
    content, artifact = talk.run("refund_request", payment="PAY-10061", amount=amount)
    assert (artifact["reason"], artifact["code"]) == ("transient", "refund.amount_unclear")
    assert "JPY" in content or "above zero" in content
    assert not Review.objects.exists()
    assert not Intent.objects.exists()


@pytest.mark.parametrize(("number", "minor"), [(19.99, 1999), (8.29, 829), (0.29, 29), (5, 500)])
def test_a_number_from_the_model_keeps_every_cent(
    talk: Conversation, number: float, minor: int
) -> None:
    talk.say("refund some of PAY-10011")
    review = talk.ask("refund_request", payment="PAY-10011", amount=number)  # type: ignore[arg-type]
    assert review.amount_minor == minor
