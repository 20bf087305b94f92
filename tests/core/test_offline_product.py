"""The offline model against the product's own tools: their schemas, and the ledger's real texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings
from django.utils.module_loading import import_string

from agent_core.contract import Tool
from agent_core.toolset import Toolset
from payments.models import Customer, Invoice, Payment
from payments.tools import customer_find, payments_list
from tests.core.fake_desk import FIELDS
from tests.core.fake_desk import Desk as Offline
from tests.payments.cast import Desk as Ledger


def _tools() -> list[Tool]:
    return [tool for path in settings.TOOLSETS for tool in import_string(path)]


def test_the_planner_knows_every_tool_of_the_product_with_its_fields() -> None:
    toolset = Toolset(_tools())
    every = frozenset(tool.right for tool in toolset)
    fields = {tool.name: set(tool.args) for tool in toolset.offered(every)}
    assert fields == {name: set(known) for name, known in FIELDS.items()}


@dataclass
class Played:
    """One turn: the calls of each model message, and the answer."""

    batches: list[list[tuple[str, dict[str, str]]]]
    answer: str


@pytest.fixture
def ledger(db: None) -> Ledger:
    """Return a customer with an open invoice of 25.00 EUR and two payments."""
    desk = Ledger()
    Customer.objects.filter(pk=desk.customer.pk).update(email="good-card@example.com")
    desk.owed(2_500)
    desk.paid(3_000)
    return desk


def _played(ledger: Ledger, words: str) -> Played:
    """Play one turn with the real look-ups; effects are only noted."""
    context = ledger.context(customer_id=None, words=(words,))

    class Real(Offline):
        def _text(self, tool: str, arguments: Any) -> str:
            if tool == "customer_find":
                return customer_find(context, **arguments)[0]
            if tool == "payments_list":
                return payments_list(context, **arguments)[0]
            return "Noted."

    desk = Real()
    batches = desk.ask(words, stop_after=["charge_invoice", "refund_request", "ticket_create"])
    return Played(batches, desk.answer)


def test_the_open_invoice_is_found_in_the_real_statement(ledger: Ledger) -> None:
    invoice = Invoice.objects.get(customer=ledger.customer)
    words = "charge the open invoice of good-card@example.com and open a ticket"
    batches = _played(ledger, words).batches
    assert [name for name, _arguments in batches[1]] == ["charge_invoice", "ticket_create"]
    assert batches[1][0] == ("charge_invoice", {"invoice": invoice.reference})


def test_the_last_payment_is_found_in_the_real_statement(ledger: Ledger) -> None:
    newest = Payment.objects.latest("paid_at")
    batches = _played(ledger, "refund 5.00 of good-card@example.com's last payment").batches
    assert batches[-1] == [("refund_request", {"payment": newest.reference, "amount": "5.00"})]
    assert len(batches) == 2


def test_what_was_paid_is_answered_with_the_real_list(ledger: Ledger) -> None:
    played = _played(ledger, "what did good-card@example.com pay this month?")
    assert len(played.batches) == 1
    assert ledger.payment.reference in played.answer


def test_a_customer_who_is_not_there_ends_in_the_tools_own_words(ledger: Ledger) -> None:
    stranger = f"{uuid4().hex[:6]}@example.com"
    played = _played(ledger, f"refund the last payment of {stranger}")
    assert len(played.batches) == 1
    assert played.answer.startswith(f"No customer was found for “{stranger}”.")
