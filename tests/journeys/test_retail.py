"""The seven things on the imported retail data: five hundred customers, a thousand orders."""

import csv
import io
from collections.abc import Callable, Iterator
from typing import Final

import pytest
from django.core.management import call_command
from pytest_django import DjangoDbBlocker

from agent_core.runs.models import Run
from exports.models import Export
from payments.models import Customer, Invoice, Payment
from tests.journeys.chat import Chat, approve, exports_pump, sent_back, state_of, stop
from tests.journeys.conftest import samples_load
from tests.journeys.databases import copied, template
from tests.journeys.test_export import fetched
from tests.payments.processor import Processor
from tests.payments.retail import FOLDER, needs_data
from tickets.models import Ticket

pytestmark = needs_data


def _load() -> None:
    samples_load()
    call_command("import_retail", str(FOLDER), verbosity=0)


@pytest.fixture(scope="module")
def retail(database_url: str, django_db_blocker: DjangoDbBlocker) -> Iterator[str]:
    """Import the data set once, beside the sample data."""
    with django_db_blocker.unblock(), template(database_url, "retail", _load) as name:
        yield name


@pytest.fixture
def db(retail: str, database_url: str, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Give the test a database of its own with the retail data."""
    with django_db_blocker.unblock(), copied(database_url, retail):
        yield


def test_a_customer_is_found_by_address_order_number_and_name(
    chats: Callable[[str], Chat],
) -> None:
    for key in ("james.li4495@example.com", "#W2611340", "W2611340", "James Li"):
        chat = chats("agent")
        assert stop(chat.say(f"find {key}")) == ("answered", 2, 0)
        lines = chat.answer().splitlines()
        assert lines[0] == "James Li, james.li4495@example.com, CUS-JAMES-LI-5688."
        for reference in ("PAY-W2611340, 536.65 USD", "PAY-W3632959, 933.17 USD"):
            assert reference in chat.answer()


def test_what_a_customer_paid_is_every_order_to_the_cent(chat: Chat, style: str) -> None:
    run = chat.say("what did james.li4495@example.com pay")
    assert stop(run)[0] == "answered"
    paid = ("W2611340, 536.65", "W3632959, 933.17", "W4435622, 287.54", "W3638028, 328.70")
    assert [each for each in paid if f"PAY-{each} USD" not in chat.answer()] == []


def test_an_open_invoice_is_charged_on_the_saved_card(
    chat: Chat, product: Processor, style: str
) -> None:
    run = chat.say("charge INV-W5918442")
    assert stop(run) == ("completed", 1, 1)
    assert chat.answer().endswith(
        "289.66 USD was charged to Sofia Rossi for INV-W5918442, with Mastercard ending in 3357."
    )
    assert (state_of("INV-W5918442"), product.charged()) == (("paid", []), [28_966])


def test_an_orders_payment_is_refunded_in_part_after_review(
    chat: Chat, product: Processor, style: str
) -> None:
    run = chat.say("refund 10.50 of order #W2611340 because one item was missing")
    (review,) = chat.reviews()
    assert (run.state, review.title) == ("waiting", "Refund 10.50 USD to James Li")
    approve(review)
    assert "10.50 USD of PAY-W2611340 was refunded to James Li, to " in chat.answer()
    assert "526.15 USD of this payment is left to refund." in chat.answer()
    assert sent_back(product, "PAY-W2611340") == [1050]


def test_the_whole_order_is_above_the_daily_limit(chat: Chat, product: Processor) -> None:
    run = chat.say("refund order #W2611340")
    assert stop(run) == ("policy_block", 1, 1)
    assert "above your daily limit of 500.00 USD" in chat.answer()
    assert product.books()["requests"] == []


def test_a_cancelled_order_has_nothing_left(chat: Chat, product: Processor) -> None:
    run = chat.say("refund order #W3220387")
    assert stop(run) == ("policy_block", 1, 1)
    said = "Nothing is left to refund on PAY-W3220387: it was refunded in full already, as REF-"
    assert chat.answer().startswith(said)
    assert product.books()["requests"] == []


def test_a_ticket_is_linked_to_an_orders_payment(chat: Chat, style: str) -> None:
    run = chat.say("open a ticket about the missing item for PAY-W2611340")
    assert stop(run) == ("completed", 1, 1)
    ticket = Ticket.objects.get()
    assert ticket.payment_id == Payment.objects.get(reference="PAY-W2611340").pk


def test_a_search_reads_the_same_beside_the_retail_data(chat: Chat) -> None:
    assert stop(chat.say("how long does a refund take?")) == ("completed", 1, 1)
    assert "5 to 7 working days" in chat.answer()


def test_an_export_of_a_month_holds_every_payment_of_it(chat: Chat) -> None:
    chat.say("export payments of March 2026 as csv")
    exports_pump()
    export = Export.objects.get()
    expected = set(
        Payment.objects.filter(
            paid_at__year=2026, paid_at__month=3, customer__team__name="Team North"
        ).values_list("reference", flat=True)
    )
    rows = list(csv.reader(io.StringIO(fetched("agent", export)[1].decode("utf-8-sig"))))
    listed = {cell for row in rows for cell in row if cell.startswith("PAY-")}
    assert (export.state, len(rows) - 1, listed) == ("ready", len(expected), expected)
    assert {"PAY-W2611340"} < expected


NOT_THERE: Final = (
    ("find nobody.here0000@example.com", "customer.not_found"),
    ("find #W0000001", "customer.not_found"),
    ("charge INV-W0000001", "payment.not_found"),
    ("refund order #W0000001", "payment.not_found"),
)


def test_what_is_not_there_is_not_found(chats: Callable[[str], Chat], product: Processor) -> None:
    for words, code in NOT_THERE:
        chat = chats("agent")
        assert stop(chat.say(words))[0] == "answered"
        assert [found for _tool, found in chat.outcomes()] == [code]
    assert product.books()["requests"] == []
    assert Run.objects.filter(state="waiting").count() == 0


def test_an_order_of_another_team_is_not_found(chat: Chat) -> None:
    invoice = Invoice.objects.get(reference="INV-W5918442")
    Customer.objects.filter(pk=invoice.customer_id).update(team_id=_south())
    chat.say("charge INV-W5918442")
    assert [code for _tool, code in chat.outcomes()] == ["payment.not_found"]
    assert state_of("INV-W5918442") == ("open", [])


def _south() -> object:
    return Customer.objects.get(email="other-team@example.com").team_id
