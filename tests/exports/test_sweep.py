"""The sweep: lost messages are sent again, links die on time, files go."""

from __future__ import annotations

from datetime import timedelta
from threading import Event
from time import sleep

import pytest
from django.contrib.auth.models import User
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.db import connection, transaction
from django.utils import timezone

from agent_core.runs.models import Conversation
from exports.models import Export
from exports.names import name_stored
from exports.services import export_cancel
from exports.services_sweep import LOST_SECONDS, Swept, exports_sweep
from exports.services_write import export_claim, export_write
from exports.tasks import exports_sweep as sweep_task
from tests.exports.conftest import Ask, Mailbox, events, files
from tests.rig.threads import at_once

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_lost_message_is_sent_again_once(ask: Ask, mailbox: Mailbox) -> None:
    export = ask()
    mailbox.clear()
    now = timezone.now()
    assert exports_sweep(now=now) == Swept()
    late = now + timedelta(seconds=LOST_SECONDS + 1)
    assert exports_sweep(now=late) == Swept(resent=1)
    assert exports_sweep(now=late) == Swept()
    assert mailbox.ids() == [str(export.pk)]


def test_two_sweeps_at_once_send_one_message(ask: Ask, mailbox: Mailbox) -> None:
    """A third connection holds the row; both sweeps read it as late and wait to update it; it is
    let go; the first sweep updates, and the second finds the condition gone.
    """
    export = ask()
    mailbox.clear()
    late = timezone.now() + timedelta(seconds=LOST_SECONDS + 1)

    def hold() -> int:
        with transaction.atomic():
            Export.objects.select_for_update().get(pk=export.pk)
            reading.set()
            for _ in range(200):
                if waiting() == 2:
                    break
                sleep(0.05)
            return waiting()

    def sweep() -> int:
        assert reading.wait(10)
        return exports_sweep(now=late).resent

    reading = Event()
    assert at_once(hold, sweep, sweep) in ([2, 1, 0], [2, 0, 1])
    assert mailbox.ids() == [str(export.pk)]


def waiting() -> int:
    """Count the connections that wait for somebody's row; the activity view stands still here."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT count(DISTINCT pid) FROM pg_locks WHERE NOT granted")
        return int(cursor.fetchone()[0])


def test_a_file_past_its_end_expires_and_is_deleted(
    ask: Ask, conversation: Conversation, settings: object
) -> None:
    export = ask(conversation_id=conversation.pk)
    export_write(export.pk)
    export.refresh_from_db()
    assert export.expires_at is not None
    before = export.expires_at - timedelta(seconds=1)
    assert exports_sweep(now=before) == Swept()
    assert len(files()) == 1
    assert exports_sweep(now=export.expires_at) == Swept(expired=1, deleted=1)
    export.refresh_from_db()
    assert (export.state, export.file, files()) == ("expired", "", [])
    assert events(conversation.pk)[-1]["state"] == "expired"
    assert exports_sweep(now=export.expires_at) == Swept()


def test_a_file_that_could_not_be_deleted_is_deleted_next_time(ask: Ask) -> None:
    export = ask()
    export_write(export.pk)
    Export.objects.update(state="expired")
    assert exports_sweep() == Swept(deleted=1)
    assert files() == []


def test_what_a_killed_worker_left_of_a_cancelled_export_is_deleted(ask: Ask, ana: User) -> None:
    export = ask()
    export_claim(export.pk)
    default_storage.save(name_stored(export.pk, 1, "csv"), ContentFile(b"half"))
    export_cancel(export_id=export.pk, actor=ana)
    assert exports_sweep() == Swept()
    later = timezone.now() + timedelta(hours=1)
    assert exports_sweep(now=later) == Swept(deleted=1)
    assert files() == []
    assert exports_sweep(now=later) == Swept()


def test_the_files_of_ready_exports_stay(ask: Ask) -> None:
    export = ask()
    export_write(export.pk)
    sweep_task()
    assert files() == [f"{export.pk.hex}-1.csv"]
