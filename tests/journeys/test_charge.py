"""Charge: a receipt ends the turn, a slow line is checked, a decline is final."""

from collections.abc import Callable

import pytest

from payments.models import Intent, Invoice, Payment
from reviews.errors import ReviewRefused
from tests.journeys.chat import Chat, approve, outcome, pump, reject, settle_pump, state_of, stop
from tests.payments.processor import Processor


def keys(product: Processor) -> list[str]:
    """Return the idempotency keys under which charges reached the processor."""
    rows = product.books()["requests"]
    return [row["key"] for row in rows if row["route"] == "POST /v1/payment_intents"]


def test_a_receipt_ends_the_turn_and_saves_a_model_call(
    chat: Chat, product: Processor, style: str
) -> None:
    run = chat.say("charge INV-1001")
    payment = Payment.objects.get(invoice__reference="INV-1001")
    assert stop(run) == ("completed", 1, 1)
    assert chat.answer() == (
        f"{payment.reference}: 25.00 EUR was charged to Ana Silva for INV-1001, with Visa ending "
        "in 4242."
    )
    assert state_of("INV-1001") == ("paid", [])
    assert (payment.amount_minor, payment.currency, product.charged()) == (2500, "EUR", [2500])


def test_charging_a_paid_invoice_again_gives_the_first_receipt_and_says_so(
    chats: Callable[[str], Chat], product: Processor
) -> None:
    first, second = chats("agent"), chats("agent")
    first.say("charge INV-1001")
    second.say("charge INV-1001")
    (call,) = second.calls()
    assert outcome(call)["already_applied"] is True
    assert second.answer() == (
        first.answer().replace("was charged", "was already charged") + " Nothing was charged again."
    )
    assert (len(keys(product)), product.charged()) == (1, [2500])


def test_an_invoice_named_by_its_customer_only_is_confirmed_by_who_asked(
    chat: Chat, product: Processor, style: str
) -> None:
    run = chat.say("charge the open invoice of good-card@example.com")
    assert (run.state, product.charged()) == ("waiting", [])
    (review,) = chat.reviews()
    assert review.title == "Confirm before Ana Silva is charged 25.00 EUR"
    with pytest.raises(ReviewRefused):
        approve(review, by="lead")
    approve(review, by="agent")
    run.refresh_from_db()
    assert stop(run)[0] == "completed"
    assert (state_of("INV-1001"), product.charged()) == (("paid", []), [2500])


def test_a_charge_above_the_limit_waits_for_a_second_person(chat: Chat, product: Processor) -> None:
    Invoice.objects.filter(reference="INV-1001").update(amount_minor=200_001)
    run = chat.say("charge INV-1001")
    assert (run.state, product.charged()) == ("waiting", [])
    (review,) = chat.reviews()
    with pytest.raises(ReviewRefused):
        approve(review, by="agent")
    reject(review, "The customer pays by transfer.")
    run.refresh_from_db()
    assert stop(run) == ("policy_block", 1, 1)
    assert "The customer pays by transfer." in chat.answer()
    assert (state_of("INV-1001"), product.charged()) == (("open", []), [])


CHECKED = (
    "The charge of {amount} for {invoice} is being checked with the payment processor. You get a "
    "message here when it is settled."
)
SLOW = (("INV-1002", "30.00 EUR", 3000), ("INV-1003", "35.00 EUR", 3500))


@pytest.mark.parametrize(("invoice", "amount", "minor"), SLOW, ids=["committed", "lost"])
def test_a_slow_charge_is_checked_attached_to_and_settled_once(
    chat: Chat, product: Processor, invoice: str, amount: str, minor: int
) -> None:
    first = chat.say(f"charge {invoice}")
    assert stop(first) == ("answered", 2, 0)
    (call,) = chat.calls(first)
    assert (call.state, outcome(call)["reason"]) == ("unknown", "transient")
    assert chat.answer() == CHECKED.format(amount=amount, invoice=invoice)
    second = chat.say(f"charge {invoice}")
    assert stop(second) == ("answered", 2, 0)
    assert chat.answers() == [CHECKED.format(amount=amount, invoice=invoice)] * 2
    assert (len(keys(product)), Intent.objects.count()) == (1, 1)
    assert chat.notices() == []
    assert settle_pump() == 1
    assert settle_pump() == 0
    payment = Payment.objects.get(invoice__reference=invoice)
    assert chat.notices() == [
        f"{amount} was charged for {invoice}. Its reference is {payment.reference}."
    ]
    assert len(set(keys(product))) == 1
    assert product.charged() == [minor]
    assert state_of(invoice) == ("paid", [])


def test_two_conversations_that_wait_for_one_charge_are_both_told_once(
    chats: Callable[[str], Chat], product: Processor
) -> None:
    first, second = chats("agent"), chats("lead")
    first.say("charge INV-1003")
    second.say("charge INV-1003")
    settle_pump()
    settle_pump()
    assert len(first.notices()) == 1
    assert second.notices() == first.notices()
    assert (len(set(keys(product))), product.charged()) == (1, [3500])


def test_a_decline_ends_the_turn_with_a_sentence_for_the_customer(
    chat: Chat, product: Processor, style: str
) -> None:
    run = chat.say("charge INV-1004")
    assert stop(run) == ("fatal", 1, 1)
    assert chat.answer() == (
        "The charge of 40.00 EUR for INV-1004 was declined. Nothing was charged. Another payment "
        "method may work."
    )
    assert (len(keys(product)), product.charged()) == (1, [])
    assert state_of("INV-1004") == ("open", [])
    for word in ("card_declined", "generic", "402", "pm_", "charge.declined", "intent"):
        assert word not in chat.answer()


def test_yen_have_no_cents(chat: Chat, product: Processor) -> None:
    chat.say("charge INV-1006")
    assert ": 9899 JPY was charged to 山田 花子 for INV-1006" in chat.answer()
    assert product.charged() == [9899]


def test_a_part_of_an_invoice_is_not_charged(chat: Chat, product: Processor, style: str) -> None:
    run = chat.say("charge 10.00 EUR of INV-1001")
    assert stop(run)[0] == "answered"
    assert "whole open amount" in chat.answer()
    assert (keys(product), state_of("INV-1001")) == ([], ("open", []))


def test_a_charge_and_a_ticket_in_one_message_both_happen(
    chat: Chat, product: Processor, style: str
) -> None:
    run = chat.say("charge INV-1001 and open a ticket about the late delivery")
    assert stop(run) == ("completed", 1 if style == "planner" else 2, 1)
    assert chat.outcomes() == [
        ("charge_invoice", "charge.completed"),
        ("ticket_create", "ticket.created"),
    ]
    receipt, ticket = chat.answer().split("\n\n")
    assert "25.00 EUR was charged to Ana Silva for INV-1001" in receipt
    assert ticket.endswith("was opened: “The late delivery”.")
    assert product.charged() == [2500]
    pump()
    assert len(chat.answers()) == 1
