"""What the card of a review says of this moment while it waits, and keeps once it is decided."""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import User
from django.urls import reverse
from django.utils import timezone

from agent_core.runs.models import Conversation
from payments.models import Payment, Refund
from reviews.models import Review
from tests.desk.conftest import Enter, asked, waiting_refund
from tests.desk.test_chat import words
from tests.desk.test_review_pages import card, decide


def test_the_card_tells_of_a_twin_that_waits_as_long_as_it_waits(
    enter: Enter, maria: User, review: Review, talk: Conversation, payment: Any
) -> None:
    """The twin came later, so the first card could not know of it when it was asked."""
    twin = waiting_refund(asked(talk, "refund 1 EUR of PAY-7001"), payment, amount_minor=100)
    other = "Another request of {} for this payment waits (asked by Tom Becker)."
    assert twin.warnings == [other.format("5.00 EUR")]
    said = words(card(enter, maria, review))
    assert "Watch " + other.format("1.00 EUR") in said
    assert said.count("Another request") == 1
    decide(enter, maria, review, decision="reject", sentence="No.")
    said = words(card(enter, maria, twin))
    assert "Another request" not in said
    assert "No other refund lately, no dispute." in said


def test_an_open_card_has_the_figures_and_the_warnings_of_now_wherever_it_is_shown(
    enter: Enter, maria: User, review: Review, talk: Conversation, payment: Payment
) -> None:
    """The twin is asked, approved, paid: each time the card says so, and the sums add up."""
    twin = waiting_refund(asked(talk, "refund 4 EUR of PAY-7001"), payment, amount_minor=400)
    views = (
        (maria, reverse("review", args=[review.pk])),
        (talk.owner, reverse("fragment", args=[talk.pk, "review", review.pk])),
        (maria, reverse("admin:reviews_review_change", args=[review.pk])),
    )
    User.objects.filter(pk=maria.pk).update(is_staff=True)

    def shown() -> list[str]:
        return [words(enter(who).get(page).content.decode()) for who, page in views]

    for said in shown():
        assert (
            "Refunded so far 0.00 EUR, after this 5.00 EUR. "
            "Another 4.00 EUR waits for a decision. Left to refund 16.00 EUR."
        ) in said
    decide(enter, maria, twin, decision="approve")
    assert all("4.00 EUR for this payment is approved and not sent yet" in said for said in shown())
    Review.objects.filter(pk=twin.pk).update(consumed_at=timezone.now())
    sent = Refund.objects.create(
        reference="REF-7002", payment=payment, amount_minor=400, currency="EUR", state="succeeded"
    )
    Payment.objects.filter(pk=payment.pk).update(disputed=True, disputed_minor=100)
    for said in shown():
        assert "so far 4.00 EUR, after this 9.00 EUR. Left to refund 15.00 EUR." in said
        assert "in the last 30 days: REF-7002 4.00 EUR" in said
        assert "1 payment of this customer is disputed at the bank." in said
        assert "Another" not in said
    Refund.objects.filter(pk=sent.pk).update(amount_minor=2300)
    for said in shown():
        assert "so far 23.00 EUR. Only 1.00 EUR is left to refund, less than this asks" in said


def test_a_decided_card_keeps_what_was_stored_with_it(
    enter: Enter, maria: User, review: Review, payment: Payment
) -> None:
    decide(enter, maria, review, decision="reject", sentence="No.")
    Refund.objects.create(
        reference="REF-7002", payment=payment, amount_minor=400, currency="EUR", state="succeeded"
    )
    said = words(card(enter, maria, review))
    assert "Refunded so far 0.00 EUR, after this 5.00 EUR. Left to refund 20.00 EUR." in said
    assert "No other refund lately, no dispute." in said
