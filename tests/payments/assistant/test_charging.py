"""A charge: what the staff member named runs, what only the model named is confirmed first."""

from uuid import uuid4

import pytest
from django.contrib.auth.models import Group, User

from payments.models import Customer, Intent, Invoice, Payment, PaymentMethod
from payments.services import intent_settle
from reviews.errors import ChangeRefused, FourEyes, ReviewRefused
from reviews.services import review_approve
from tests.payments.assistant.stage import Conversation, notices
from tests.payments.processor import Processor


def test_a_named_invoice_is_charged_once_with_a_receipt(
    talk: Conversation, processor: Processor
) -> None:
    talk.say("charge INV-1001")
    assert talk.gated("charge_invoice", invoice="INV-1001").record.rule == "charge.named"
    content, artifact = talk.run("charge_invoice", invoice="INV-1001")
    payment = Payment.objects.get(invoice__reference="INV-1001")
    assert content == (
        f"{payment.reference}: 25.00 EUR was charged to Ana Silva for INV-1001, with Visa ending "
        "in 4242."
    )
    assert (artifact["reason"], artifact["stop"], artifact["code"]) == (
        "completed",
        True,
        "charge.completed",
    )
    assert artifact["data"]["summary"] == "25.00 EUR for INV-1001"
    again, artifact = talk.run("charge_invoice", invoice="inv-1001")
    assert again == already_charged(payment)
    assert artifact["already_applied"] is True
    assert processor.charged() == [2500]


def already_charged(payment: Payment) -> str:
    """Return what a repeat is told: what was done, and that it was not done again."""
    return (
        f"{payment.reference}: 25.00 EUR was already charged to Ana Silva for INV-1001, with Visa "
        "ending in 4242. Nothing was charged again."
    )


def second_card() -> PaymentMethod:
    """Save another card of Ana's, which is not the usual one."""
    return PaymentMethod.objects.create(
        customer=Customer.objects.get(email="good-card@example.com"),
        brand="mastercard",
        last4="1111",
        processor_ref="pm_other",
    )


def test_asked_again_with_another_card_the_receipt_names_the_card_that_paid(
    talk: Conversation, processor: Processor
) -> None:
    second_card()
    talk.say("charge INV-1001")
    talk.run("charge_invoice", invoice="INV-1001", method="4242")
    payment = Payment.objects.get(invoice__reference="INV-1001")
    content, artifact = talk.run("charge_invoice", invoice="INV-1001", method="1111")
    assert content == already_charged(payment)
    assert (artifact["code"], artifact["already_applied"]) == ("charge.completed", True)
    assert processor.charged() == [2500]


def test_a_call_played_again_has_its_first_receipt_whatever_card_it_names_now(
    talk: Conversation, processor: Processor
) -> None:
    second_card()
    call_id = uuid4()
    talk.say("charge INV-1001")
    first, _artifact = talk.run("charge_invoice", call_id, invoice="INV-1001", method="4242")
    again, artifact = talk.run("charge_invoice", call_id, invoice="INV-1001", method="1111")
    assert again == first
    assert "was charged to Ana Silva" in first
    assert artifact["already_applied"] is False
    assert processor.charged() == [2500]


def test_a_charge_played_again_after_the_right_was_lost_still_has_its_receipt(
    talk: Conversation, lead: User, processor: Processor
) -> None:
    Invoice.objects.filter(reference="INV-1001").update(amount_minor=200_001)
    talk.say("charge INV-1001")
    review = talk.ask("charge_invoice", invoice="INV-1001")
    talk.approved(review, lead)
    talk.user.groups.clear()
    assert talk.act("charge_invoice", review)[1]["code"] == "right.missing"
    talk.user.groups.add(Group.objects.get(name="Support agents"))
    first = talk.act("charge_invoice", review)
    talk.user.groups.clear()
    assert talk.act("charge_invoice", review) == first
    assert first[1]["code"] == "charge.completed"
    assert processor.charged() == [200_001]


@pytest.mark.parametrize(
    ("words", "rule"),
    [
        ("charge INV-1001 of good-card@example.com", "charge.named"),
        ("charge good-card@example.com the 25.00 EUR", "charge.named"),
        ("charge good-card@example.com 25", "charge.named"),
        ("charge good-card@example.com", "charge.unnamed"),
        ("charge good-card@example.com 26.00", "charge.unnamed"),
        ("charge INV-10011 of good-card@example.com", "charge.unnamed"),
    ],
)
def test_only_the_staff_members_own_words_name_a_charge(
    talk: Conversation, words: str, rule: str
) -> None:
    assert talk.say(words).gated("charge_invoice", invoice="INV-1001").record.rule == rule


def test_an_unnamed_charge_is_confirmed_by_the_requester_alone(
    talk: Conversation, lead: User, processor: Processor
) -> None:
    talk.say("charge good-card@example.com")
    review = talk.ask("charge_invoice", invoice="INV-1001")
    assert (review.title, review.button) == (
        "Confirm before Ana Silva is charged 25.00 EUR",
        "Confirm 25.00 EUR",
    )
    assert review.requester_decides is True
    with pytest.raises(ReviewRefused):
        talk.approved(review, lead)
    talk.approved(review, talk.user)
    _content, artifact = talk.act("charge_invoice", review)
    assert artifact["code"] == "charge.completed"
    assert processor.charged() == [2500]


def test_a_charge_above_the_limit_needs_a_second_person(
    talk: Conversation, lead: User, processor: Processor
) -> None:
    Invoice.objects.filter(reference="INV-1001").update(amount_minor=200_001)
    talk.say("charge INV-1001")
    _content, artifact = talk.run("charge_invoice", invoice="INV-1001")
    assert (artifact["reason"], artifact["code"]) == ("policy_block", "review.missing")
    review = talk.ask("charge_invoice", invoice="INV-1001")
    assert review.title == "Charge 2000.01 EUR to Ana Silva"
    assert review.card[0]["text"] == "Charges above 2000.00 EUR need a second person."
    with pytest.raises(FourEyes):
        talk.approved(review, talk.user)
    with pytest.raises(ChangeRefused):
        review_approve(review_id=review.pk, actor=lead, channel="desk", changes={"amount": "20.00"})
    assert processor.charged() == []
    talk.approved(review, lead)
    assert talk.act("charge_invoice", review)[1]["code"] == "charge.completed"
    assert processor.charged() == [200_001]


def test_a_charge_that_is_paid_meanwhile_cannot_be_approved(talk: Conversation) -> None:
    talk.say("charge good-card@example.com")
    review = talk.ask("charge_invoice", invoice="INV-1001")
    Invoice.objects.filter(reference="INV-1001").update(state="void")
    with pytest.raises(ReviewRefused, match="INV-1001 is void by now"):
        talk.approved(review, talk.user)


def test_a_declined_card_is_final_and_says_nothing_was_charged(
    talk: Conversation, processor: Processor
) -> None:
    content, artifact = talk.say("charge INV-1004").run("charge_invoice", invoice="INV-1004")
    assert (artifact["reason"], artifact["stop"], artifact["code"]) == (
        "fatal",
        True,
        "charge.declined",
    )
    assert content == (
        "The charge of 40.00 EUR for INV-1004 was declined. Nothing was charged. Another payment "
        "method may work."
    )
    assert processor.charged() == []
    assert Invoice.objects.get(reference="INV-1004").state == "open"


@pytest.mark.parametrize(
    ("invoice", "minor"), [("INV-1002", 3000), ("INV-1003", 3500)], ids=["committed", "lost"]
)
def test_a_slow_processor_is_being_checked_and_settles_with_one_charge(
    talk: Conversation, processor: Processor, invoice: str, minor: int
) -> None:
    """The line is cut after, or before, the processor committed; later the same key tells."""
    content, artifact = talk.say(f"charge {invoice}").run("charge_invoice", invoice=invoice)
    assert (artifact["reason"], artifact["code"]) == ("transient", "charge.being_checked")
    assert "is being checked" in content
    second = talk.gated("charge_invoice", invoice=invoice)
    assert second.record.rule == "charge.attaches"
    assert talk.run("charge_invoice", invoice=invoice)[1]["reason"] == "transient"
    assert processor.asked("POST /v1/payment_intents") == 1
    intent = Intent.objects.get()
    Intent.objects.update(next_try_at=intent.created_at)
    assert intent_settle(intent_id=intent.pk) is True
    assert processor.charged() == [minor]
    assert len(notices) == 1
    assert invoice in notices[0][1]


def test_a_paid_or_void_invoice_moves_nothing(talk: Conversation, processor: Processor) -> None:
    Invoice.objects.filter(reference="INV-1001").update(state="void")
    talk.say("charge INV-1001")
    assert talk.gated("charge_invoice", invoice="INV-1001").record.rule == "charge.not_open"
    content, artifact = talk.run("charge_invoice", invoice="INV-1001")
    assert (artifact["reason"], artifact["code"]) == ("fatal", "charge.not_open")
    assert content == "INV-1001: This invoice is not open, so it cannot be charged."
    assert processor.charged() == []


@pytest.mark.parametrize(
    ("method", "last4"),
    [
        ("4242", "4242"),
        ("Visa ending in 4242", "4242"),
        ("", "4242"),
        ("5100", "5100"),
        ("mastercard", "5100"),
        ("PayPal", ""),
    ],
)
def test_the_way_to_pay_is_the_usual_one_or_the_one_named(
    talk: Conversation, method: str, last4: str
) -> None:
    ana = Invoice.objects.get(reference="INV-1001").customer
    for kind, brand, digits in (("card", "mastercard", "5100"), ("paypal", "", "")):
        PaymentMethod.objects.create(
            customer=ana, kind=kind, brand=brand, last4=digits, processor_ref=f"pm_good_{kind}"
        )
    talk.say("charge INV-1001").run("charge_invoice", invoice="INV-1001", method=method)
    assert Payment.objects.get(invoice__reference="INV-1001").method.last4 == last4


@pytest.mark.parametrize("method", ["9999", "amex", "the blue one", "42"])
def test_an_unknown_way_to_pay_is_asked_back(
    talk: Conversation, processor: Processor, method: str
) -> None:
    content, artifact = talk.say("charge INV-1001").run(
        "charge_invoice", invoice="INV-1001", method=method
    )
    assert (artifact["reason"], artifact["code"]) == ("transient", "charge.method_unclear")
    assert content == "Please say which way to pay is meant: Visa ending in 4242."
    assert not Intent.objects.exists()


def test_a_trainee_may_look_but_neither_charge_nor_refund(
    talk: Conversation, processor: Processor
) -> None:
    trainee = Conversation(
        User.objects.get(username="trainee"), ["charge INV-1001, refund PAY-10011"]
    )
    for tool, argument in (
        ("charge_invoice", {"invoice": "INV-1001"}),
        ("refund_request", {"payment": "PAY-10011"}),
    ):
        gated = trainee.gated(tool, **argument)
        assert (gated.record.verdict, gated.record.rule) == ("block", "right.missing")
    assert trainee.run("payments_list", customer="CUS-1001")[1]["code"] == "payments.listed"
    assert processor.charged() == []
