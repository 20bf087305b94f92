"""The sweep: lost messages are sent again, links die on time, files go."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.core.files.base import ContentFile
from django.core.files.storage import default_storage
from django.utils import timezone

from agent_core.runs.models import Conversation
from exports.models import Export
from exports.names import name_stored
from exports.services import export_cancel
from exports.services_sweep import LOST_SECONDS, Swept, exports_sweep
from exports.services_write import export_claim, export_write
from exports.tasks import exports_sweep as sweep_task
from tests.exports.conftest import Ask, Mailbox, events, files
from tests.exports.threads import together

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
    """Both have read the late row; both update it under the condition; the second finds none."""
    export = ask()
    mailbox.clear()
    late = timezone.now() + timedelta(seconds=LOST_SECONDS + 1)
    swept = together(*[lambda: exports_sweep(now=late)] * 2)
    assert sum(one.resent for one in swept) == 1  # type: ignore[union-attr,misc]
    assert mailbox.ids() == [str(export.pk)]


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
