"""The retail data set: exact, the same each time, and usable for the desk's work."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import CommandError, call_command
from django.db.models import Model, Sum

from payments.models import Customer, Invoice, Payment, PaymentMethod, Refund, Team
from payments.samples.retail import minor
from payments.sandbox.tokens import earlier_of
from reviews.models import Review
from tests.payments.assistant.stage import Conversation
from tests.payments.processor import Processor
from tests.payments.retail import FOLDER, needs_data

MODELS: tuple[type[Model], ...] = (Team, Customer, PaymentMethod, Invoice, Payment, Refund)


def everything() -> dict[str, list[dict[str, Any]]]:
    """Return every row of every table that the import fills."""
    return {each.__name__: list(each._default_manager.order_by("pk").values()) for each in MODELS}


def review_payment(review: Review) -> str:
    """Return the processor's name of the payment that a review is about."""
    return str(Payment.objects.get(pk=str(review.subject_id)).processor_ref)


@needs_data
def test_the_whole_set_is_imported_to_the_cent_and_twice_changes_nothing(
    db: None, capsys: pytest.CaptureFixture[str]
) -> None:
    call_command("import_retail", str(FOLDER))
    assert capsys.readouterr().out == (
        "Retail data: 500 customers and 1000 orders read; new are 500 customers, 695 ways to pay, "
        f"1000 payments, 102 refunds and {Invoice.objects.count()} open invoices.\n"
    )
    before = everything()
    call_command("import_retail", str(FOLDER))
    assert capsys.readouterr().out == (
        "Retail data: 500 customers and 1000 orders read; new are 0 customers, 0 ways to pay, "
        "0 payments, 0 refunds and 0 open invoices.\n"
    )
    assert everything() == before
    data = json.loads((FOLDER / "db.json").read_text("utf-8"), parse_float=Decimal)
    lines = [line for order in data["orders"].values() for line in order["payment_history"]]
    for kind, model in (("payment", Payment), ("refund", Refund)):
        exact = sum(Decimal(line["amount"]) for line in lines if line["transaction_type"] == kind)
        total = model.objects.aggregate(total=Sum("amount_minor"))["total"]
        assert Decimal(total).scaleb(-2) == exact
    order = Payment.objects.get(reference="PAY-W2611340")
    assert (order.amount_minor, order.currency) == (53665, "USD")
    assert order.paid_at.isoformat() == "2026-03-11T14:20:00+00:00"
    assert str(order.customer.team) == "Team North"
    assert Invoice.objects.filter(state="open").count() == Invoice.objects.count() > 50
    assert max(row.paid_at for row in Payment.objects.all()).isoformat() < "2026-11-01"


@needs_data
def test_an_imported_order_is_found_by_number_refunded_and_its_customer_charged(
    agent: User, lead: User, processor: Processor
) -> None:
    call_command("import_retail", str(FOLDER), verbosity=0)
    talk = Conversation(agent, ["refund 10.50 of order #W2611340"])
    content, _artifact = talk.run("customer_find", key="#W2611340")
    assert content.startswith("James Li, ")
    review = talk.ask("refund_request", payment="#W2611340", amount="10.50")
    assert review.title == "Refund 10.50 USD to James Li"
    talk.approved(review, lead)
    content, artifact = talk.act("refund_request", review)
    assert artifact["code"] == "refund.completed"
    assert "10.50 USD of PAY-W2611340 was refunded to James Li" in content
    assert "526.15 USD of this payment is left to refund." in content
    owed = Invoice.objects.filter(reference__startswith="INV-W").order_by("reference")[0]
    other = Conversation(agent, [f"charge {owed.reference}"])
    assert other.run("charge_invoice", invoice=owed.reference)[1]["code"] == "charge.completed"
    assert processor.charged() == [owed.amount_minor]
    assert processor.refunded(review_payment(review)) == [1050]


@needs_data
def test_a_cancelled_order_has_nothing_left_on_either_side(
    agent: User, lead: User, processor: Processor
) -> None:
    call_command("import_retail", str(FOLDER), verbosity=0)
    refund = Refund.objects.get(reference="REF-W3220387")
    assert (refund.amount_minor, refund.payment.amount_minor) == (60891, 60891)
    books = earlier_of(refund.payment.processor_ref)
    assert books is not None
    assert (books.amount, books.refunded, books.currency) == (60891, 60891, "usd")
    talk = Conversation(agent, ["refund #W3220387"])
    blocked = talk.gated("refund_request", payment="#W3220387")
    assert blocked.record.rule == "refund.already_refunded"
    assert blocked.record.content.startswith(
        "Nothing is left to refund on PAY-W3220387: it was refunded in full already, as REF-"
    )


@pytest.mark.parametrize(
    ("amount", "units"),
    [("19.99", 1999), ("8.29", 829), ("0.29", 29), ("500", 50_000), ("9715.41", 971_541)],
)
def test_amounts_are_exact(amount: str, units: int) -> None:
    assert minor(Decimal(amount)) == units
    assert minor(amount) == units


@pytest.mark.parametrize("amount", [19.99, True, "1.005", "abc", "NaN", "Infinity"])
def test_an_amount_that_is_not_exact_is_refused(amount: Any) -> None:
    with pytest.raises((ValueError, ArithmeticError)):
        minor(amount)


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (None, "There is no readable db.json in"),
        ("{", "is not valid JSON"),
        ("[]", "is not the retail data set"),
        ('{"users": {}}', "is not the retail data set"),
        ('{"users": {}, "orders": {"#W1": {"order_id": "#W1"}}}', "is not the retail data set"),
        ('{"users": 5, "orders": 6}', "is not the retail data set"),
    ],
)
def test_a_bad_folder_is_one_sentence_and_stores_nothing(
    db: None, tmp_path: Path, content: str | None, sentence: str
) -> None:
    if content is not None:
        (tmp_path / "db.json").write_text(content, encoding="utf-8")
    with pytest.raises(CommandError) as refused:
        call_command("import_retail", str(tmp_path))
    assert sentence in str(refused.value)
    assert "\n" not in str(refused.value)
    assert not Customer.objects.exists()
    assert not Team.objects.exists()


@needs_data
@pytest.mark.parametrize("harm", ["amount", "method", "owner", "over"])
def test_a_garbled_set_is_refused_as_a_whole(db: None, tmp_path: Path, harm: str) -> None:
    data = json.loads((FOLDER / "db.json").read_text("utf-8"))
    order = data["orders"]["#W3220387"]
    if harm == "amount":
        order["payment_history"][0]["amount"] = 608.915
    elif harm == "method":
        order["payment_history"][0]["payment_method_id"] = "nobody_1"
    elif harm == "owner":
        order["user_id"] = "nobody_1"
    else:
        order["payment_history"][1]["amount"] = 700.0
    (tmp_path / "db.json").write_text(json.dumps(data), encoding="utf-8")
    with pytest.raises(CommandError):
        call_command("import_retail", str(tmp_path))
    assert not Customer.objects.exists()
