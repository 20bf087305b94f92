"""Policy: what a person may not do ends the turn at the gate, and nothing of that batch happens."""

from collections.abc import Callable
from typing import Any

import pytest

from exports.models import Export
from payments.models import Intent
from reviews.models import Review
from tests.journeys.chat import Chat, approve, sent_back, state_of, stop
from tests.payments.processor import Processor
from tests.runs.scripting import ScriptedModel
from tickets.models import Ticket

Script = Callable[..., ScriptedModel]


def nothing_happened(product: Processor) -> bool:
    """Tell that no effect of any kind was begun, asked for or sent."""
    models = (Intent, Review, Ticket, Export)
    counts = [model._default_manager.count() for model in models]
    return counts == [0, 0, 0, 0] and product.books()["requests"] == []


def test_a_refund_above_the_daily_limit_is_blocked(
    chat: Chat, product: Processor, style: str
) -> None:
    run = chat.say("refund PAY-10013")
    assert stop(run) == ("policy_block", 1, 1)
    assert chat.answer() == (
        "With 900.00 EUR more, your refunds today would be above your daily limit of 500.00 EUR. "
        "500.00 EUR is still free today. Nothing was refunded."
    )
    assert nothing_happened(product)


def test_the_daily_limit_counts_what_was_sent_and_what_waits(
    chats: Callable[[str], Chat], product: Processor
) -> None:
    sent, waiting, refused = chats("agent"), chats("agent"), chats("agent")
    sent.say("refund 300.00 of PAY-10013")
    approve(sent.reviews()[0])
    waiting.say("refund 150.00 of PAY-10013")
    run = refused.say("refund 50.01 of PAY-10013")
    assert stop(run) == ("policy_block", 1, 1)
    assert "50.00 EUR is still free today. Nothing was refunded." in refused.answer()
    assert refused.say("refund 50.00 of PAY-10013").state == "waiting"
    assert sent_back(product, "PAY-10013") == [30_000]


def test_a_disputed_payment_is_blocked_at_the_gate(
    chat: Chat, product: Processor, style: str
) -> None:
    run = chat.say("refund 5.00 of PAY-10051")
    assert stop(run) == ("policy_block", 1, 1)
    assert chat.answer() == (
        "PAY-10051 is disputed at the bank, so it cannot be refunded here. The dispute itself "
        "decides who gets the money. Nothing was refunded."
    )
    (call,) = chat.calls()
    assert (call.verdict, call.rule, call.started_at) == ("block", "payment.disputed", None)
    assert nothing_happened(product)


TRAINEE = (
    ("charge_invoice", {"invoice": "INV-1001"}),
    ("refund_request", {"payment": "PAY-10011", "amount": "5.00"}),
    ("ticket_create", {"subject": "The box"}),
    ("export_payments", {"period": "last month"}),
)


def test_a_tool_that_the_role_may_not_use_is_refused_though_the_model_calls_it(
    chats: Callable[[str], Chat], product: Processor, script: Script
) -> None:
    for tool, arguments in TRAINEE:
        script([(tool, arguments)])
        chat = chats("trainee")
        run = chat.say("charge INV-1001, refund PAY-10011, a ticket, an export")
        assert stop(run) == ("policy_block", 1, 1)
        assert [(call.state, call.rule) for call in chat.calls()] == [("refused", "right.missing")]
        assert chat.answer() == (
            "You do not have the right to do this. Ask your team lead if you need it."
        )
    assert nothing_happened(product)


def test_the_trainees_wish_for_a_tool_that_the_role_may_not_use_is_a_policy_block(
    chats: Callable[[str], Chat], product: Processor, style: str
) -> None:
    chat = chats("trainee")
    for wish in ("charge INV-1001", "refund 5.00 of PAY-10011", "open a ticket about rain"):
        run = chat.say(wish)
        assert stop(run) == ("policy_block", 1, 1)
        assert chat.answer() == (
            "You do not have the right to do this. Ask your team lead if you need it."
        )
    assert nothing_happened(product)
    assert chat.say("find good-card@example.com").state == "done"
    assert chat.answer().startswith("Ana Silva, good-card@example.com")


BATCHES = (
    "refund 5.00 of PAY-10052 and 5.00 of PAY-10051",
    "charge INV-1005 and refund 5.00 of PAY-10051",
    "refund 5.00 of PAY-10051 and open a ticket about the late box",
    "refund 5.00 of PAY-10051 and export payments of last month as csv",
)


@pytest.mark.parametrize("words", BATCHES)
def test_of_a_batch_with_a_block_nothing_with_an_effect_runs(
    chat: Chat, product: Processor, words: str
) -> None:
    run = chat.say(words)
    assert stop(run) == ("policy_block", 1, 1)
    assert sorted(call.rule for call in chat.calls()) == ["batch.held", "payment.disputed"]
    assert {call.state for call in chat.calls()} == {"refused"}
    assert "PAY-10051 is disputed at the bank" in chat.answer()
    assert "Not done, because another part of this request was refused." in chat.answer()
    assert nothing_happened(product)
    assert state_of("INV-1005") == ("open", [])


def test_what_ran_before_the_block_is_told_beside_it(
    chat: Chat, product: Processor, settings: Any
) -> None:
    settings.CHAT_MODEL = "offline:one-at-a-time@0"
    run = chat.say("charge INV-1005 and refund 5.00 of PAY-10051")
    assert stop(run) == ("policy_block", 2, 1)
    headline, refused, receipt = chat.answer().split("\n\n")
    assert headline.startswith("1 of 2 done: 45.00 EUR for INV-1005; 1 not: ")
    assert refused.startswith("PAY-10051 is disputed at the bank")
    assert "45.00 EUR was charged to Nina Keller for INV-1005" in receipt
    assert product.charged() == [4500]
    assert sent_back(product, "PAY-10051") == []
