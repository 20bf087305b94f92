"""The daily comparison follows up what is older, and makes up for days without one."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.utils import timezone

from payments.models import Dispute, Intent, Payment, Refund
from payments.processor import ours as books_of_ours
from payments.processor.models import Reconciliation
from payments.processor.services_reconcile import days_back, reconcile_daily
from tests.payments.cast import Desk
from tests.payments.processor import Processor
from tests.processor.books import Books, found

pytestmark = pytest.mark.django_db


@pytest.fixture
def few(desk: Desk, ledger: Processor) -> Books:
    """Return two agreeing sets of books."""
    return Books(desk, ledger)


def long_ago(few: Books, **days: int) -> None:
    """Let everything of ours have happened so long ago."""
    then = timezone.now() - timedelta(**(days or {"days": 40}))
    Payment.objects.update(paid_at=then)
    for model in (Intent, Refund, Dispute):
        model._default_manager.update(created_at=then)
    kept = few.processor.books()
    for table in ("payment_intents", "refunds", "disputes"):
        for row in kept[table]:
            few.processor.alter(row["id"], created=int(then.timestamp()))


def test_the_beat_follows_up_what_succeeded_weeks_ago(few: Books) -> None:
    long_ago(few)
    few.processor.refund_ends(few.refund.processor_ref, "failed", "declined")
    row = reconcile_daily()
    assert row is not None
    assert (row.result, found(row)) == ("repaired", [("state", "refund", True)])
    assert Refund.objects.get().state == "failed"
    assert row.totals == []


def test_the_beat_leaves_what_is_older_than_a_bank_takes(few: Books) -> None:
    long_ago(few, days=91)
    few.processor.refund_ends(few.refund.processor_ref, "failed", "declined")
    row = reconcile_daily()
    assert row is not None
    assert (row.result, Refund.objects.get().state) == ("equal", "succeeded")


def test_the_beat_follows_up_an_open_dispute_and_an_accepted_refund_of_any_age(few: Books) -> None:
    dispute = few.processor.dispute(few.payment.processor_ref)
    few.outside(1_000)
    few.age()
    few.compare(apply=True)
    outside = Refund.objects.get(intent=None)
    Refund.objects.filter(pk=outside.pk).update(state="accepted", settled_at=None)
    long_ago(few, days=200)
    few.processor.dispute_ends(dispute, "won")
    row = reconcile_daily()
    assert row is not None
    assert row.result == "repaired"
    assert sorted(found(row)) == [("state", "dispute", True), ("state", "refund", True)]
    outside.refresh_from_db()
    assert (outside.state, Dispute.objects.get().state) == ("succeeded", "won")


def test_the_beat_asks_for_a_bounded_number_the_longest_unasked_first(
    few: Books, monkeypatch: pytest.MonkeyPatch
) -> None:
    few.outside(1_000)
    few.age()
    few.compare(apply=True)
    long_ago(few)
    monkeypatch.setattr(books_of_ours, "MOST_FOLLOWED", 1)
    for day in (1, 2):
        Reconciliation.objects.all().delete()
        row = reconcile_daily()
        assert row is not None
        assert row.compared == 1
        assert Refund.objects.exclude(next_look_at=None).count() == day


def test_what_was_followed_up_and_is_not_answered_leaves_the_rest_to_be_asked(few: Books) -> None:
    dispute = few.processor.dispute(few.payment.processor_ref)
    few.age()
    few.compare(apply=True)
    long_ago(few)
    few.processor.alter(dispute, status="warning_closed")
    few.processor.refund_ends(few.refund.processor_ref, "failed", "declined")
    row = reconcile_daily()
    assert row is not None
    assert (row.result, found(row)) == ("repaired", [("state", "refund", True)])


@pytest.mark.parametrize(("gap", "days"), [(1, 2), (2, 2), (9, 9), (60, 31)])
def test_a_gap_of_days_is_made_up(few: Books, gap: int, days: int) -> None:
    _since, until = days_back(timezone.now())
    ended, _midnight = days_back(timezone.now(), gap)
    values = {"gateway": "sandbox", "daily": True, "since": ended - timedelta(days=2)}
    Reconciliation.objects.create(**values, until=ended, result="equal")
    Reconciliation.objects.create(**values, until=until, result="silent")
    row = reconcile_daily()
    assert row is not None
    assert (row.since, row.until) == (days_back(timezone.now(), days)[0], until)
