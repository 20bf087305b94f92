"""Each way in which the two books can differ is found, told in a sentence, and put right or not."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings
from django.contrib.auth.models import Permission
from django.utils import timezone, translation

from payments.gateways.base import Order, gateway_named
from payments.models import Intent, Payment, Refund
from payments.processor.comparing import ON_THE_WAY
from payments.processor.models import Reconciliation
from payments.processor.services_reconcile import reconcile, reconcile_daily
from payments.processor.wording import finding_sentence, total_sentence
from payments.sandbox.tokens import earlier_ref, method_token
from payments.services import charge_make
from payments.states import Operation
from tests.payments.cast import Desk
from tests.payments.processor import Processor
from tests.processor.books import Books, found

pytestmark = pytest.mark.django_db

GATEWAYS = ("sandbox", "stripe")


@pytest.fixture(params=GATEWAYS)
def books(request: Any, desk: Desk, ledger: Processor, settings: Any) -> Books:
    """Return two agreeing sets of books, read through each gateway in turn."""
    settings.PAYMENT_GATEWAY = request.param
    return Books(desk, ledger)


@pytest.fixture
def few(desk: Desk, ledger: Processor) -> Books:
    """Return the same through one gateway, for what no gateway has a part in."""
    return Books(desk, ledger)


def sentence(row: Reconciliation) -> str:
    """Return the one finding as it is told."""
    assert len(row.findings) == 1, row.findings
    return finding_sentence(row.findings[0])


def test_books_that_agree_have_nothing_to_tell(books: Books) -> None:
    row = books.compare()
    assert (row.result, row.findings, row.open_findings, row.compared) == ("equal", [], 0, 3)
    assert row.totals == [
        {"kind": "payment", "currency": "EUR", "ours": 12_500, "theirs": 12_500, "difference": 0},
        {"kind": "refund", "currency": "EUR", "ours": 6_000, "theirs": 6_000, "difference": 0},
    ]


def test_a_refund_made_outside_is_entered_with_apply_only(books: Books) -> None:
    name = books.outside(1_000)
    books.age()
    row = books.compare()
    assert (row.result, found(row)) == ("look", [("refund_outside", "refund", False)])
    assert sentence(row) == (
        f"Refund {books.desk.payment.reference} ({name}): we say nothing, the processor says "
        "10.00 EUR, succeeded. Enter it, so that no more is refunded than is left."
    )
    assert Refund.objects.count() == 1
    assert row.totals[1]["difference"] == -1_000

    row = books.compare(apply=True)
    assert (row.result, found(row)) == ("repaired", [("refund_outside", "refund", True)])
    assert Refund.objects.get(processor_ref=name).amount_minor == 1_000
    assert row.totals[1]["difference"] == 0
    assert books.compare().result == "equal"


def test_a_refund_that_failed_days_later_is_taken_over(books: Books) -> None:
    books.processor.refund_ends(books.refund.processor_ref, "failed", "declined")
    row = books.compare()
    assert (row.result, found(row)) == ("look", [("state", "refund", False)])
    assert sentence(row) == (
        f"Refund {books.refund.reference} ({books.refund.processor_ref}): we say 60.00 EUR, "
        "succeeded, the processor says 60.00 EUR, failed. Take over the later state."
    )
    assert books.compare(apply=True).result == "repaired"
    assert Refund.objects.get().state == "failed"


def test_a_dispute_that_nobody_told_of_is_entered(books: Books) -> None:
    books.processor.dispute(books.payment.processor_ref)
    books.age()
    assert found(books.compare()) == [("dispute_missing", "dispute", False)]
    row = books.compare(apply=True)
    assert (row.result, found(row)) == ("repaired", [("dispute_missing", "dispute", True)])
    assert Payment.objects.get(pk=books.payment.pk).disputed is True


def test_a_dispute_that_ended_there_ends_here(books: Books) -> None:
    name = books.processor.dispute(books.payment.processor_ref)
    books.age()
    books.compare(apply=True)
    books.processor.dispute_ends(name, "won")
    row = books.compare(apply=True)
    assert (row.result, found(row)) == ("repaired", [("state", "dispute", True)])
    assert Payment.objects.get(pk=books.payment.pk).disputed is False


def test_a_mark_without_a_dispute_is_for_a_person(books: Books) -> None:
    Payment.objects.filter(pk=books.payment.pk).update(disputed=True)
    row = books.compare(apply=True)
    assert (row.result, found(row)) == ("look", [("flag_without_dispute", "payment", False)])
    assert Payment.objects.get(pk=books.payment.pk).disputed is True


def test_an_unknown_charge_that_was_made_is_settled(books: Books) -> None:
    books.processor.fault("drop_after")
    invoice = books.desk.owed(1_100)
    result = charge_make(
        context=books.desk.context(),
        invoice_id=invoice.pk,
        amount_minor=1_100,
        currency="EUR",
        method_id=books.desk.method.pk,
    )
    assert result.state == "unknown"
    books.age()
    row = books.compare()
    assert found(row) == [("state", "payment", False)]
    assert f"Payment {invoice.reference}" in sentence(row)
    assert "we say 11.00 EUR, being checked" in sentence(row)
    row = books.compare(apply=True)
    assert (row.result, found(row)) == ("repaired", [("state", "payment", True)])
    invoice.refresh_from_db()
    assert invoice.state == "paid"
    assert row.totals[0]["difference"] == 0


def test_an_unknown_refund_that_nobody_made_is_for_a_person(few: Books) -> None:
    few.processor.fault("drop_before")
    few.given_back(1_000)
    few.age()
    row = few.compare(apply=True)
    assert (row.result, found(row)) == ("look", [("unsettled", "refund", False)])
    # It is the settle task's to send, and nobody else's.
    assert Intent.objects.filter(state="open").count() == 1
    assert few.processor.refunded(few.desk.payment.processor_ref) == [6_000]


def test_what_is_on_its_way_is_no_finding(few: Books) -> None:
    few.processor.fault("drop_before")
    refund = few.given_back(1_000)
    few.age()
    just_now = timezone.now() - timedelta(minutes=5)
    Refund.objects.filter(pk=refund.pk).update(created_at=just_now)
    since, until = just_now - timedelta(minutes=1), timezone.now()
    assert reconcile(since=since, until=until, apply=False).findings == []
    Refund.objects.filter(pk=refund.pk).update(created_at=just_now - ON_THE_WAY)
    found_later = reconcile(since=since - ON_THE_WAY, until=until, apply=False)
    assert found(found_later) == [("unsettled", "refund", False)]


@pytest.mark.parametrize(
    ("column", "value", "difference", "told"),
    [
        ("amount", 5_999, "amount", "59.99 EUR"),
        ("currency", "usd", "currency", "60.00 USD"),
    ],
)
def test_amounts_and_currencies_that_differ_are_never_changed(
    books: Books, column: str, value: Any, difference: str, told: str
) -> None:
    books.processor.alter(books.refund.processor_ref, **{column: value})
    row = books.compare(apply=True)
    assert (row.result, found(row)) == ("look", [(difference, "refund", False)])
    assert f"we say 60.00 EUR, succeeded, the processor says {told}, succeeded." in sentence(row)
    kept = Refund.objects.get()
    assert (kept.amount_minor, kept.currency, kept.state) == (6_000, "EUR", "succeeded")


def test_our_own_amount_that_was_altered_is_found_too(few: Books) -> None:
    Payment.objects.filter(pk=few.payment.pk).update(amount_minor=2_600)
    row = few.compare(apply=True)
    assert (row.result, found(row)) == ("look", [("amount", "payment", False)])
    assert row.totals[0]["difference"] == 100


def test_a_payment_that_only_the_processor_knows_is_for_a_person(books: Books) -> None:
    made = books.there(
        "payment_intents",
        amount="700",
        currency="eur",
        confirm="true",
        payment_method=method_token("1"),
    )
    books.age()
    row = books.compare(apply=True)
    assert (row.result, found(row)) == ("look", [("payment_unknown", "payment", False)])
    assert sentence(row).startswith(f"Payment ({made['id']}): we say nothing, the processor says 7")
    assert Payment.objects.count() == 2


def test_a_declined_payment_that_only_the_processor_knows_moved_nothing(few: Books) -> None:
    few.there(
        "payment_intents",
        amount="700",
        currency="eur",
        confirm="true",
        payment_method=method_token("1", "declined"),
    )
    few.age()
    assert few.compare().result == "equal"


def test_a_refund_of_a_payment_that_we_do_not_know_is_for_a_person(few: Books) -> None:
    strange = earlier_ref("strange", 5_000, "EUR")
    few.outside(500, strange)
    few.age()
    row = few.compare(apply=True)
    assert sorted(found(row)) == [
        ("payment_unknown", "payment", False),
        ("refund_of_unknown", "refund", False),
    ]


def test_what_the_processor_never_had_is_for_a_person(books: Books) -> None:
    books.processor.lose(books.refund.processor_ref)
    books.processor.lose(books.payment.processor_ref)
    row = books.compare(apply=True)
    assert (row.result, sorted(found(row))) == (
        "look",
        [("missing_there", "payment", False), ("missing_there", "refund", False)],
    )
    assert [total["difference"] for total in row.totals] == [2_500, 6_000]


def test_a_row_of_another_day_than_its_object_is_asked_for_and_agrees(few: Books) -> None:
    earlier = few.noon - timedelta(days=30)
    few.processor.alter(few.refund.processor_ref, created=int(earlier.timestamp()))
    row = few.compare()
    assert (row.result, row.compared) == ("equal", 3)


def test_objects_at_the_edge_of_two_days_are_compared_once(few: Books) -> None:
    edge = few.noon - timedelta(hours=12)
    Refund.objects.update(created_at=edge + timedelta(seconds=2))
    few.processor.alter(few.refund.processor_ref, created=int(edge.timestamp()) - 2)
    row = few.compare()
    assert (row.result, row.compared, row.totals[1]["theirs"]) == ("equal", 3, 6_000)


@pytest.mark.parametrize("fault", ["server_before", "drop_before", "access", "rate"])
def test_a_processor_that_does_not_answer_is_not_agreement(books: Books, fault: str) -> None:
    books.processor.fault(fault)
    row = books.compare(apply=True)
    assert row.result == "silent"


def test_every_page_of_a_long_list_is_read(books: Books) -> None:
    for number in range(104):
        books.outside(1 + number % 2)
    books.age()
    row = books.compare(apply=True)
    assert (row.result, row.repaired, Refund.objects.count()) == ("repaired", 104, 105)
    assert books.compare().result == "equal"


def test_it_is_told_in_the_readers_language_and_marks(few: Books) -> None:
    few.outside(1_000)
    few.age()
    row = few.compare()
    with translation.override("de"):
        assert "10,00 EUR" in finding_sentence(row.findings[0])
    assert total_sentence(row.totals[1]) == (
        "Refunds in EUR: ours 60.00 EUR, the processor's 70.00 EUR, apart -10.00 EUR"
    )


def test_the_beat_compares_once_a_day_and_puts_right_what_is_safe(
    few: Books, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    few.outside(1_000)
    few.age()
    row = reconcile_daily()
    assert row is not None
    assert (row.result, row.daily, row.applied) == ("repaired", True, True)
    assert reconcile_daily() is None
    assert "reconcile.look" not in [record.message for record in caplog.records]


def test_the_beat_only_reports_where_it_is_told_so_and_alerts(
    few: Books, settings: Any, caplog: pytest.LogCaptureFixture
) -> None:
    settings.RECONCILE_APPLY = False
    few.outside(1_000)
    few.age()
    row = reconcile_daily()
    assert row is not None
    assert (row.result, row.applied, Refund.objects.count()) == ("look", False, 1)
    alerts = [r for r in caplog.records if r.message == "reconcile.look"]
    assert [alert.levelname for alert in alerts] == ["ERROR"]


def test_a_day_that_could_not_be_compared_is_tried_again(few: Books) -> None:
    few.processor.fault("server_before")
    first, second = reconcile_daily(), reconcile_daily()
    assert first is not None
    assert second is not None
    assert (first.result, second.result) == ("silent", "equal")


def test_a_comparison_whose_worker_died_is_made_anew(few: Books) -> None:
    row = reconcile_daily()
    assert row is not None
    Reconciliation.objects.update(result="running")
    assert reconcile_daily() is None
    Reconciliation.objects.update(begun_at=timezone.now() - timedelta(hours=7))
    assert reconcile_daily() is not None


def test_operators_read_on_their_page_what_a_person_must_look_at(few: Books, client: Any) -> None:
    few.outside(1_000)
    few.age()
    few.compare()
    few.desk.lea.user_permissions.add(Permission.objects.get(codename="operate"))
    client.force_login(few.desk.lea)
    page = client.get("/operator/").content.decode()
    assert "Somebody must look." in page
    assert "we say nothing, the processor says 10.00 EUR, succeeded." in page
    few.compare(apply=True)
    page = client.get("/operator/").content.decode()
    assert "Both sides agree after repairs." in page
    assert "we say nothing" not in page


def test_the_administration_shows_comparisons_and_events_and_changes_none(
    few: Books, admin_client: Any
) -> None:
    few.outside(1_000)
    few.age()
    row = few.compare()
    address = f"/admin/processor/reconciliation/{row.pk}/change/"
    assert (
        "we say nothing, the processor says 10.00 EUR" in admin_client.get(address).content.decode()
    )
    assert admin_client.get("/admin/processor/processorevent/").status_code == 200
    assert admin_client.post(address, {"result": "equal"}).status_code == 403
    assert admin_client.post(f"/admin/processor/reconciliation/{row.pk}/delete/").status_code == 403
    assert admin_client.get("/admin/processor/reconciliation/add/").status_code == 403


@pytest.mark.parametrize("rows", [[], [{"object": "refund"}], ["nothing"]])
def test_a_list_that_says_more_and_not_where_is_no_list(books: Books, rows: list[Any]) -> None:
    books.processor.answer(200, {"object": "list", "data": rows, "has_more": True})
    assert books.compare().result == "silent"
    since, about = timezone.now(), {"payment_intent": "pi_1"}
    order = Order(operation=Operation.REFUND, intent_id=uuid4(), key="k", body=about, since=since)
    books.processor.answer(200, {"object": "list", "data": rows, "has_more": True})
    reply = gateway_named(settings.PAYMENT_GATEWAY).find(order)
    assert reply is not None
    assert (reply.state, reply.detail) == ("unknown", "200 no list")


def test_rows_of_another_gateway_are_not_held_against_this_one(few: Books) -> None:
    few.processor.lose(few.refund.processor_ref)
    few.processor.lose(few.payment.processor_ref)
    assert few.compare().result == "look"
    Intent.objects.update(gateway="stripe")
    assert few.compare().result == "equal"


def test_a_mark_on_a_payment_without_a_name_there_is_not_looked_up(few: Books) -> None:
    """Without a name the list would be of everybody's disputes."""
    few.processor.dispute(few.desk.payment.processor_ref)
    few.age()
    few.compare(apply=True)
    Payment.objects.filter(pk=few.payment.pk).update(disputed=True, processor_ref="")
    asked = few.processor.asked("GET /v1/disputes")
    found_now = found(few.compare())
    assert ("flag_without_dispute", "payment", False) in found_now
    # The days' own lists, and none for the mark.
    assert few.processor.asked("GET /v1/disputes") - asked == 2
