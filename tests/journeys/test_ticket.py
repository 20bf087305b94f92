"""Ticket: one per wish, linked to the conversation and the payment."""

from collections.abc import Callable

from tests.journeys.chat import Chat, outcome, stop
from tickets.models import Ticket

WISH = "open a ticket about the broken box for PAY-10011"


def test_a_ticket_is_linked_to_the_conversation_the_payment_and_the_customer(
    chat: Chat, style: str
) -> None:
    chat.say("find good-card@example.com")
    run = chat.say(WISH)
    assert stop(run) == ("completed", 1, 1)
    ticket = Ticket.objects.get()
    assert chat.answer() == (
        f"Ticket {ticket.reference} was opened: “The broken box for PAY-10011”. It is linked to "
        "PAY-10011."
    )
    chat.conversation.refresh_from_db()
    assert ticket.conversation_id == chat.conversation.pk
    assert ticket.customer_id == chat.conversation.customer_id is not None
    assert (ticket.payment_reference, ticket.requester) == ("PAY-10011", chat.owner)


def test_said_twice_it_gives_the_first_one_again(chat: Chat, style: str) -> None:
    chat.say(WISH)
    run = chat.say(WISH)
    ticket = Ticket.objects.get()
    assert stop(run) == ("completed", 1, 1)
    first, second = chat.calls()
    assert (outcome(first)["already_applied"], outcome(second)["already_applied"]) == (False, True)
    assert chat.answer().startswith(
        f"Ticket {ticket.reference} is there already: “The broken box for PAY-10011”. No second "
        "one was opened."
    )


def test_the_same_wish_in_another_conversation_is_another_ticket(
    chats: Callable[[str], Chat],
) -> None:
    chats("agent").say(WISH)
    chats("agent").say(WISH)
    assert Ticket.objects.count() == 2


def test_a_line_break_in_a_wish_ends_no_subject(chat: Chat) -> None:
    chat.say('open a ticket about "the broken\r\nBcc: all@example.com box" for PAY-10011')
    ticket = Ticket.objects.get()
    assert "\n" not in ticket.subject
    assert "\r" not in ticket.subject
