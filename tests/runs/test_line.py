"""What is typed while a run works: it waits in line, and can be changed or taken back there."""

from collections.abc import Callable

import pytest
from django.contrib.auth.models import User

from agent_core.runs import claims, services, work
from agent_core.runs.django_host import DjangoHost
from agent_core.runs.endings import run_cancelled
from agent_core.runs.errors import MessageRefused, MessageTaken, NotFound, RunRefused
from agent_core.runs.models import Conversation, Event, Message, Run, StopRecord
from agent_core.runs.states import RunState
from agent_core.runs.window import window_build
from agent_core.runs.wording import explain
from tests.runs.scripting import ScriptedModel

Play = Callable[..., ScriptedModel]
Send = Callable[[str], Run]


@pytest.fixture
def send(conversation: Conversation, tom: User) -> Send:
    """Send a message as Tom and leave its run where it is."""
    return lambda text: services.message_send(conversation=conversation, sender=tom, text=text)


@pytest.fixture
def working(send: Send) -> Run:
    """Return a run that a worker has claimed."""
    claimed = claims.run_claim(send("find ana").pk, quarantined=False)
    assert claimed is not None
    return claimed


def shown(run: Run) -> list[str]:
    """Return every text that a run's model and tools get of what people said."""
    run.refresh_from_db()
    window = [str(message.content) for message in window_build(run)]
    return [*window, *DjangoHost(run, work.toolset()).context().words]


def facts() -> list[object]:
    """Return every row that a refused change must leave alone."""
    return [list(model.objects.order_by("pk").values()) for model in (Message, Run, Event)]


def test_a_message_in_line_says_what_it_was_changed_to_and_nothing_else(
    script: Play, working: Run, send: Send, tom: User
) -> None:
    model = script("done")
    waits = send("refund 50 of PAY-1")

    services.message_edit(message=waits.message, actor=tom, text="refund 5 of PAY-1")
    run_cancelled(working)
    work.run_work(waits.pk)

    told = [str(message.content) for message in model.requests[0]]
    assert told[-1] == "refund 5 of PAY-1"
    assert not any("refund 50" in text for text in [*told, *shown(waits)])
    assert Message.objects.get(pk=waits.message_id).edited_at is not None


def test_a_changed_message_is_masked_and_limited_like_a_new_one(
    working: Run, send: Send, tom: User
) -> None:
    waits = send("charge him")
    before = facts()
    for text in (" ", "x" * (services.MESSAGE_LIMIT + 1)):
        with pytest.raises(MessageRefused):
            services.message_edit(message=waits.message, actor=tom, text=text)
    assert facts() == before

    services.message_edit(message=waits.message, actor=tom, text="charge 4242 4242 4242 4242")

    assert "4242" not in Message.objects.get(pk=waits.message_id).text
    assert "4242" not in str(Event.objects.filter(kind="message_edited").values())


def test_a_removed_message_reaches_no_model_and_is_nobodys_words(
    working: Run, send: Send, tom: User
) -> None:
    secret, later = send("charge INV-7 at once"), send("and her tickets")

    services.message_remove(message=secret.message, actor=tom)

    assert not any("INV-7" in text for text in shown(later))
    kept = Message.objects.get(pk=secret.message_id)
    assert (kept.text, kept.removed_at is None) == ("charge INV-7 at once", False)


def test_a_removed_message_ends_its_run_with_a_record_and_without_an_answer(
    working: Run, send: Send, tom: User
) -> None:
    waits, behind = send("first"), send("second")

    services.message_remove(message=waits.message, actor=tom)

    record = StopRecord.objects.get(run=waits)
    waits.refresh_from_db()
    assert (waits.state, record.rule) == (RunState.CANCELLED, "cancelled")
    assert explain(record)["cause"] == "you removed the message"
    assert not waits.answers.exists()
    with pytest.raises(RunRefused):
        services.run_retry(run=waits, actor=tom)
    run_cancelled(working)
    behind.refresh_from_db()
    assert behind.state == RunState.QUEUED


def test_what_settled_after_a_turn_is_told_though_a_message_behind_it_was_removed(
    working: Run, send: Send, conversation: Conversation, tom: User
) -> None:
    removed = send("never mind")
    services.message_remove(message=removed.message, actor=tom)
    services.notice_post(conversation.pk, lambda: "The refund has arrived.", "settled")
    later = send("and now?")
    assert any("The refund has arrived." in text for text in shown(later))


@pytest.mark.parametrize("change", ["edit", "remove"])
def test_a_message_that_was_taken_up_is_left_alone_in_plain_words(
    working: Run, send: Send, tom: User, change: str
) -> None:
    def changed(message: Message) -> None:
        if change == "edit":
            services.message_edit(message=message, actor=tom, text="something else")
        else:
            services.message_remove(message=message, actor=tom)

    removed = send("never mind").message
    services.message_remove(message=removed, actor=tom)
    for message, said in ((working.message, "taken this message up"), (removed, "removed already")):
        before = facts()
        with pytest.raises(MessageTaken, match=said):
            changed(message)
        assert facts() == before
    # Once a worker has had it, a free place in the queue does not make it unread again.
    claims.run_hand_back(working)
    with pytest.raises(MessageTaken):
        changed(working.message)


def test_a_message_that_is_tried_again_was_read_already(
    working: Run, send: Send, tom: User
) -> None:
    run_cancelled(working)
    send("something else")
    again = services.run_retry(run=working, actor=tom)
    assert again.state == RunState.PENDING
    with pytest.raises(MessageTaken):
        services.message_edit(message=again.message, actor=tom, text="something else")


def test_somebody_elses_message_is_not_found(
    working: Run, send: Send, tom: User, maria: User
) -> None:
    waits = send("mine")
    before = facts()
    with pytest.raises(NotFound):
        services.message_edit(message=waits.message, actor=maria, text="hers")
    with pytest.raises(NotFound):
        services.message_remove(message=waits.message, actor=maria)
    assert facts() == before


def test_a_title_taken_from_the_message_goes_with_it(
    send: Send, conversation: Conversation, tom: User
) -> None:
    first = send("the customer's PIN is in here")
    services.message_edit(message=first.message, actor=tom, text="find ana\nplease")
    conversation.refresh_from_db()
    assert conversation.title == "find ana"
    services.message_remove(message=first.message, actor=tom)
    conversation.refresh_from_db()
    assert conversation.title == ""
    send("find ben")
    conversation.refresh_from_db()
    assert conversation.title == "find ben"


def test_other_pages_are_told_in_events(working: Run, send: Send, tom: User) -> None:
    waits = send("one")
    services.message_edit(message=waits.message, actor=tom, text="two")
    services.message_edit(message=waits.message, actor=tom, text="two")
    services.message_remove(message=waits.message, actor=tom)
    told = Event.objects.filter(run=waits).order_by("pk").values_list("kind", flat=True)
    assert list(told) == ["run", "message_edited", "message_removed", "run", "stop"]
