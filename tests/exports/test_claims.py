"""Two workers and one export: one file, whoever stalls, dies or gets the message twice."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from threading import Event
from typing import Any

import pytest
from django.core.files.storage import default_storage
from django.utils import timezone

from agent_core.runs import drain
from agent_core.runs.models import Conversation
from exports import services_sweep, services_write
from exports.models import Export
from exports.moves import export_move
from exports.services_sweep import MOST_DEATHS, Swept, exports_sweep
from exports.services_write import export_claim, export_write
from exports.states import ExportState
from payments.models import Customer, Payment
from tests.exports.conftest import MARCH, Ask, Mailbox, events, files, payments_many
from tests.rig.threads import at_once, elsewhere

pytestmark = pytest.mark.django_db(transaction=True)


def stall(export: Export) -> None:
    """Let the lease of a working export run out."""
    late = timezone.now() - timedelta(seconds=1)
    assert Export.objects.filter(pk=export.pk).update(lease_until=late) == 1


def test_two_workers_that_claim_at_once_write_one_file(
    ask: Ask, conversation: Conversation, mailbox: Mailbox
) -> None:
    """Both hold the message and update the same queued row; the second waits for the first and
    then finds it counting.
    """
    export = ask(conversation_id=conversation.pk)
    work = partial(export_write, export.pk)
    assert sorted(at_once(work, work)) == [False, True]
    export.refresh_from_db()
    assert (export.state, export.attempt) == (ExportState.READY, 1)
    assert len(files()) == 1
    assert [event["state"] for event in events(conversation.pk)].count("ready") == 1


def test_a_message_that_comes_again_while_the_first_worker_writes_leaves_quietly(
    ask: Ask, customer: Customer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first worker is in the check; the same message is delivered to a second one."""
    original, export = services_write._checked, ask()
    second: list[object] = []

    def then(*values: Any) -> str:
        second.append(elsewhere(lambda: export_write(export.pk)))
        return original(*values)

    monkeypatch.setattr(services_write, "_checked", then)
    assert export_write(export.pk) is True
    assert second == [False]
    export.refresh_from_db()
    assert (export.state, export.attempt, export.failure) == ("ready", 1, "")
    assert len(files()) == 1


def test_a_message_that_comes_again_after_the_end_changes_nothing(ask: Ask) -> None:
    export = ask()
    export_write(export.pk)
    before = Export.objects.values().get()
    assert export_write(export.pk) is False
    assert Export.objects.values().get() == before


def test_a_dead_worker_s_export_goes_back_into_the_line_and_another_ends_it(
    ask: Ask, mailbox: Mailbox
) -> None:
    export = ask()
    mailbox.clear()
    assert export_claim(export.pk) is not None
    assert exports_sweep() == Swept()
    stall(export)
    assert exports_sweep() == Swept(requeued=1)
    assert mailbox.ids() == [str(export.pk)]
    assert export_write(export.pk) is True
    export.refresh_from_db()
    assert (export.state, export.attempt) == ("ready", 2)


def test_what_a_dead_worker_had_stored_is_deleted_by_the_next(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    export = ask()

    class Killed(BaseException):
        """Nothing after this runs, as after a kill."""

    def killed(*_values: Any) -> str:
        raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(services_write, "_checked", killed)
        patch.setattr(type(default_storage), "delete", lambda *_: None, raising=False)
        with pytest.raises(Killed):
            export_write(export.pk)
    assert files() == [f"{export.pk.hex}-1.csv"]
    stall(export)
    exports_sweep()
    assert export_write(export.pk) is True
    assert files() == [f"{export.pk.hex}-2.csv"]


def test_a_stalled_worker_that_wakes_up_writes_nothing_more(
    ask: Ask, customer: Customer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first worker stops before its check; its lease runs out; a second one takes over and
    ends; the first goes on, finds that the attempt is not its own, and deletes its file.
    """
    payments_many(customer, 20)
    export, asleep, awake = ask(), Event(), Event()
    original = services_write._checked

    def sleepy(job: Any, *values: Any) -> str:
        if job.export.attempt == 1:
            asleep.set()
            assert awake.wait(10)
        return original(job, *values)

    monkeypatch.setattr(services_write, "_checked", sleepy)

    def second() -> bool:
        assert asleep.wait(10)
        stall(export)
        exports_sweep()
        try:
            return export_write(export.pk)
        finally:
            awake.set()

    assert at_once(lambda: export_write(export.pk), second) == [False, True]
    export.refresh_from_db()
    assert (export.state, export.attempt) == ("ready", 2)
    assert files() == [f"{export.pk.hex}-2.csv"]


def test_a_stalled_worker_that_wakes_up_beside_its_successor_writes_nothing_more(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The first worker stops after its check; a second one takes over and is at its own check
    when the first goes on: the state is right for both, the attempt for the second only.
    """
    export, asleep, awake, first_ended = ask(), Event(), Event(), Event()
    original = services_write._checked

    def checked(job: Any, *values: Any) -> str:
        found = original(job, *values)
        if job.export.attempt == 1:
            asleep.set()
            assert awake.wait(10)
        else:
            awake.set()
            assert first_ended.wait(10)
        return found

    monkeypatch.setattr(services_write, "_checked", checked)

    def first() -> bool:
        try:
            return export_write(export.pk)
        finally:
            first_ended.set()

    def second() -> bool:
        assert asleep.wait(10)
        stall(export)
        exports_sweep()
        return export_write(export.pk)

    assert at_once(first, second) == [False, True]
    export.refresh_from_db()
    assert (export.state, export.attempt) == ("ready", 2)
    assert export.file == f"exports/{export.pk.hex}-2.csv"
    assert files() == [f"{export.pk.hex}-2.csv"]


def test_a_stalled_worker_that_fails_does_not_fail_the_export_in_line(
    ask: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The sweep has put the export back into the line when the first worker meets an error."""
    export = ask()

    def broken(*_values: Any) -> str:
        stall(export)
        exports_sweep()
        raise OSError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(services_write, "_checked", broken)
        assert export_write(export.pk) is False
    export.refresh_from_db()
    assert (export.state, export.failure) == ("queued", "")
    assert export_write(export.pk) is True


def test_the_bar_does_not_go_back_when_a_second_worker_begins_again(
    ask: Ask, customer: Customer, conversation: Conversation, monkeypatch: pytest.MonkeyPatch
) -> None:
    payments_many(customer, 2999)
    export = ask(conversation_id=conversation.pk)

    class Killed(BaseException):
        """The worker is gone."""

    def killed(*_values: Any) -> None:
        raise Killed

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(services_write, "_stored", killed)
        with pytest.raises(Killed):
            export_write(export.pk)
    payments_many_more(customer)
    stall(export)
    exports_sweep()
    export_write(export.pk)
    told = events(conversation.pk)
    shares = [event["done"] / event["total"] for event in told]
    numbers = [event["done"] for event in told]
    assert shares == sorted(shares)
    assert numbers == sorted(numbers)
    assert [share for share in shares if share == 1.0] == [1.0]
    assert told[-1]["state"] == "ready"
    assert told[-1]["total"] == 3100


def payments_many_more(customer: Customer) -> None:
    """Pay a hundred times between the first and the second attempt."""
    method = customer.methods.get()
    Payment.objects.bulk_create(
        Payment(
            reference=f"PAY-L{number}",
            customer=customer,
            method=method,
            amount_minor=1,
            currency="EUR",
            paid_at=MARCH,
        )
        for number in range(100)
    )


def test_after_three_deaths_the_export_fails_and_says_so(
    ask: Ask, conversation: Conversation, mailbox: Mailbox
) -> None:
    export = ask(conversation_id=conversation.pk)
    for attempt in range(1, MOST_DEATHS + 1):
        claimed = export_claim(export.pk)
        assert claimed is not None
        assert claimed.attempt == attempt
        stall(export)
        swept = exports_sweep()
        assert swept.failed == (1 if attempt == MOST_DEATHS else 0)
    export.refresh_from_db()
    assert (export.state, export.attempt) == ("failed", 3)
    assert export.failure == "The export was interrupted 3 times. Please tell support."
    assert export_claim(export.pk) is None
    assert events(conversation.pk)[-1]["state"] == "failed"


def test_workers_that_left_in_order_do_not_count_among_the_deaths(
    ask: Ask, mailbox: Mailbox, customer: Customer
) -> None:
    """Two deploys and two deaths, in turn, and the third worker that lives ends the export."""
    payments_many(customer, 600)
    export = ask()
    for _number in range(MOST_DEATHS - 1):
        drain.leave()
        try:
            assert export_write(export.pk) is False
        finally:
            drain.stay()
        export.refresh_from_db()
        assert export.state == ExportState.QUEUED
        export_claim(export.pk)
        stall(export)
        assert exports_sweep().failed == 0
    assert export_write(export.pk)
    export.refresh_from_db()
    assert (export.state, export.attempt, export.deaths) == ("ready", 5, 2)


def test_a_lease_that_was_kept_at_the_last_moment_is_not_taken(ask: Ask) -> None:
    """The sweep has read the late lease; the worker keeps it; the sweep's update finds no row."""
    export = ask()
    export_claim(export.pk)
    late = timezone.now() + timedelta(seconds=services_write.LEASE_SECONDS + 5)
    stall(export)
    original = export_move

    def kept_first(*values: Any, **more: Any) -> bool:
        Export.objects.update(lease_until=late + timedelta(seconds=60))
        return original(*values, **more)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(services_sweep, "export_move", kept_first)
        assert exports_sweep(now=late) == Swept()
    export.refresh_from_db()
    assert export.state == ExportState.COUNTING
