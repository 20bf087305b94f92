"""What a message, a claim and an end send to the database when there is nothing else to do."""

from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test.utils import CaptureQueriesContext

from agent_core.host import RunEnd
from agent_core.runs import claims, services
from agent_core.runs.endings import run_end
from agent_core.runs.journal import event_of_run, events_write
from agent_core.runs.models import Conversation, Event, Message, Run


def statements(sent: CaptureQueriesContext) -> list[str]:
    """Return the first words of what was sent, without what begins and ends a transaction."""
    words = [query["sql"].split()[0] for query in sent.captured_queries]
    return [word for word in words if word in ("SELECT", "INSERT", "UPDATE", "DELETE", "WITH")]


def test_a_message_looks_once_whether_it_was_sent_before_and_tells_everything_at_once(
    conversation: Conversation, tom: User
) -> None:
    with CaptureQueriesContext(connection) as sent:
        services.message_send(
            conversation=conversation, sender=tom, text="hello", client_key=uuid4()
        )

    looks = ["SELECT", "SELECT"]
    assert statements(sent) == [*looks, "INSERT", "UPDATE", "WITH", "INSERT", "INSERT"]
    assert [event.kind for event in Event.objects.all()] == ["message", "run"]


@pytest.mark.parametrize("busy", [False, True])
def test_what_a_message_starts_is_the_row(
    conversation: Conversation, tom: User, busy: bool
) -> None:
    if busy:
        services.message_send(conversation=conversation, sender=tom, text="before it")
    run = services.message_send(conversation=conversation, sender=tom, text="hello")

    stored = Run.objects.get(pk=run.pk)
    assert stored.state == ("pending" if busy else "queued")
    assert (stored.enqueued_at is None) == busy
    for row, same in ((stored, run), (Message.objects.get(text="hello"), run.message)):
        for field in row._meta.concrete_fields:
            assert getattr(same, field.attname) == getattr(row, field.attname), field.name


def test_a_claim_locks_takes_and_tells(conversation: Conversation, tom: User) -> None:
    run = services.message_send(conversation=conversation, sender=tom, text="hello")

    with CaptureQueriesContext(connection) as sent:
        claimed = claims.run_claim(run.pk, quarantined=False)
        assert claimed is not None
        assert claimed.message.text == "hello"
        assert claimed.conversation == conversation

    assert statements(sent) == ["SELECT", "UPDATE", "INSERT"]


def test_what_a_claim_returns_is_the_row(conversation: Conversation, tom: User) -> None:
    run = services.message_send(conversation=conversation, sender=tom, text="hello")
    claimed = claims.run_claim(run.pk, quarantined=False)
    assert claimed is not None

    run.refresh_from_db()
    stored = (run, Message.objects.get(), Conversation.objects.get())
    for row, same in zip(stored, (claimed, claimed.message, claimed.conversation), strict=True):
        for field in row._meta.concrete_fields:
            assert getattr(same, field.attname) == getattr(row, field.attname), field.name


def test_an_end_looks_once_for_what_is_left_and_tells_everything_at_once(
    conversation: Conversation, tom: User
) -> None:
    run = services.message_send(conversation=conversation, sender=tom, text="hello")
    claimed = claims.run_claim(run.pk, quarantined=False)
    assert claimed is not None

    with CaptureQueriesContext(connection) as sent:
        run_end(claimed, RunEnd(rule="answered", answer="Hello, Tom."))

    locks = ["SELECT", "SELECT"]
    assert statements(sent) == [*locks, "UPDATE", "SELECT", "INSERT", "INSERT", "INSERT"]
    told = Event.objects.filter(run=run).values_list("kind", flat=True).order_by("id")
    assert list(told)[-3:] == ["message", "run", "stop"]


def test_events_are_numbered_in_the_order_in_which_they_are_given(
    conversation: Conversation, tom: User
) -> None:
    run = services.message_send(conversation=conversation, sender=tom, text="hello")
    events = []
    for attempt in range(20):
        run.attempt = attempt
        events.append(event_of_run(run))

    events_write(events)

    numbers = [event.pk for event in events]
    assert numbers == sorted(numbers)
    stored = Event.objects.filter(pk__in=numbers).order_by("pk").values_list("attempt", flat=True)
    assert list(stored) == list(range(20))
