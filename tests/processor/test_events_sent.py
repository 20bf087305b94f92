"""The sandbox tells of what happens, signed as Stripe signs, until it is heard."""

from __future__ import annotations

import stripe

from payments.sandbox.tokens import REFUND_PENDING, earlier_ref
from tests.payments.processor import Processor
from tests.payments.test_sandbox import charge, refund
from tests.processor.listening import Listener, listening

SECRET = "whsec_of_a_test"


def kinds(listener: Listener, count: int) -> list[str]:
    """Wait for so many events and name their kinds."""
    return [event["type"] for event in listener.wait(count)]


def test_nothing_is_told_unless_somebody_wants_to_hear_it(processor: Processor) -> None:
    charge(processor)
    assert processor.books()["events"] == []


def test_every_change_is_told_in_order_and_signed(processor: Processor) -> None:
    with listening() as listener:
        processor.hook(listener.url, SECRET)
        charge(processor)
        charge(processor, "declined")
        made = refund(processor, earlier_ref("a", 10_000, "EUR"), 4_000).json()
        processor.refund_ends(made["id"], "failed", "declined")
        disputed = processor.dispute(earlier_ref("b", 10_000, "EUR"))
        processor.dispute_ends(disputed, "won")
        assert kinds(listener, 11) == [
            "payment_intent.succeeded",
            "payment_intent.payment_failed",
            "charge.refunded",
            "refund.created",
            "refund.updated",
            "charge.refund.updated",
            "refund.failed",
            "charge.dispute.created",
            "charge.dispute.funds_withdrawn",
            "charge.dispute.closed",
            "charge.dispute.funds_reinstated",
        ]
        for raw, signature in listener.signed:
            assert stripe.WebhookSignature.verify_header(raw.decode(), signature, SECRET, 300)
        failed = listener.bodies[6]["data"]["object"]
        assert (failed["status"], failed["failure_reason"]) == ("failed", "declined")


def test_an_event_that_is_not_taken_is_sent_again_until_it_is(processor: Processor) -> None:
    with listening(500, 400, 302) as listener:
        processor.hook(listener.url, SECRET)
        charge(processor)
        sent = listener.wait(4)
    assert len({event["id"] for event in sent}) == 1
    told = processor.books()["events"]
    assert len(told) == 1


def test_repeats_and_another_order_are_played_when_a_test_asks(processor: Processor) -> None:
    with listening() as listener:
        processor.hook(listener.url, SECRET)
        processor.hook_play(held=1, backwards=1, copies=2)
        made = refund(
            processor, earlier_ref("a", 10_000, "EUR", fault=REFUND_PENDING), 4_000
        ).json()
        processor.refund_ends(made["id"], "succeeded")
        assert listener.bodies == []
        processor.hook_play(held=0)
        assert kinds(listener, 6) == [
            *["charge.refund.updated"] * 2,
            *["refund.updated"] * 2,
            *["refund.created"] * 2,
        ]
