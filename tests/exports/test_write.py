"""The worker's part: one snapshot, one file, a bar that never goes back, a check at the end."""

from __future__ import annotations

import csv
import hashlib
import io
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.files.storage import default_storage
from django.db import OperationalError, connections
from django.utils import timezone

from agent_core.runs.models import Conversation
from exports import services_write
from exports.formats.csv import CsvFormat
from exports.models import Export
from exports.services import export_cancel
from exports.services_write import export_write
from exports.snapshot import ALIAS, snapshot
from exports.states import ExportState
from payments.models import Customer, Payment, Team
from tests.exports.conftest import (
    MARCH,
    Ask,
    customer_of,
    done,
    during,
    events,
    files,
    payment_of,
    payments_many,
    refund_of,
)
from tests.rig.threads import elsewhere

# The snapshot is a connection of its own, so the rows must have been committed.
pytestmark = pytest.mark.django_db(transaction=True)


def rows_of(export: Export) -> list[list[str]]:
    with default_storage.open(export.file) as file:
        return list(csv.reader(io.StringIO(file.read().decode("utf-8-sig"), newline="")))


def test_the_file_holds_the_payments_of_the_period_and_of_the_team(
    ana: User, customer: Customer, other_team: Team, ask: Ask
) -> None:
    Payment.objects.all().delete()
    payment_of(
        customer, reference="PAY-1", paid_at=datetime(2026, 3, 1, tzinfo=UTC), amount_minor=500
    )
    payment_of(
        customer,
        reference="PAY-2",
        paid_at=datetime(2026, 3, 31, 23, 59, 59, 999999, tzinfo=UTC),
        currency="JPY",
        amount_minor=500,
        state="failed",
        disputed=True,
    )
    payment_of(customer, paid_at=datetime(2026, 2, 28, 23, 59, 59, tzinfo=UTC))
    payment_of(customer, paid_at=datetime(2026, 4, 1, tzinfo=UTC))
    payment_of(customer_of(other_team))
    export = ask()
    Payment.objects.filter(paid_at=MARCH, customer=customer).delete()
    assert export_write(export.pk) is True
    assert rows_of(done(export)) == [
        [
            "Payment",
            "Paid at (UTC)",
            "Customer",
            "Name",
            "Email",
            "Invoice",
            "Amount",
            "Currency",
            "State",
            "Disputed",
            "Paid with",
        ],
        [
            "PAY-1",
            "2026-03-01 00:00:00",
            customer.reference,
            "Zoë Nováková",
            customer.email,
            "",
            "5.00",
            "EUR",
            "succeeded",
            "no",
            "Visa 4242",
        ],
        [
            "PAY-2",
            "2026-03-31 23:59:59",
            customer.reference,
            "Zoë Nováková",
            customer.email,
            "",
            "500",
            "JPY",
            "failed",
            "yes",
            "Visa 4242",
        ],
    ]


def test_refunds_are_exported_with_reasons_that_no_spreadsheet_runs(
    ask: Ask, customer: Customer, ana: User
) -> None:
    refund = refund_of(payment_of(customer), reason="=1+1", requested_by=ana)
    export = ask(kind="refunds")
    export_write(export.pk)
    header, row = rows_of(done(export))
    assert header[0] == "Refund"
    assert row == [
        refund.reference,
        "2026-03-16 10:30:00",
        "",
        refund.payment.reference,
        customer.reference,
        "Zoë Nováková",
        "2.50",
        "EUR",
        "succeeded",
        "'=1+1",
        "ana",
    ]


def test_one_currency_may_be_asked_for(ask: Ask, customer: Customer) -> None:
    payment_of(customer, currency="JPY", amount_minor=900)
    export = ask(currency="JPY")
    export_write(export.pk)
    assert [row[6:8] for row in rows_of(done(export))[1:]] == [["900", "JPY"]]


def test_a_ready_export_knows_its_file(ask: Ask, settings: Any) -> None:
    settings.EXPORT_HOURS = 5
    export = ask()
    export_write(export.pk)
    done(export)
    assert (export.state, export.rows_done, export.rows_total) == ("ready", 1, 1)
    assert (export.attempt, export.lease_until, export.failure) == (1, None, "")
    assert files() == [f"{export.pk.hex}-1.csv"]
    with default_storage.open(export.file) as file:
        text = file.read()
    assert (export.bytes, export.sha256) == (len(text), hashlib.sha256(text).hexdigest())
    assert export.expires_at is not None
    assert abs(export.expires_at - timezone.now() - timedelta(hours=5)) < timedelta(minutes=1)


def test_progress_is_told_step_by_step_and_is_full_only_at_the_end(
    ask: Ask, customer: Customer, conversation: Conversation
) -> None:
    payments_many(customer, 2499)
    export = ask(conversation_id=conversation.pk)
    export_write(export.pk)
    told = [(event["state"], event["done"], event["total"]) for event in events(conversation.pk)]
    assert told == [
        ("queued", 0, 2500),
        ("counting", 0, 2500),
        ("writing", 0, 2500),
        ("writing", 500, 2500),
        ("writing", 1000, 2500),
        ("writing", 1500, 2500),
        ("writing", 2000, 2500),
        ("writing", 2499, 2500),
        ("checking", 2499, 2500),
        ("ready", 2500, 2500),
    ]
    assert len(rows_of(done(export))) == 2501


def test_progress_can_be_seen_by_others_while_the_snapshot_is_open(
    ask: Ask, customer: Customer, monkeypatch: pytest.MonkeyPatch
) -> None:
    payments_many(customer, 1200)
    export = ask()
    seen: list[tuple[str, int]] = []

    def look() -> None:
        seen.append(elsewhere(lambda: Export.objects.values_list("state", "rows_done").get()))

    during(monkeypatch, 700, look)
    export_write(export.pk)
    assert seen == [("writing", 500)]


def test_what_is_paid_meanwhile_is_not_in_the_file(
    ask: Ask, customer: Customer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writer has counted; another connection commits a payment; the writer begins to read.
    Rows counted and rows written are of the same moment.
    """
    payments_many(customer, 10)
    export, original = ask(), services_write._counted

    def then(*values: Any) -> None:
        original(*values)
        elsewhere(lambda: payment_of(customer))

    monkeypatch.setattr(services_write, "_counted", then)
    assert export_write(export.pk) is True
    assert done(export).state == ExportState.READY
    assert (export.rows_total, len(rows_of(export)) - 1) == (11, 11)
    assert Payment.objects.count() == 12


def test_the_snapshot_reads_only_and_leaves_no_connection(ask: Ask) -> None:
    with snapshot() as alias, connections[alias].cursor() as cursor:
        cursor.execute("SHOW transaction_isolation")
        assert cursor.fetchone() == ("repeatable read",)
        cursor.execute("SHOW transaction_read_only")
        assert cursor.fetchone() == ("on",)
        reader = connections[alias]
    assert reader.connection is None
    with pytest.raises(Exception, match=ALIAS):
        connections[ALIAS]


def test_rows_come_through_a_cursor_on_the_server(
    ask: Ask, customer: Customer, monkeypatch: pytest.MonkeyPatch
) -> None:
    payments_many(customer, 4500)
    export, open_cursors = ask(), []

    def look() -> None:
        with connections[ALIAS].cursor() as cursor:
            cursor.execute("SELECT count(*) FROM pg_cursors WHERE name LIKE '_django_curs_%'")
            open_cursors.append(cursor.fetchone())

    during(monkeypatch, 10, look)
    export_write(export.pk)
    assert open_cursors == [(1,)]
    assert done(export).state == ExportState.READY


def test_a_file_with_other_rows_than_were_counted_is_not_released(
    ask: Ask, customer: Customer, monkeypatch: pytest.MonkeyPatch, conversation: Conversation
) -> None:
    payments_many(customer, 3)
    original = CsvFormat.rows

    def one_less(self: CsvFormat, file: Any) -> Iterator[Sequence[str]]:
        rows = original(self, file)
        next(rows)
        yield from rows

    monkeypatch.setattr(CsvFormat, "rows", one_less)
    export = ask(conversation_id=conversation.pk)
    export_write(export.pk)
    done(export)
    assert (export.state, export.file, export.sha256) == ("failed", "", "")
    assert export.failure == (
        "The file would hold 3 rows instead of 4, so it was not released. "
        "Please ask for the export again."
    )
    assert events(conversation.pk)[-1]["state"] == "failed"
    assert events(conversation.pk)[-1]["done"] < events(conversation.pk)[-1]["total"]
    assert files() == []


def test_a_stored_file_that_was_cut_off_is_not_released(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    original = services_write._Leased.read

    def cut(self: Any, size: int = -1) -> bytes:
        return original(self, size)[:-20]

    monkeypatch.setattr(services_write._Leased, "read", cut)
    export = ask()
    export_write(export.pk)
    assert done(export).state == ExportState.FAILED
    assert export.failure == "The stored file is not whole. Please ask for the export again."
    assert files() == []


def test_a_disk_that_is_full_fails_the_export_with_a_mark_that_leads_to_the_log(
    ask: Ask, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(self: Any, size: int = -1) -> bytes:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(services_write._Leased, "read", full)
    export = ask()
    export_write(export.pk)
    done(export)
    assert export.state == ExportState.FAILED
    assert "device" not in export.failure
    [record] = [record for record in caplog.records if record.message == "export.failed"]
    assert str(record.reference) in export.failure  # type: ignore[attr-defined]
    assert files() == []


def test_a_database_that_went_away_leaves_the_export_to_the_sweep(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost() -> None:
        raise OperationalError

    export = ask()
    during(monkeypatch, 1, lost)
    with pytest.raises(OperationalError):
        export_write(export.pk)
    assert done(export).state == ExportState.WRITING
    assert export.lease_until is not None


def test_a_right_that_was_withdrawn_meanwhile_makes_no_file(ask: Ask, ana: User) -> None:
    export = ask()
    ana.user_permissions.clear()
    export_write(export.pk)
    assert done(export).state == ExportState.FAILED
    assert export.failure == "Your role may no longer export, so the file was not made."
    assert files() == []


def test_the_teams_are_those_at_the_time_of_writing(ask: Ask, ana: User, team: Team) -> None:
    export = ask()
    team.members.remove(ana)
    export_write(export.pk)
    assert (done(export).rows_total, export.team_ids) == (0, [])
    assert len(rows_of(export)) == 1


def test_a_cancelled_export_stops_at_its_next_step_and_leaves_no_file(
    ask: Ask, customer: Customer, ana: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The writer is in the middle; the owner cancels on another connection; the next step of the
    writer finds no row of its own.
    """
    payments_many(customer, 2000)
    export = ask()
    during(
        monkeypatch,
        600,
        lambda: elsewhere(lambda: export_cancel(export_id=export.pk, actor=ana)),
    )
    assert export_write(export.pk) is False
    assert done(export).state == ExportState.CANCELLED
    assert (export.rows_done, export.file, files()) == (500, "", [])


def test_a_cancel_while_the_file_is_stored_leaves_no_file(
    ask: Ask, ana: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The file has been stored and is being checked when the owner cancels."""
    original = services_write._checked
    export = ask()

    def then(*values: Any) -> str:
        elsewhere(lambda: export_cancel(export_id=export.pk, actor=ana))
        assert len(files()) == 1
        return original(*values)

    monkeypatch.setattr(services_write, "_checked", then)
    assert export_write(export.pk) is False
    assert done(export).state == ExportState.CANCELLED
    assert files() == []


def test_an_export_that_is_not_there_is_left(ask: Ask) -> None:
    export = ask()
    Export.objects.all().delete()
    assert export_write(export.pk) is False
