"""`manage.py reconcile`: what it prints, and the exit code that a job may rely on."""

from __future__ import annotations

import json
from datetime import timedelta
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from payments.models import Payment
from payments.processor.models import Reconciliation
from tests.payments.cast import Desk
from tests.payments.processor import Processor
from tests.processor.books import Books

pytestmark = pytest.mark.django_db


@pytest.fixture
def books(desk: Desk, ledger: Processor) -> Books:
    """Return two sets of books that agree."""
    return Books(desk, ledger)


def run(*arguments: str) -> tuple[int, list[str]]:
    """Run the command; return its exit code and its lines."""
    out = StringIO()
    try:
        call_command("reconcile", *arguments, stdout=out)
    except SystemExit as end:
        return int(str(end.code)), out.getvalue().splitlines()
    return 0, out.getvalue().splitlines()


def test_books_that_agree_end_with_0(books: Books) -> None:
    assert run() == (
        0,
        [
            "Payments in EUR: ours 125.00 EUR, the processor's 125.00 EUR, apart 0.00 EUR",
            "Refunds in EUR: ours 60.00 EUR, the processor's 60.00 EUR, apart 0.00 EUR",
            "3 lines compared, 0 put right, 0 for somebody to look at: both sides agree.",
        ],
    )


def test_what_a_person_must_look_at_ends_with_1_and_what_is_put_right_with_0(
    books: Books,
) -> None:
    name = books.outside(1_000)
    books.age()
    code, lines = run()
    assert code == 1
    assert lines[0].startswith(f"Refund {books.desk.payment.reference} ({name}): we say nothing")
    assert lines[-1].startswith("4 lines compared, 0 put right, 1 for somebody to look at")
    code, lines = run("--apply")
    assert (code, lines[0].endswith("Put right.")) == (0, True)
    assert run()[0] == 0


def test_a_processor_that_is_away_ends_with_2(books: Books) -> None:
    books.processor.fault("server_before")
    code, lines = run("--apply")
    assert code == 2
    assert lines[-1].startswith("The processor gave no certain answer")
    assert Reconciliation.objects.get().result == "silent"


def test_json_is_one_object_a_line(books: Books) -> None:
    Payment.objects.filter(pk=books.payment.pk).update(amount_minor=2_600)
    code, lines = run("--json")
    finding, end = map(json.loads, lines)
    assert code == 1
    assert (finding["event"], finding["difference"]) == ("finding", "amount")
    assert finding["ours"] == {"amount_minor": 2600, "currency": "EUR", "state": "succeeded"}
    assert finding["sentence"].startswith(f"Payment {books.payment.reference}")
    assert (end["event"], end["result"], end["open"]) == ("end", "look", 1)
    assert end["totals"][0]["difference"] == 100


def test_a_period_has_both_of_its_days(books: Books) -> None:
    yesterday = books.noon.date()
    assert run("--from", str(yesterday), "--to", str(yesterday))[1][-1].startswith("3 lines")
    before = str(yesterday - timedelta(days=1))
    assert run("--from", before, "--to", before)[1][-1].startswith("0 lines")
    assert run("--from", before)[1][-1].startswith("3 lines")
    assert run("--to", str(yesterday))[1][-1].startswith("3 lines")


@pytest.mark.parametrize(
    "days", [("--from", "2026-02-02", "--to", "2026-02-01"), ("--to", "2990-01-01")]
)
def test_days_that_are_no_period_are_refused_in_a_sentence(days: Any) -> None:
    with pytest.raises(CommandError, match="the earlier first and none to come"):
        run(*days)
    assert not Reconciliation.objects.exists()
