"""A turn writes amounts in its conversation's language, and reads its own again."""

import pytest

from agent_core.runs.models import Conversation, Message
from agent_core.runs.states import Role
from payments.models import Payment
from tests.journeys.chat import Chat, approve, sent_back, settle_pump
from tests.payments.processor import Processor

LANGUAGES = [("en", "."), ("de", ","), ("ru", ",")]


def speak(chat: Chat, language: str) -> None:
    """Have the conversation in this language from now on."""
    Conversation.objects.filter(pk=chat.conversation.pk).update(language=language)
    chat.conversation.refresh_from_db()


@pytest.mark.parametrize(("language", "mark"), LANGUAGES)
def test_a_refund_is_asked_approved_and_told_in_the_conversations_language(
    chat: Chat, product: Processor, *, language: str, mark: str
) -> None:
    speak(chat, language)
    chat.say(f"refund 5{mark}00 EUR of PAY-10011 because the box was crushed")
    (review,) = chat.reviews()
    assert (review.title, review.button) == (
        f"Refund 5{mark}00 EUR to Ana Silva",
        f"Approve 5{mark}00 EUR",
    )
    assert (review.amount_minor, review.fields["amount"]) == (500, "5.00")
    rows = {row["label"]: row["text"] for row in review.card}
    assert f"Left to refund 35{mark}00 EUR." in rows["Effect"]
    assert "in the staff member's words" in rows["Amount named"]
    approve(review)
    assert f": 5{mark}00 EUR of PAY-10011 was refunded to Ana Silva" in chat.answer()
    assert f"35{mark}00 EUR of this payment is left to refund." in chat.answer()
    assert sent_back(product, "PAY-10011") == [500]


@pytest.mark.parametrize(("language", "mark"), LANGUAGES)
def test_an_amount_that_a_list_showed_is_taken_up_as_it_was_shown(
    chat: Chat, product: Processor, *, language: str, mark: str
) -> None:
    speak(chat, language)
    chat.say("show me the payments of good-card@example.com")
    shown = chat.answer()
    assert f"40{mark}00 EUR" in shown
    chat.say(f"refund 40{mark}00 EUR of PAY-10011")
    (review,) = chat.reviews()
    assert review.amount_minor == 4000
    rows = {row["label"]: row["text"] for row in review.card}
    assert "in the answer to" in rows["Amount named"]


@pytest.mark.parametrize(("language", "mark"), LANGUAGES)
def test_a_rule_and_a_question_name_amounts_alike(
    chat: Chat, product: Processor, *, language: str, mark: str
) -> None:
    speak(chat, language)
    chat.say(f"refund 999{mark}00 of PAY-10011")
    assert f"999{mark}00 EUR is more than is left on PAY-10011: 40{mark}00 EUR" in chat.answer()
    chat.say("refund 25,000 EUR of PAY-10011")
    asked_back = f"as 25000{mark}00 EUR or as 25{mark}00 EUR. Write one of them."
    assert asked_back in chat.answer()
    assert not product.books()["requests"]


@pytest.mark.parametrize(("language", "mark"), LANGUAGES)
def test_what_settles_later_is_told_in_the_conversations_language(
    chat: Chat, product: Processor, *, language: str, mark: str
) -> None:
    """The task that settles it speaks no language of its own."""
    speak(chat, language)
    chat.say("refund 2 EUR of PAY-10021")
    approve(chat.reviews()[0])
    assert settle_pump() == 1
    notices = Message.objects.filter(conversation=chat.conversation, role=Role.NOTICE)
    assert f"2{mark}00 EUR of PAY-10021 was refunded." in notices.get().text


def test_no_group_mark_and_no_other_digit_is_ever_shown(chat: Chat, product: Processor) -> None:
    speak(chat, "ar")
    Payment.objects.filter(reference="PAY-10011").update(amount_minor=123_456_789)
    chat.say("show me the payments of good-card@example.com")
    assert "1234567.89 EUR" in chat.answer()
