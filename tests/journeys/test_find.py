"""Find: a customer and their payments, read-only; what is another team's is nobody's."""

import logging
import re
from collections.abc import Callable
from typing import Any

import pytest
from django.db import connection
from django.db.models import Model

from agent_core.runs.models import Event, ModelCall, Run
from payments.models import Customer, Intent, Invoice, Payment, Refund
from tests.journeys.chat import Chat, outcome, stop
from tests.payments.processor import Processor

CARD = [
    "Ana Silva, good-card@example.com, CUS-1001.",
    "Saved ways to pay: Visa ending in 4242.",
    "Open invoices:",
    "- INV-1001, 25.00 EUR, due ",
    "Payments:",
    "- PAY-10012, 25.00 EUR, ",
    "- PAY-10011, 40.00 EUR, ",
    "- PAY-10013, 900.00 EUR, ",
    "- PAY-10014, 60.00 EUR, ",
]


def ledger() -> list[list[dict[str, Any]]]:
    """Return every row that a look-up must leave alone."""
    models: tuple[type[Model], ...] = (Customer, Invoice, Payment, Refund, Intent)
    return [list(model._default_manager.order_by("pk").values()) for model in models]


def test_a_customer_is_found_and_the_model_is_called_again_with_them(
    chat: Chat, style: str
) -> None:
    before = ledger()
    run = chat.say("find good-card@example.com")
    (call,) = chat.calls()
    assert (call.tool, call.state, outcome(call)["reason"]) == (
        "customer_find",
        "done",
        "completed",
    )
    assert outcome(call)["stop"] is False
    assert stop(run) == ("answered", 2, 0)
    lines = chat.answer().splitlines()
    assert [line[: len(start)] for line, start in zip(lines, CARD, strict=True)] == CARD
    assert lines[-1].endswith("50.00 EUR left to refund")
    assert ledger() == before
    chat.conversation.refresh_from_db()
    assert chat.conversation.customer_label == "Ana Silva (good-card@example.com)"


def test_the_payments_of_last_month_are_listed_and_no_others(chat: Chat, style: str) -> None:
    run = chat.say("what did good-card@example.com pay last month")
    assert chat.outcomes() == [("payments_list", "payments.listed")]
    assert stop(run) == ("answered", 2, 0)
    for reference in ("PAY-10011", "PAY-10012"):
        assert reference in chat.answer()
    for reference in ("PAY-10013", "PAY-10014"):
        assert reference not in chat.answer()


def test_a_customer_is_found_by_name_and_by_any_reference(chats: Callable[[str], Chat]) -> None:
    for key in ("Ana Silva", "CUS-1001", "INV-1001", "PAY-10011"):
        chat = chats("agent")
        chat.say(f"find {key}")
        assert chat.answer().startswith("Ana Silva, good-card@example.com, CUS-1001."), key


def test_another_customer_in_the_same_conversation_is_refused(chat: Chat) -> None:
    chat.say("find good-card@example.com")
    run = chat.say("find yen@example.com")
    assert stop(run) == ("policy_block", 1, 1)
    assert chat.answer() == (
        "This conversation is about Ana Silva (good-card@example.com). Please open another "
        "conversation for another customer."
    )
    chat.conversation.refresh_from_db()
    assert chat.conversation.customer_label == "Ana Silva (good-card@example.com)"


# What another team has, and something alike that nobody has; alike in length too.
PAIRS = (
    ("find {}", "other-team@example.com", "othor-toam@example.com"),
    ("find {}", "Oscar Ferreira", "Oskar Ferreiro"),
    ("what did {} pay last month", "CUS-1007", "CUS-1777"),
    ("charge {}", "INV-1007", "INV-1777"),
    ("refund 5.00 of {}", "PAY-10071", "PAY-19971"),
    ("refund 5 of {0} and 5.00 of {0}", "PAY-10071", "PAY-19971"),
    ("open a ticket about the late box for {}", "PAY-10071", "PAY-19971"),
)


KEPT = ("tool", "arguments", "state", "verdict", "rule", "content", "outcome", "label", "effect")


def traces(chat: Chat, key: str) -> str:
    """Return all that a conversation left behind, with the key blanked out."""
    run = Run.objects.get(conversation=chat.conversation)
    rows: dict[str, Any] = {
        "lines": chat.lines(),
        "calls": [{name: getattr(call, name) for name in KEPT} for call in chat.calls()],
        # Two calls of one batch run side by side, so their events have no order of their own.
        "events": sorted(
            _without_ids(f"{event.kind} {event.payload}")
            for event in Event.objects.filter(conversation=chat.conversation)
        ),
        "models": list(
            ModelCall.objects.filter(run=run).values_list("number", "input_tokens", "output_tokens")
        ),
        "stop": (run.stop.rule, run.stop.headline, run.stop.done, run.stop.not_done),
        "reviews": chat.reviews(),
        "customer": (chat.conversation.customer_id, chat.conversation.customer_label),
    }
    text = repr(rows).replace(key, "KEY").replace(key.lower(), "KEY")
    return _without_ids(text)


def _without_ids(text: str) -> str:
    text = re.sub(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "uuid", text)
    return re.sub(r"\d{4}-\d\d-\d\d[T ][\d:.]+(?:\+00:00|Z)?", "moment", text)


@pytest.mark.parametrize(("words", "theirs", "nobodys"), PAIRS)
def test_what_is_another_teams_reads_byte_for_byte_like_what_nobody_has(
    chats: Callable[[str], Chat],
    caplog: pytest.LogCaptureFixture,
    words: str,
    theirs: str,
    nobodys: str,
) -> None:
    left = []
    denied = []
    for key in (theirs, nobodys):
        caplog.clear()
        chat = chats("agent")
        with caplog.at_level(logging.WARNING, logger="payments.selectors"):
            chat.say(words.format(key))
        left.append(traces(chat, key))
        denied.append({r.getMessage() for r in caplog.records if r.name == "payments.selectors"})
    assert left[0] == left[1]
    # Only the audit, which no staff member reads, tells the two apart. A name is a search, no key.
    exact = theirs != "Oscar Ferreira"
    assert denied == [{"scope.denied"} if exact else set(), set()]


def test_of_another_teams_customer_no_trace_is_kept_anywhere(
    chat: Chat, product: Processor
) -> None:
    for words, theirs, _nobodys in PAIRS[3:5]:
        chat.say(words.format(theirs))
    customer = Customer.objects.get(email="other-team@example.com")
    invoice = Invoice.objects.get(customer=customer)
    payments = Payment.objects.filter(customer=customer)
    # With the currency: a clock shows "50.00" too.
    amounts = ["50.00 EUR", "85.00 EUR", "45.00 EUR"]
    secrets = [customer.pk, customer.name, customer.email, customer.reference, invoice.pk]
    secrets += [*(payment.pk for payment in payments), "PAY-10072", "in 0007", *amounts]
    kept = _everything_kept()
    assert "PAY-10071" in kept, "the staff member's own words are kept, so the search works"
    assert [secret for secret in secrets if str(secret) in kept] == []
    assert [secret.hex for secret in (customer.pk, invoice.pk) if secret.hex in kept] == []
    assert product.books()["requests"] == []


def _everything_kept() -> str:
    """Return the whole content of the tables of runs, reviews, tickets and checkpoints."""
    texts: list[str] = []
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT table_name FROM information_schema.tables WHERE table_schema = 'public' AND "
            "(table_name ~ '^(runs|reviews|tickets|exports)_' OR table_name ~ '^checkpoint')"
        )
        names = [name for (name,) in cursor.fetchall()]
        assert {"runs_event", "runs_call", "checkpoints", "checkpoint_blobs"} <= set(names)
        for name in names:
            cursor.execute(f'SELECT * FROM "{name}"')  # noqa: S608 - a name from the catalogue
            for row in cursor.fetchall():
                texts += [
                    bytes(cell).decode("utf-8", "replace")
                    if isinstance(cell, bytes | memoryview)
                    else str(cell)
                    for cell in row
                ]
    return "\n".join(texts)
