"""How answers end: the owner's choice in the chat, and measuring for those who may."""

from __future__ import annotations

import re
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import User
from django.urls import reverse

from agent_core.runs.models import Conversation, Message, Run
from payments.models import Team
from payments.roles import ADMINISTRATORS
from tests.desk.conftest import Enter, asked, ended, person
from tests.desk.test_chat import DATA, page, words

CHECKED = re.compile(r'name="stop_mode" id="ending-\d" value="(\w*)"[^>]* checked')

TICKED = re.compile(r'name="measure"[^>]*?( checked|)>')


@pytest.fixture
def ada(teams: dict[str, Team]) -> User:
    """Look after the desk; the only role that may measure."""
    return person("Ada", ADMINISTRATORS, teams["North"], last_name="Stone")


def mode(talk: Conversation) -> str:
    talk.refresh_from_db()
    return talk.stop_mode


def test_the_owner_chooses_in_the_page_without_a_script(enter: Enter, talk: Conversation) -> None:
    client, address = enter(talk.owner), reverse("api-stop-mode", args=[talk.pk])
    html = page(client, talk)
    assert CHECKED.findall(html) == [""]
    assert f'action="{address}"' in html

    answer = client.post(address, {"stop_mode": "polish"}, follow=True)

    assert answer.redirect_chain == [(reverse("chat", args=[talk.pk]), 302)]
    shown = answer.content.decode()
    assert CHECKED.findall(shown) == ["polish"]
    assert "Saved. It holds from the next message on." in words(shown)
    assert (mode(talk), asked(talk, "find ana").stop_mode) == ("polish", "polish")


def test_each_choice_is_labelled_and_says_in_a_sentence_what_it_does(
    enter: Enter, talk: Conversation, settings: Any
) -> None:
    settings.STOP_MODE = "polish"
    html = page(enter(talk.owner), talk)
    said = words(html)
    for sentence in (
        "As usual here (reworded by the assistant)",
        "Follows the setting of this desk, also when that changes.",
        "An answer is the text of the finished steps, word for word; nothing is rewritten.",
        "The assistant rewords a finished answer once; if a fact differs, the original is shown.",
    ):
        assert sentence in said
    for number in (1, 2, 3):
        assert f'<label for="ending-{number}">' in html
        assert f'aria-describedby="ending-{number}-words"' in html


@pytest.mark.parametrize("wanted", ["never", "perhaps"])
def test_a_conversation_that_measures_cannot_be_made_by_hand(
    enter: Enter, ada: User, talk: Conversation, wanted: str
) -> None:
    Conversation.objects.filter(pk=talk.pk).update(owner=ada)
    address = reverse("api-stop-mode", args=[talk.pk])
    answer = enter(ada).post(address, {"stop_mode": wanted}, **DATA)
    assert answer.status_code == 400
    assert answer.json()["error"] == (
        "Choose one of the ways to end an answer. Nothing was changed."
    )
    assert mode(talk) == ""


@pytest.mark.parametrize("sent", [{}, {"another": "field"}])
def test_a_form_that_lacks_the_choice_changes_nothing(
    enter: Enter, talk: Conversation, sent: dict[str, str]
) -> None:
    Conversation.objects.filter(pk=talk.pk).update(stop_mode="polish")
    address = reverse("api-stop-mode", args=[talk.pk])
    answer = enter(talk.owner).post(address, sent, **DATA)
    assert (answer.status_code, mode(talk)) == (400, "polish")


def test_measuring_is_offered_to_those_who_may(enter: Enter, ada: User, talk: Conversation) -> None:
    assert 'name="measure"' not in page(enter(talk.owner), talk)
    assert 'name="measure"' not in enter(talk.owner).get("/").content.decode()
    Conversation.objects.filter(pk=talk.pk).update(owner=ada)
    assert 'name="measure"' in page(enter(ada), talk)
    assert 'name="measure"' in enter(ada).get("/").content.decode()


def test_measuring_holds_for_the_one_message(enter: Enter, ada: User) -> None:
    client = enter(ada)
    client.post("/", {"text": "find ana", "client_key": str(uuid4()), "measure": "1"})
    run = Run.objects.get()
    address = reverse("api-messages", args=[run.conversation_id])
    client.post(address, {"text": "find bo", "client_key": str(uuid4())}, **DATA)
    assert list(Run.objects.values_list("stop_mode", flat=True)) == ["never", "hard"]


@pytest.mark.parametrize("ticked", [True, False])
def test_a_refused_first_message_keeps_what_was_chosen(
    enter: Enter, ada: User, ticked: bool
) -> None:
    form = {"text": "x" * 8_001, "client_key": str(uuid4())} | ({"measure": "1"} if ticked else {})
    answer = enter(ada).post("/", form)
    assert answer.status_code == 400
    assert TICKED.findall(answer.content.decode()) == ([" checked"] if ticked else [""])
    assert TICKED.findall(enter(ada).get("/").content.decode()) == [""]


@pytest.mark.parametrize("first", [True, False])
def test_measuring_without_the_right_is_refused_and_nothing_is_stored(
    enter: Enter, talk: Conversation, first: bool
) -> None:
    form = {"text": "find ana", "client_key": str(uuid4()), "measure": "1"}
    said = "You may not let a request go on to measure it. Nothing was sent."
    if first:
        answer = enter(talk.owner).post("/", form)
        assert said in words(answer.content.decode())
        assert "find ana" in answer.content.decode()
    else:
        answer = enter(talk.owner).post(reverse("api-messages", args=[talk.pk]), form, **DATA)
        assert (answer.status_code, answer.json()["error"]) == (403, said)
    assert (Message.objects.count(), Run.objects.count()) == (0, 0)
    assert Conversation.objects.get() == talk


@pytest.mark.parametrize(
    ("note", "said"),
    [
        (
            "kept",
            "nothing was left open. The wording is the assistant's; every amount, date, reference",
        ),
        (
            "facts lost",
            "The assistant's rewording changed a fact, so the original wording is shown.",
        ),
        (
            "model failed",
            "The assistant did not answer when asked to reword, so the original wording is shown.",
        ),
        (
            "no budget",
            "The limits left nothing for a rewording, so the original wording is shown.",
        ),
    ],
)
def test_chat_and_run_page_say_whose_wording_it_is(
    enter: Enter, talk: Conversation, note: str, said: str
) -> None:
    talk.stop_mode = "polish"
    talk.save()
    run = ended(asked(talk, "pay"), rule="completed", evidence={"polish": note})
    client = enter(talk.owner)
    assert said in _plain(page(client, talk))
    full = _plain(client.get(reverse("run", args=[run.pk])).content.decode())
    assert said in full
    assert "Ending reworded by the assistant" in full


def test_chat_and_run_page_say_that_a_run_was_measured(
    enter: Enter, ada: User, talk: Conversation
) -> None:
    run = asked(talk, "pay")
    Run.objects.filter(pk=run.pk).update(stop_mode="never")
    run.refresh_from_db()
    held = [{"rule": "completed", "batch": 1}]
    ended(run, rule="answered", evidence={"would_have_stopped": held})
    client = enter(talk.owner)
    said = "Measured without stopping: it would have stopped after step 1"
    assert said in _plain(page(client, talk))
    full = _plain(client.get(reverse("run", args=[run.pk])).content.decode())
    assert said in full
    assert "Ending measured without stopping" in full


def _plain(html: str) -> str:
    return words(html).replace("&#x27;", "'")
