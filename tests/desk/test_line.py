"""A message that waits in line, as its sender has it on the page: changed, removed, or too late."""

from __future__ import annotations

import re
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from agent_core.runs.models import Conversation, Event, Message, Run
from payments.models import Payment
from tests.desk.conftest import Enter, asked, begun, ended, waiting_refund
from tests.desk.test_chat import page, words

DATA = {"HTTP_ACCEPT": "application/json"}


@pytest.fixture
def waits(talk: Conversation) -> Run:
    """Return a message in line behind one that is worked on."""
    begun(asked(talk, "find ana@example.com"))
    return asked(talk, "refund 50 of PAY-7001")


def edit(client: Client, message: Message, text: str, **how: Any) -> Any:
    """Post the form that changes a message."""
    to = reverse("api-message-edit", args=[message.pk])
    return client.post(to, {"text": text}, **how)


def remove(client: Client, message: Message, **how: Any) -> Any:
    """Post the form that takes a message back."""
    return client.post(reverse("api-message-remove", args=[message.pk]), **how)


def facts() -> list[object]:
    """Return every row that a refused change leaves alone."""
    return [list(model.objects.order_by("pk").values()) for model in (Message, Run, Event)]


def test_what_waits_offers_to_be_changed_and_removed_and_nothing_to_stop(
    enter: Enter, talk: Conversation, waits: Run
) -> None:
    client = enter(talk.owner)
    fragment = client.get(reverse("fragment", args=[talk.pk, "run", waits.pk])).content.decode()
    assert "it waits until the present request is done" in words(fragment)
    assert re.findall(r'action="([^"]+)"', fragment) == [
        reverse("api-message-edit", args=[waits.message_id]),
        reverse("api-message-remove", args=[waits.message_id]),
    ]
    assert "refund 50 of PAY-7001</textarea>" in fragment
    begun(ended(Run.objects.exclude(pk=waits.pk).get()).conversation.runs.get(state="queued"))
    taken = client.get(reverse("fragment", args=[talk.pk, "run", waits.pk])).content.decode()
    assert "api/messages" not in taken
    assert reverse("api-cancel", args=[waits.pk]) in taken


def test_a_change_is_shown_with_when_and_the_old_text_is_gone(
    enter: Enter, talk: Conversation, waits: Run
) -> None:
    client = enter(talk.owner)
    answer = edit(client, waits.message, "refund <b>5</b> of PAY-7001", **DATA)
    assert answer.json()["refresh"][0] == ["text", str(waits.message_id)]
    html = page(client, talk)
    assert "refund &lt;b&gt;5&lt;/b&gt; of" in html
    assert "Changed at" in html
    assert "refund 50" not in html


def test_what_was_removed_is_shown_as_removed_and_offers_nothing(
    enter: Enter, talk: Conversation, waits: Run
) -> None:
    client = enter(talk.owner)
    refresh = remove(client, waits.message, **DATA).json()["refresh"]
    for kind, item in refresh:
        assert client.get(reverse("fragment", args=[talk.pk, kind, item])).status_code == 200
    html = page(client, talk)
    assert "You removed this message before the assistant read it." in html
    assert "refund 50" not in html
    assert reverse("api-retry", args=[waits.pk]) not in html
    run = words(client.get(reverse("run", args=[waits.pk])).content.decode())
    assert "you removed the message" in run
    assert "It was taken out of the line before the assistant read it." in run
    assert "refund 50 of PAY-7001" in run


def test_without_scripts_both_lead_back_to_the_message(
    enter: Enter, talk: Conversation, waits: Run
) -> None:
    client = enter(talk.owner)
    back = f"{reverse('chat', args=[talk.pk])}#message-{waits.message_id}"
    assert edit(client, waits.message, "refund 5").headers["Location"] == back
    assert remove(client, waits.message).headers["Location"] == back
    assert Message.objects.get(pk=waits.message_id).text == "refund 5"


def test_too_late_is_a_sentence_and_changes_nothing(
    enter: Enter, talk: Conversation, waits: Run
) -> None:
    taken, client = Run.objects.exclude(pk=waits.pk).get().message, enter(talk.owner)
    before = facts()
    for answer in (edit(client, taken, "something else", **DATA), remove(client, taken, **DATA)):
        assert answer.status_code == 409
        said = "The assistant has taken this message up a moment ago. Nothing was changed."
        assert answer.json()["error"] == said
        assert ["run", str(taken.runs.get().pk)] in answer.json()["refresh"]
    assert facts() == before


def test_too_late_without_scripts_leaves_what_was_typed_in_the_composer(
    enter: Enter, talk: Conversation, waits: Run
) -> None:
    taken = Run.objects.exclude(pk=waits.pk).get().message
    answer = edit(enter(talk.owner), taken, "find <ben>")
    html = answer.content.decode()
    assert answer.status_code == 409
    assert "find &lt;ben&gt;</textarea>" in html
    assert "taken this message up a moment ago" in words(html)


@pytest.mark.parametrize("text", [" ", "x" * 8001])
def test_a_refused_text_leaves_the_message_in_line_as_it_was(
    enter: Enter, talk: Conversation, waits: Run, text: str
) -> None:
    before = facts()
    answer = edit(enter(talk.owner), waits.message, text, **DATA)
    assert answer.status_code == 400
    assert "refresh" not in answer.json()
    assert facts() == before


def test_somebody_elses_message_is_not_found(enter: Enter, waits: Run, maria: User) -> None:
    before = facts()
    client = enter(maria)
    assert edit(client, waits.message, "mine", **DATA).status_code == 404
    assert remove(client, waits.message, **DATA).status_code == 404
    assert facts() == before


def test_an_answer_is_no_message_of_ones_own(enter: Enter, talk: Conversation) -> None:
    ended(asked(talk, "find ana"))
    answer = Message.objects.get(role="assistant")
    assert edit(enter(talk.owner), answer, "I paid it", **DATA).status_code == 404
    assert edit(enter(talk.owner), Message(pk=uuid4()), "x", **DATA).status_code == 404


def test_whoever_decides_does_not_read_what_was_removed(
    enter: Enter, talk: Conversation, payment: Payment, maria: User
) -> None:
    review = waiting_refund(asked(talk, "refund 5 EUR of PAY-7001"), payment)
    removed = asked(talk, "forget what I said of the lead")
    assert remove(enter(talk.owner), removed.message, **DATA).status_code == 200
    read = words(enter(maria).get(reverse("review", args=[review.pk])).content.decode())
    assert "refund 5 EUR of PAY-7001" in read
    assert "of the lead" not in read
