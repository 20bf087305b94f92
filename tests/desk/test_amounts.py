"""Amounts on pages: written and read in the viewer's language, stored in none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.urls import reverse
from django.utils import translation

from agent_core.runs.models import Conversation
from payments.models import Payment, Refund
from payments.money import Money, money_in
from reviews.models import Review
from tests.desk.conftest import Enter, asked, waiting_refund
from tests.desk.test_chat import words

MARKS = [("en", "."), ("de", ","), ("ru", ",")]


@pytest.fixture(autouse=True)
def asked_in_english() -> Iterator[None]:
    """Write the rows in English, and leave no language behind: a request activates its own."""
    with translation.override("en"):
        yield


def page(enter: Enter, user: User, address: str, language: str) -> str:
    """Return a page as a browser of this language gets it."""
    answer = enter(user).get(address, headers={"accept-language": language})
    assert answer.status_code == 200
    return answer.content.decode()


def decide(enter: Enter, user: User, review: Review, language: str, **form: str) -> dict[str, Any]:
    """Post a decision in this language; return what is stored then."""
    enter(user).post(
        reverse("api-decision", args=[review.pk]),
        {"version": "1", **form},
        headers={"accept-language": language},
    )
    return {**Review.objects.filter(pk=review.pk).values().get()}


@pytest.mark.parametrize(("language", "mark"), MARKS)
def test_a_request_asked_in_english_is_shown_in_the_reviewers_language(
    enter: Enter, maria: User, talk: Conversation, *, review: Review, language: str, mark: str
) -> None:
    html = page(enter, maria, reverse("review", args=[review.pk]), language)
    said = words(html)
    for amount in ("Refund 5.00 EUR to Ana Silva", "Approve 5.00 EUR", "Left to refund 20.00 EUR"):
        assert amount.replace(".", mark) in said
    assert f'name="amount" value="5{mark}00"' in html
    assert f"Refund 5{mark}00 EUR" in words(page(enter, maria, reverse("reviews"), language))
    chat = page(enter, talk.owner, reverse("chat", args=[talk.pk]), language)
    assert f"Refund 5{mark}00 EUR to Ana Silva" in words(chat)


@pytest.mark.parametrize(("language", "mark"), MARKS)
def test_sheets_and_the_administration_write_amounts_alike(
    enter: Enter, tom: User, refund: Refund, *, admin_user: User, language: str, mark: str
) -> None:
    assert f"Refunded 5{mark}00 EUR" in words(
        page(enter, tom, reverse("document", args=["REF-7001"]), language)
    )
    for model in ("refund", "payment", "invoice"):
        listed = page(enter, admin_user, reverse(f"admin:payments_{model}_changelist"), language)
        assert f"{mark}00 EUR" in listed


@pytest.mark.parametrize(("language", "written"), [("en", "3.50"), ("de", "3,50"), ("ru", "3,50")])
def test_a_change_is_stored_as_programs_write_it(
    enter: Enter, maria: User, review: Review, language: str, written: str
) -> None:
    stored = decide(
        enter, maria, review, language, decision="change", amount=written, reason="the box"
    )
    assert (stored["state"], stored["amount_minor"]) == ("approved", 350)
    assert stored["changes"] == {"amount": "3.50", "reason": "the box"}
    assert f"amount: {written}" in words(
        page(enter, maria, reverse("review", args=[review.pk]), language)
    )


def test_what_the_form_was_shown_with_is_no_change(
    enter: Enter, maria: User, review: Review
) -> None:
    for same in ("5,00", "5.00", "5"):
        stored = decide(
            enter, maria, review, "de", decision="change", amount=same, reason="the box was crushed"
        )
        assert (stored["state"], stored["changes"]) == ("pending", {})


def test_three_decimals_are_read_as_they_were_shown(
    enter: Enter, maria: User, talk: Conversation, payment: Payment
) -> None:
    Payment.objects.filter(pk=payment.pk).update(amount_minor=250_000, currency="KWD")
    payment.refresh_from_db()
    review = waiting_refund(asked(talk, "refund it"), payment, amount_minor=125_500)
    html = page(enter, maria, reverse("review", args=[review.pk]), "de")
    assert 'name="amount" value="125,500"' in html
    assert "Refund 125,500 KWD" in words(html)
    unclear = decide(enter, maria, review, "en", decision="change", amount="25,005")
    assert unclear["state"] == "pending"
    stored = decide(enter, maria, review, "de", decision="change", amount="25,005")
    assert (stored["state"], stored["amount_minor"]) == ("approved", 25_005)
    assert stored["changes"] == {"amount": "25.005"}


def test_an_amount_that_is_none_is_refused_in_a_sentence_and_kept_as_typed(
    enter: Enter, maria: User, review: Review
) -> None:
    answer = enter(maria).post(
        reverse("api-decision", args=[review.pk]),
        {"version": "1", "decision": "change", "amount": "25,000"},
        headers={"accept-language": "de"},
    )
    said = answer.content.decode()
    assert "can be read in two ways: as 25000,00 EUR or as 25,00 EUR. Write one of them." in said
    assert 'value="25,000"' in said


def test_only_the_amount_itself_is_written_anew() -> None:
    money = Money(500, "EUR")
    told = "Refund 5.00 EUR, not 15.00 EUR or -5.00 EUR or 5.00 EURO, to 5.00 EUR Ltd"
    shown = "Refund 5,00 EUR, not 15.00 EUR or -5.00 EUR or 5.00 EURO, to 5,00 EUR Ltd"
    assert money_in(told, money, "de") == shown
    assert money_in(shown, money, "de") == shown
    with translation.override("ru"):
        assert money_in("Refund 5.00 EUR", money) == "Refund 5,00 EUR"
