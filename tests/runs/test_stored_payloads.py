"""What the first version stored is read today: payloads of events, and outcomes of calls.

`tests/golden/stored/v1.json` holds them as that version wrote them. It is never written anew.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final

import pytest
from django.contrib.auth.models import User

from agent_core.contract import outcome_read
from agent_core.events import EVENT_FIELDS
from agent_core.runs import services
from agent_core.runs.django_host import call_state
from agent_core.runs.models import Event
from agent_core.runs.selectors import event_latest, events_after_all

ROOT: Final = Path(__file__).parents[2]
STORED: Final[dict[str, Any]] = json.loads(
    (ROOT / "tests/golden/stored/v1.json").read_text("utf-8")
)
ADDED_BY_THE_STREAM: Final = {"run"}


@pytest.mark.django_db
def test_the_events_of_the_first_version_are_read_in_order_and_unchanged() -> None:
    tom = User.objects.create_user("tom")
    conversation = services.conversation_start(owner=tom)
    before = event_latest(conversation.pk)
    for kind, payload in STORED["events"].items():
        Event.objects.create(conversation=conversation, kind=kind, payload=payload, attempt=1)
    read = events_after_all({str(conversation.pk): before}, limit=100)
    assert {event.kind: event.payload for event in read} == STORED["events"]
    assert [event.kind for event in read] == list(STORED["events"])


@pytest.mark.parametrize("kind", STORED["events"])
def test_a_page_of_the_first_version_finds_its_fields_in_the_events_of_today(kind: str) -> None:
    assert set(STORED["events"][kind]) <= EVENT_FIELDS[kind]


@pytest.mark.parametrize("kind", STORED["events"])
def test_the_page_of_today_needs_no_field_that_the_first_version_did_not_write(kind: str) -> None:
    needed = fields_read((ROOT / "static/js/chat.js").read_text("utf-8"), kind)
    assert needed - ADDED_BY_THE_STREAM <= set(STORED["events"][kind])


def fields_read(script: str, kind: str) -> set[str]:
    """Return the fields that the page's script reads of an event of a kind."""
    written = rf"^  {kind}(?:: \(data\) => .*|\(data\) \{{\n(?:    .*\n)*?  \}}),$"
    handler = re.search(written, script, re.MULTILINE)
    assert handler is not None, f"no handler of {kind} found"
    return set(re.findall(r"\bdata\.(\w+)", handler.group()))


def test_the_fields_that_a_page_reads_are_found_in_its_script() -> None:
    script = "  one: (data) => a(data.x),\n  two(data) {\n    b(data.y);\n    c(data.z);\n  },\n"
    assert (fields_read(script, "one"), fields_read(script, "two")) == ({"x"}, {"y", "z"})


@pytest.mark.parametrize("stored", STORED["outcomes"], ids=lambda one: one["artifact"]["code"])
def test_an_outcome_of_the_first_version_says_today_what_it_said(stored: dict[str, Any]) -> None:
    artifact = stored["artifact"]
    outcome = outcome_read(artifact)
    assert outcome is not None
    assert (outcome.reason, outcome.stop, outcome.code, outcome.already_applied, outcome.data) == (
        artifact["reason"],
        artifact["stop"],
        artifact["code"],
        artifact["already_applied"],
        artifact["data"],
    )
    assert call_state(artifact, effect=stored["effect"]) == stored["state"]


def test_an_outcome_of_a_version_to_come_is_never_taken_for_completed() -> None:
    artifact = {**STORED["outcomes"][0]["artifact"], "v": 2}
    assert outcome_read(artifact) is None
    assert call_state(artifact, effect=True) == "unknown"
