"""Try again: one question, no effect twice, one closing text over both (field report B60)."""

from collections.abc import Callable

from agent_core.runs import services
from agent_core.runs.models import Run
from payments.models import Refund
from tests.journeys.chat import Chat, approve, pump, sent_back, stop
from tests.payments.processor import Processor
from tests.runs.scripting import ScriptedModel
from tickets.models import Ticket

Script = Callable[..., ScriptedModel]

WORDS = "refund 5.00 of PAY-10011 and open a ticket about the late box"
REFUND = ("refund_request", {"payment": "PAY-10011", "amount": "5.00", "remaining": "a ticket"})
REFUND_AGAIN = ("refund_request", {"payment": "PAY-10011", "amount": "5.00 EUR"})
TICKET = ("ticket_create", {"subject": "The late box"})


def failed_after_the_refund(chat: Chat, script: Script, *then: object) -> Run:
    """Refund 5.00, then lose the model before the ticket."""
    script([REFUND], RuntimeError("the model is gone"), *then)
    run = chat.say(WORDS)
    approve(chat.reviews()[0])
    run.refresh_from_db()
    return run


def test_b60_a_retry_asks_once_refunds_once_and_tells_both(
    chat: Chat, product: Processor, script: Script
) -> None:
    run = failed_after_the_refund(chat, script, [REFUND_AGAIN, TICKET])
    assert (run.state, stop(run)[0]) == ("failed", "failed")
    assert "5.00 EUR of PAY-10011 was refunded" in chat.answer()
    assert "the model is gone" not in chat.answer()
    again = services.run_retry(run=run, actor=chat.owner)
    assert services.run_retry(run=run, actor=chat.owner).pk == again.pk
    pump()
    assert stop(again)[0] == "completed"
    assert [role for role, _text in chat.lines()] == ["staff", "assistant", "assistant"]
    ticket = Ticket.objects.get()
    assert "5.00 EUR of PAY-10011 was refunded" in chat.answer()
    assert f"Ticket {ticket.reference} was opened: “The late box”." in chat.answer()
    assert sent_back(product, "PAY-10011") == [500]
    assert len(chat.reviews()) == 1


def test_b60_the_question_stands_once_in_the_models_window_of_a_retry(
    chat: Chat, product: Processor, script: Script
) -> None:
    run = failed_after_the_refund(chat, script)
    model = script([TICKET])
    services.run_retry(run=run, actor=chat.owner)
    pump()
    (window,) = model.requests
    assert [message.text for message in window if message.type == "human"] == [WORDS]
    assert sent_back(product, "PAY-10011") == [500]


def test_b60_typed_again_the_lead_is_shown_the_refund_that_was_made(
    chat: Chat, product: Processor
) -> None:
    chat.say("refund 5.00 of PAY-10011")
    approve(chat.reviews()[0])
    run = chat.say("refund 5.00 of PAY-10011")
    assert run.state == "waiting"
    first, second = chat.reviews()
    reference = Refund.objects.get(payment__reference="PAY-10011").reference
    watch = {row["label"]: row["text"] for row in second.card}["Watch"]
    assert reference in watch or "5.00 EUR" in watch
    assert first.pk != second.pk
    assert sent_back(product, "PAY-10011") == [500]


def test_a_cancelled_run_withdraws_its_review_and_nothing_moves(
    chat: Chat, product: Processor
) -> None:
    run = chat.say("refund 5.00 of PAY-10011")
    services.run_cancel(run=run, actor=chat.owner)
    pump()
    run.refresh_from_db()
    assert (run.state, chat.reviews()[0].state) == ("cancelled", "withdrawn")
    assert product.books()["requests"] == []
