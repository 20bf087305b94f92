"""A refund that is checked, joined, or whose call runs again: paid once, and told as it is."""

from uuid import uuid4

from django.contrib.auth.models import User

from payments.models import Intent, Refund
from payments.services import intent_settle
from tests.payments.assistant.stage import Conversation, notices, paid_ref
from tests.payments.processor import Processor


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


def test_a_replay_after_the_right_was_lost_still_says_what_was_done(
    talk: Conversation, lead: User, processor: Processor
) -> None:
    """The worker died after the refund was made, and the requester's role changed meanwhile."""
    talk.say("refund 5.00 of PAY-10011 and 6.00 of PAY-10012")
    made = talk.ask("refund_request", payment="PAY-10011", amount="5.00")
    waits = talk.ask("refund_request", payment="PAY-10012", amount="6.00")
    talk.approved(made, lead)
    talk.approved(waits, lead)
    first = talk.act("refund_request", made)
    talk.user.groups.clear()
    assert talk.act("refund_request", made) == first
    assert first[1]["code"] == "refund.completed"
    # What had not begun is refused, and so is what would only join.
    assert talk.act("refund_request", waits)[1]["code"] == "right.missing"
    assert talk.gated("refund_request", payment="PAY-10012").record.rule == "right.missing"
    assert processor.refunded(paid_ref("PAY-10011")) == [500]
    assert processor.refunded(paid_ref("PAY-10012")) == []
