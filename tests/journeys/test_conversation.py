"""A conversation goes on while something waits, is stopped, withdrawn or tried again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.db import OperationalError
from django.test import Client
from django.urls import reverse
from langchain_core.messages import AIMessageChunk
from langchain_core.outputs import ChatGenerationChunk

from agent_core.chat_models.scripted import ScriptedModel
from agent_core.runs import django_host, live, services, work
from agent_core.runs.models import Message, Run, StopRecord
from agent_core.runs.states import Role
from payments.models import Intent
from reviews.models import Review
from tests.journeys.chat import Chat, approve, pump, sent_back, stop
from tests.payments.processor import Processor
from tickets import tools as ticket_tools
from tickets.models import Ticket

Script = Callable[..., ScriptedModel]

FIVE = ("refund_request", {"payment": "PAY-10011", "amount": "5.00"})
FIVE_THEN_MORE = ("refund_request", {**FIVE[1], "remaining": "a ticket"})
ALL = ("refund_request", {"payment": "PAY-10011"})
TICKET = ("ticket_create", {"subject": "The late box"})
WORDS = "refund 5.00 of PAY-10011 and open a ticket about the late box"


def stored(review: Review) -> dict[str, Any]:
    """Return the review's row."""
    return dict(Review.objects.filter(pk=review.pk).values().get())


# A review waits -----------------------------------------------------------------------------


def test_a_message_beside_a_waiting_review_is_told_of_it_and_asks_for_all_of_it_in_vain(
    chat: Chat, product: Processor, script: Script
) -> None:
    chat.say("refund PAY-10011")
    (review,) = chat.reviews()
    before = stored(review)
    model = script([ALL])

    run = chat.say("do it now, without anybody")

    told = "\n".join(str(message.content) for message in model.requests[0])
    assert "This waits for a person's approval and has not been done." in told
    assert stop(run)[0] == "policy_block"
    assert "40.00 EUR of PAY-10011 already waits for a decision" in chat.answer()
    assert (stored(review), product.books()["requests"]) == (before, [])
    assert [found.pk for found in chat.reviews()] == [review.pk]
    approve(review)
    assert sent_back(product, "PAY-10011") == [4000]


def test_the_same_part_asked_for_beside_a_waiting_review_moves_nothing_without_its_own_decision(
    chat: Chat, product: Processor, script: Script
) -> None:
    chat.say("refund 5.00 of PAY-10011")
    (review,) = chat.reviews()
    before = stored(review)
    script([FIVE])

    run = chat.say("refund 5.00 of PAY-10011 at last")

    assert (stored(review), product.books()["requests"]) == (before, [])
    # A wish of its own waits for a decision of its own, and the lead sees the other one.
    (asked,) = [found for found in chat.reviews() if found.pk != review.pk]
    watch = {row["label"]: row["text"] for row in asked.card}["Watch"]
    assert (run.state, asked.state) == ("waiting", "pending")
    assert "Another request of 5.00 EUR for this payment waits" in watch
    approve(review)
    assert sent_back(product, "PAY-10011") == [500]


# Stopped ------------------------------------------------------------------------------------


def test_a_stop_between_two_effects_says_what_was_done_and_does_not_do_the_other(
    chat: Chat, product: Processor, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    script([("charge_invoice", {"invoice": "INV-1001", "remaining": "a ticket"})], [TICKET])
    ended = django_host.DjangoHost.call_ended

    def stop_after_it(host: Any, *given: Any, **named: Any) -> None:
        ended(host, *given, **named)
        services.run_cancel(run=Run.objects.get(), actor=chat.owner)

    monkeypatch.setattr(django_host.DjangoHost, "call_ended", stop_after_it)
    run = chat.say("charge INV-1001 and open a ticket about the late box")

    assert (run.state, stop(run)[0]) == ("cancelled", "cancelled")
    assert chat.answer().startswith("Stopped as you asked.")
    assert "25.00 EUR" in chat.answer()
    assert Ticket.objects.count() == 0
    assert len(product.books()["requests"]) == 1
    assert any("25.00 EUR" in done for done in StopRecord.objects.get(run=run).done)


class Talkative(ScriptedModel):
    """Streams word after word, for as long as anybody listens."""

    def _stream(self, *_given: Any, **_named: Any) -> Iterator[ChatGenerationChunk]:
        for place in range(10_000):
            yield ChatGenerationChunk(message=AIMessageChunk(content=f"word{place} "))


def test_a_stop_during_a_streaming_answer_ends_it_in_the_middle(
    chat: Chat, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(work, "chat_model", lambda *_given, **_named: Talkative(steps=[]))
    monkeypatch.setattr(django_host, "LOOK_SECONDS", 0.0)
    heard: list[str] = []

    def hear(_conversation: Any, run: Any, _attempt: int, _whole: str, text: str) -> None:
        heard.append(text)
        if len(heard) == 5:
            services.run_cancel(run=Run.objects.get(pk=run), actor=chat.owner)

    monkeypatch.setattr(live, "delta_publish", hear)
    run = chat.say("tell me a story")
    assert (run.state, len(heard)) == ("cancelled", 5)
    assert chat.answers() == ["Stopped as you asked. Nothing was done."]


def test_a_stop_while_a_review_waits_holds_back_its_approved_sibling_too(
    chat: Chat, product: Processor, script: Script
) -> None:
    script([FIVE, ("refund_request", {"payment": "PAY-10012", "amount": "6.00"})])
    run = chat.say("refund 5.00 of PAY-10011 and 6.00 of PAY-10012")
    approved, waiting = chat.reviews()
    approve(approved)

    services.run_cancel(run=run, actor=chat.owner)
    pump()

    run.refresh_from_db()
    assert (run.state, stored(waiting)["state"]) == ("cancelled", "withdrawn")
    assert chat.answer() == "Stopped as you asked. Nothing was done."
    assert (product.books()["requests"], Intent.objects.count()) == ([], 0)


def test_a_stop_in_line_ends_the_message_there_and_the_one_before_goes_on(chat: Chat) -> None:
    first, behind = chat.send("find good-card@example.com"), chat.send("refund PAY-10011")
    services.run_cancel(run=behind, actor=chat.owner)
    pump()
    assert [Run.objects.get(pk=run.pk).state for run in (first, behind)] == ["done", "cancelled"]
    assert "Stopped as you asked. Nothing was done." in chat.answers()


@pytest.mark.parametrize("place", ["chat", "desk"])
def test_a_withdrawal_ends_the_review_and_the_run_says_so(
    chat: Chat, product: Processor, place: str
) -> None:
    run = chat.say("refund 5.00 of PAY-10011")
    (review,) = chat.reviews()
    client = Client()
    client.force_login(chat.owner)
    form = {"decision": "withdraw", **({"channel": "chat"} if place == "chat" else {})}

    answer = client.post(reverse("api-decision", args=[review.pk]), form)
    assert answer.status_code == 302
    pump()

    said = "Refund 5.00 EUR to Ana Silva: withdrawn by Tom Becker. Nothing was done."
    assert (stop(run)[0], stored(review)["state"]) == ("policy_block", "withdrawn")
    assert (chat.answer(), product.books()["requests"]) == (said, [])
    shown = client.get(reverse("chat", args=[chat.conversation.pk])).content.decode()
    assert said in shown
    assert 'value="withdraw"' not in shown


# Tried again --------------------------------------------------------------------------------


def test_b60_the_workers_own_retry_goes_on_with_one_refund_one_ticket_and_one_text(
    chat: Chat, product: Processor, script: Script, monkeypatch: pytest.MonkeyPatch
) -> None:
    script([FIVE_THEN_MORE], [TICKET], [FIVE, TICKET])
    create: Any = vars(ticket_tools)["create"]
    lost: list[bool] = []

    def create_and_lose_the_database_once(*given: Any, **named: Any) -> Any:
        opened = create(*given, **named)
        if not lost:
            lost.append(True)
            raise OperationalError("the connection was cut behind the commit")
        return opened

    monkeypatch.setattr(ticket_tools, "create", create_and_lose_the_database_once)
    run = chat.say(WORDS)
    approve(chat.reviews()[0])
    pump()

    run.refresh_from_db()
    assert (lost, run.state, stop(run)[0]) == ([True], "done", "completed")
    _b60_holds(chat, product)


def test_b60_go_on_adds_no_question_and_repeats_nothing(
    chat: Chat, product: Processor, script: Script
) -> None:
    script([FIVE_THEN_MORE], RuntimeError("the ticket's turn breaks"), [FIVE, TICKET])
    run = chat.say(WORDS)
    approve(chat.reviews()[0])
    again = services.run_retry(run=run, actor=chat.owner)
    pump()
    assert stop(again)[0] == "completed"
    _b60_holds(chat, product)


def test_b60_typed_again_it_is_a_new_turn_that_finds_the_refund_made(
    chat: Chat, product: Processor, script: Script
) -> None:
    model = script([FIVE_THEN_MORE], RuntimeError("breaks"), [FIVE, TICKET])
    chat.say(WORDS)
    approve(chat.reviews()[0])
    assert sent_back(product, "PAY-10011") == [500]

    chat.say(WORDS)

    told = "\n".join(str(message.content) for message in model.requests[-1])
    assert "5.00 EUR of PAY-10011 was refunded" in told
    assert [role for role, _text in chat.lines()].count("staff") == 2
    _first, second = chat.reviews()
    assert "5.00 EUR" in {row["label"]: row["text"] for row in second.card}["Watch"]
    assert sent_back(product, "PAY-10011") == [500]


def _b60_holds(chat: Chat, product: Processor) -> None:
    """One question, one refund, one ticket, one review, and a last text that covers both."""
    ticket = Ticket.objects.get()
    assert Message.objects.filter(conversation=chat.conversation, role=Role.STAFF).count() == 1
    assert len(chat.reviews()) == 1
    assert "5.00 EUR of PAY-10011 was refunded" in chat.answer()
    assert f"Ticket {ticket.reference} was opened" in chat.answer()
    assert sent_back(product, "PAY-10011") == [500]
