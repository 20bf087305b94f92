"""A long conversation is shown page by page, at the same cost, and what waits stays in sight."""

from __future__ import annotations

import re

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.urls import reverse

from agent_core.runs.models import Conversation
from desk.transcript import TURNS_SHOWN
from reviews.models import Review
from tests.desk.conftest import Enter, asked, called, ended
from tests.desk.test_chat import page, words


@pytest.mark.parametrize("turns", [1, 12])
def test_a_longer_conversation_takes_no_more_queries(
    turns: int, enter: Enter, talk: Conversation
) -> None:
    for turn in range(turns):
        run = asked(talk, f"find {turn}")
        called(run)
        ended(run)
    client = enter(talk.owner)
    page(client, talk)
    with CaptureQueriesContext(connection) as queries:
        page(client, talk)
    assert len(queries) <= 24


def test_a_long_conversation_is_read_page_by_page_and_nothing_of_it_is_lost(
    enter: Enter, talk: Conversation
) -> None:
    for turn in range(2 * TURNS_SHOWN + 1):
        ended(asked(talk, f"question {turn} it is"), answer=f"Answer {turn} it is.")
    client, address = enter(talk.owner), reverse("chat", args=[talk.pk])
    read: list[list[int]] = []
    while address:
        html = client.get(address).content.decode()
        told = words(html.partition('id="transcript"')[2])
        questions = [int(each) for each in re.findall(r"question (\d+) it is", told)]
        assert [int(each) for each in re.findall(r"Answer (\d+) it is", told)] == questions
        assert ("js/chat.js" in html) == (not read)
        read.insert(0, questions)
        found = re.search(r'href="([^"]*\?before=\d+)"', html)
        address = found[1] if found else ""
    assert [len(questions) for questions in read] == [1, TURNS_SHOWN, TURNS_SHOWN]
    assert [each for some in read for each in some] == list(range(2 * TURNS_SHOWN + 1))


@pytest.mark.parametrize("odd", ["-1", "x", "9" * 30, "²"])
def test_an_odd_position_shows_the_latest_turns(enter: Enter, talk: Conversation, odd: str) -> None:
    ended(asked(talk, "find it"), answer="Found it.")
    client = enter(talk.owner)
    answer = client.get(reverse("chat", args=[talk.pk]), {"before": odd})
    assert "Found it." in answer.content.decode()


def test_what_waits_for_a_person_stays_on_the_page_however_much_was_said_since(
    enter: Enter, talk: Conversation, review: Review
) -> None:
    for turn in range(TURNS_SHOWN + 1):
        ended(asked(talk, f"find {turn}"), answer="Found it.")
    html = page(enter(talk.owner), talk)
    assert f'id="review-{review.pk}"' in html
    assert "find 0" not in html
