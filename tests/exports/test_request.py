"""Asking for an export: one row, one message after the commit, and nothing when it is refused."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction

from agent_core.errors import StaleAttempt
from agent_core.runs.models import Conversation
from exports.errors import (
    ExportEmpty,
    ExportFinished,
    ExportInvalid,
    ExportNotAllowed,
    ExportNotFound,
)
from exports.models import Export, ExportCall
from exports.services import export_cancel, export_request
from exports.states import ExportState
from payments.models import Customer, Team
from payments.periods import PeriodUnclear
from tests.exports.conftest import Ask, Mailbox, customer_of, events, payment_of, person
from tests.rig.threads import Meeting, at_once, elsewhere

pytestmark = pytest.mark.django_db


def test_a_request_stores_what_was_asked(ask: Ask, ana: User) -> None:
    call, run = uuid4(), uuid4()
    export = ask(period="march 2026", currency="eur", call_id=call, run_id=run)
    export.refresh_from_db()
    assert export.reference.startswith("EXP-")
    assert len(export.reference) == 12
    assert (export.owner, export.kind, export.format) == (ana, "payments", "csv")
    assert export.filters == {
        "start": "2026-03-01",
        "end": "2026-03-31",
        "label": "March 2026",
        "currency": "EUR",
    }
    assert (export.state, export.rows_total, export.rows_done) == ("queued", 1, 0)
    assert (export.call_id, export.run_id, export.attempt) == (call, run, 0)


def test_the_same_request_again_is_the_export_that_is_on_its_way(
    ask: Ask, ana: User, mailbox: Mailbox
) -> None:
    first = ask()
    again, already = export_request(
        owner=ana, kind="payments", period="2026-03-01 to 2026-03-31", call_id=uuid4()
    )
    assert (again.pk, already) == (first.pk, True)
    # Also from where there are no calls.
    again, already = export_request(owner=ana, kind="payments", period="03/2026")
    assert (again.pk, already) == (first.pk, True)
    assert Export.objects.count() == 1


@pytest.mark.parametrize("more", [{"currency": "EUR"}, {"format": "csv-plain"}, {"period": "2026"}])
def test_another_request_is_another_export(ask: Ask, more: dict[str, str]) -> None:
    assert ask().pk != ask(**more).pk


def test_once_the_first_has_ended_the_same_request_starts_anew(ask: Ask, ana: User) -> None:
    first = ask()
    export_cancel(export_id=first.pk, actor=ana)
    assert ask().pk != first.pk


def test_two_people_get_an_export_each(ask: Ask, team: Team) -> None:
    cyd = person("cyd", "exports.add_export", team=team)
    assert ask().pk != ask(owner=cyd).pk


def test_a_replay_of_the_call_returns_what_it_returned_first(ask: Ask, ana: User) -> None:
    made, attached = uuid4(), uuid4()
    values: dict[str, Any] = {"owner": ana, "kind": "payments", "period": "March 2026"}
    export = ask(call_id=made)
    assert export_request(**values, call_id=attached)[1] is True
    export_cancel(export_id=export.pk, actor=ana)
    # Even where the words would mean another period by now, or nothing at all.
    values["period"] = "never"
    assert export_request(**values, call_id=made) == (export, False)
    assert export_request(**values, call_id=attached) == (export, True)
    assert Export.objects.count() == 1
    assert ExportCall.objects.count() == 1


def test_today_is_read_when_it_is_asked(ana: User, customer: Customer) -> None:
    payment_of(customer, paid_at=datetime(2026, 2, 28, 23, 59, tzinfo=UTC))
    export, _ = export_request(
        owner=ana, kind="payments", period="last month", today=date(2026, 3, 1)
    )
    assert export.filters["label"] == "February 2026"
    assert export.rows_total == 1


@pytest.mark.parametrize(
    ("more", "refusal", "words"),
    [
        ({"period": "soon"}, PeriodUnclear, "“soon” is not clear"),
        ({"period": ""}, PeriodUnclear, "Please name a period"),
        ({"kind": "tickets"}, ExportInvalid, "Only these can be exported: payments, refunds."),
        ({"format": "xlsx"}, ExportInvalid, "Exports can be made as: CSV"),
        ({"currency": "euros"}, ExportInvalid, "three letters"),
        ({"currency": "XXX"}, ExportInvalid, "three letters"),
        ({"period": "2025"}, ExportEmpty, "There are no payments in 2025"),
        ({"currency": "USD"}, ExportEmpty, "nothing to export"),
    ],
)
def test_what_cannot_be_exported_is_refused_with_a_sentence_and_leaves_nothing(
    ask: Ask, mailbox: Mailbox, more: dict[str, str], refusal: type[Exception], words: str
) -> None:
    with pytest.raises(refusal, match=words):
        ask(**more)
    assert Export.objects.count() == 0


def test_rows_of_another_team_are_the_same_as_none(ask: Ask, bob: User) -> None:
    with pytest.raises(ExportEmpty, match=r"^There are no payments in March 2026"):
        ask(owner=bob)
    assert Export.objects.count() == 0


def test_whoever_may_not_export_gets_nothing(ask: Ask, tom: User) -> None:
    with pytest.raises(ExportNotAllowed):
        ask(owner=tom)
    assert Export.objects.count() == 0


def test_an_attempt_that_was_taken_over_writes_nothing(ask: Ask) -> None:
    def stale() -> None:
        raise StaleAttempt

    with pytest.raises(StaleAttempt):
        ask(fence=stale)
    assert Export.objects.count() == 0


def test_a_new_export_is_told_to_its_conversation(ask: Ask, conversation: Conversation) -> None:
    export = ask(conversation_id=conversation.pk)
    assert events(conversation.pk) == [
        {"export": str(export.pk), "state": "queued", "done": 0, "total": 1}
    ]


@pytest.mark.django_db(transaction=True)
def test_the_worker_is_told_after_the_commit_and_only_then(ask: Ask, mailbox: Mailbox) -> None:
    with transaction.atomic():
        export = ask()
        assert mailbox.ids() == []
    assert mailbox.ids() == [str(export.pk)]


@pytest.mark.django_db(transaction=True)
def test_after_a_rollback_nobody_is_told(ask: Ask, mailbox: Mailbox) -> None:
    def fails_later() -> None:
        with transaction.atomic():
            ask()
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        fails_later()
    assert mailbox.ids() == []
    assert Export.objects.count() == 0


@pytest.mark.django_db(transaction=True)
def test_a_broker_that_is_away_loses_no_export(ask: Ask, settings: object) -> None:
    from celery import current_app
    from kombu.exceptions import OperationalError

    def away(*_args: object, **_more: object) -> None:
        raise OperationalError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(current_app, "send_task", away)
        export = ask()
    assert Export.objects.get(pk=export.pk).state == ExportState.QUEUED


@pytest.mark.django_db(transaction=True)
def test_two_that_ask_at_once_share_one_export(
    ana: User, customer: Customer, mailbox: Mailbox
) -> None:
    """Both connections find no active export, then both insert: the second waits for the first,
    meets the constraint and attaches.
    """
    payment_of(customer)
    # The loser tries a second time, alone.
    fence = Meeting()

    def fenced() -> tuple[Export, bool]:
        return export_request(
            owner=ana, kind="payments", period="March 2026", call_id=uuid4(), fence=fence
        )

    results = at_once(fenced, fenced)
    assert sorted(already for _, already in results) == [False, True]
    assert Export.objects.count() == 1
    assert ExportCall.objects.count() == 1
    assert len(mailbox.ids()) == 1


@pytest.mark.django_db(transaction=True)
def test_the_same_call_on_two_connections_makes_one_export(
    ana: User, customer: Customer, mailbox: Mailbox
) -> None:
    """A run that was taken over: both workers run the same call, and insert at the same time."""
    payment_of(customer)
    fence, call = Meeting(), uuid4()

    def asked() -> tuple[Export, bool]:
        return export_request(
            owner=ana, kind="payments", period="March 2026", call_id=call, fence=fence
        )

    (one, first), (other, second) = at_once(asked, asked)
    assert one.pk == other.pk
    assert (first, second) == (False, False)
    assert Export.objects.count() == 1
    assert len(mailbox.ids()) == 1


@pytest.mark.django_db(transaction=True)
def test_a_call_that_was_run_by_another_worker_meanwhile_is_a_replay(
    ana: User, customer: Customer, mailbox: Mailbox
) -> None:
    """The first worker has looked for a replay and found none; the second runs the same call to
    its end; the first goes on and finds the export active. It is its own, so not an earlier one.
    """
    payment_of(customer)
    call, second = uuid4(), []

    def asked(fence: Callable[[], object] = lambda: None) -> tuple[Export, bool]:
        return export_request(
            owner=ana, kind="payments", period="March 2026", call_id=call, fence=fence
        )

    export, already = asked(lambda: second.append(elsewhere(asked)))
    assert [(export, already)] == second
    assert already is False
    assert Export.objects.count() == 1
    assert ExportCall.objects.count() == 0


def test_the_database_itself_allows_one_active_export_per_request(ask: Ask) -> None:
    export = ask()
    twin = Export(
        owner=export.owner,
        reference="EXP-TWIN",
        kind=export.kind,
        format=export.format,
        fingerprint=export.fingerprint,
    )
    with pytest.raises(IntegrityError, match="export_one_active_per_request"), transaction.atomic():
        twin.save()


def test_the_database_itself_refuses_a_ready_export_that_is_not_whole(ask: Ask) -> None:
    export = ask()
    rows = Export.objects.filter(pk=export.pk)
    with pytest.raises(IntegrityError, match="export_ready_is_whole"), transaction.atomic():
        rows.update(state="ready")
    with pytest.raises(IntegrityError, match="export_done_within_total"), transaction.atomic():
        rows.update(rows_done=2)


def test_the_owner_cancels_and_cancelling_twice_changes_nothing(
    ask: Ask, ana: User, conversation: Conversation
) -> None:
    export = ask(conversation_id=conversation.pk)
    assert export_cancel(export_id=export.pk, actor=ana).state == ExportState.CANCELLED
    assert export_cancel(export_id=export.pk, actor=ana).state == ExportState.CANCELLED
    assert [event["state"] for event in events(conversation.pk)] == ["queued", "cancelled"]


def test_nobody_else_cancels_it(ask: Ask, bob: User, tom: User) -> None:
    export = ask()
    for person_ in (bob, tom):
        with pytest.raises(ExportNotFound):
            export_cancel(export_id=export.pk, actor=person_)
    export.refresh_from_db()
    assert export.state == ExportState.QUEUED


def test_what_has_ended_is_not_cancelled(ask: Ask, ana: User) -> None:
    export = ask()
    Export.objects.filter(pk=export.pk).update(state="failed")
    with pytest.raises(ExportFinished):
        export_cancel(export_id=export.pk, actor=ana)
    export.refresh_from_db()
    assert export.state == ExportState.FAILED


def test_a_customer_of_two_teams_owner_is_counted_once(
    ask: Ask, ana: User, other_team: Team
) -> None:
    other_team.members.add(ana)
    payment_of(customer_of(other_team))
    assert ask().rows_total == 2
