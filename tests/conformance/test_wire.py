"""What the product sends to its provider: a whole conversation of the demo, on the wire.

The worker's own function, the product's tools, host and window; the real Groq client talks to a
server of our own. Each later turn shows what the model is told of the earlier ones.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Final

import pytest
from django.db import connection
from langchain_core.language_models import BaseChatModel

from agent_core.answer import STUB
from agent_core.chat_models import chat_model
from agent_core.chat_models.scripted import ScriptedCall, ScriptedStep, calls, says
from agent_core.runs import work
from agent_core.runs.models import Call
from agent_core.toolset import ArgumentsBad
from reviews.models import Review
from tests.conformance.desk import names_of_ours
from tests.conformance.samples import registered
from tests.core.groq_server import PLAYS, GroqServer, groq_serve
from tests.core.wire import calls_sent, ids_sent, strays, unanswered
from tests.journeys.chat import Chat, approve, reject, settle_pump
from tests.journeys.conftest import chat, db, product, samples
from tests.payments.processor import Processor, processor, processor_process

__all__ = ["chat", "db", "processor", "processor_process", "product", "samples"]

_BROKEN: Final = "ALTER TABLE tickets_ticket ADD CONSTRAINT nothing_new CHECK (false) NOT VALID"
_NOTE: Final = "Between us: the third one this week."


def _refund(payment: str, amount: str, **more: str) -> ScriptedCall:
    return ScriptedCall("refund_request", {"payment": payment, "amount": amount, **more}, "same-id")


def _call(tool: str, **arguments: str) -> ScriptedCall:
    return ScriptedCall(tool, arguments, "same-id")


STEPS: Final[Sequence[ScriptedStep]] = (
    calls(_call("customer_find", key="good-card@example.com")),
    says("Ana Silva was found."),
    calls(_call("charge_invoice", invoice="INV-1001", remaining="")),
    calls(_refund("PAY-10011", "5.00", reason="Arrived late"), _refund("PAY-10012", "20.00")),
    calls(_call("ticket_create", subject="The receipt is missing")),
    calls(_refund("PAY-10014", "1.00")),
    says("The refund is being checked."),
    calls(
        _call("articles_search", question="refund times"), _call("export_payments", period="May")
    ),
    calls(_refund("PAY-10013", "")),
    calls(ScriptedCall("charge_invoice", '{"invoice": INV', "same-id")),
    calls(_call("refund_customer", payment="PAY-10011")),
    says("I cannot do that."),
    says("Good bye."),
)


def _talk(chat: Chat, processor: Processor) -> None:
    """Go through every kind of end, each in a turn of its own."""
    chat.say("find good-card@example.com")
    chat.say("charge INV-1001")
    chat.say("refund 5.00 of PAY-10011 and 20.00 of PAY-10012")
    small, large = chat.reviews()
    approve(small, amount="3.00")
    Review.objects.filter(pk=large.pk).update(note=_NOTE)
    reject(large, "Once is enough.")
    with connection.cursor() as cursor:
        cursor.execute(_BROKEN)
    chat.say("open a ticket: the receipt is missing")
    chat.say("refund 1.00 of PAY-10014")
    processor.fault("garbage_after")
    approve(chat.reviews()[-1])
    settle_pump()
    chat.say("how long does it take, and export last month's payments")
    chat.say("refund PAY-10013")
    chat.say("charge what is open")
    chat.say("thanks")


@pytest.fixture
def sent(chat: Chat, product: Processor, monkeypatch: pytest.MonkeyPatch) -> Iterator[GroqServer]:
    """Return the server after the whole conversation."""
    with groq_serve(*STEPS) as server:

        def model(*_names: Any, **_options: Any) -> BaseChatModel:
            return chat_model(f"groq:{PLAYS}", timeout=5, api_key="k-1", base_url=server.address)

        monkeypatch.setattr(work, "chat_model", model)
        _talk(chat, product)
        assert len(server.bodies) == len(STEPS)
        assert {call.outcome["reason"] for call in Call.objects.all() if call.outcome} == {
            "completed",
            "transient",
            "fatal",
            "policy_block",
        }
        yield server


def _forbidden() -> list[str]:
    """Name what must be in no request; the names of the tools are what a provider is offered."""
    tools = {tool.name for tool in registered()}
    words = names_of_ours() - tools - {"transient", "fatal"}
    hashes = Review.objects.values_list("subject_hash", flat=True)
    return [*words, *hashes, _NOTE, "same-id", "RuntimeError", "CheckViolation", "nothing_new"]


def _as_stored(call: ScriptedCall) -> dict[str, Any]:
    """Return the arguments as a later turn has them: checked, without what remained."""
    written = {} if isinstance(call.arguments, str) else dict(call.arguments)
    try:
        return work.toolset().checked(call.tool, written).arguments
    except ArgumentsBad:
        return written


def test_a_conversation_sends_nothing_of_ours_but_the_ids_of_calls(sent: GroqServer) -> None:
    forbidden = _forbidden()
    assert len(forbidden) > 50
    found = {at: strays(body, *forbidden) for at, body in enumerate(sent.bodies)}
    assert {at: stray for at, stray in found.items() if stray} == {}

    # Each call has one id of ours, and one reply in every request.
    ours = {str(key) for key in Call.objects.values_list("pk", flat=True)}
    for body in sent.bodies:
        assert unanswered(body) == []
        assert set(ids_sent(body)) <= ours
    assert set(ids_sent(sent.bodies[-1])) == ours

    # The arguments are what the model wrote, with the defaults of the tool's own schema.
    wrote = [call for step in STEPS for call in step.calls]
    assert len(ids_sent(sent.bodies[-1])) == len(wrote)
    for body in sent.bodies:
        for (tool, arguments), call in zip(calls_sent(body), wrote, strict=False):
            raw = {} if isinstance(call.arguments, str) else dict(call.arguments)
            assert tool == call.tool
            assert arguments in (raw, _as_stored(call))

    # What our tools said is shown as theirs, and in the assistant's place stands a stub.
    said = [
        message["content"]
        for message in sent.requests[-1]["messages"]
        if message["role"] == "assistant" and message["content"]
    ]
    assert said.count(STUB) == 5
    assert [text for text in said if "charged to Ana Silva" in text] == []
