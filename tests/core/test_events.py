"""The durable events: their names and fields are data that readers rely on."""

from __future__ import annotations

import pytest

from agent_core.errors import ContractBroken
from agent_core.events import EVENT_FIELDS, event_checked


def test_the_kinds_and_their_fields_stay() -> None:
    assert {kind: sorted(fields) for kind, fields in EVENT_FIELDS.items()} == {
        "message": ["at", "message", "role", "text"],
        "message_edited": ["at", "message", "text"],
        "message_removed": ["at", "message"],
        "run": ["attempt", "state"],
        "reset": ["attempt"],
        "call": ["call", "label", "reason", "state", "summary"],
        "review": ["review", "state", "title"],
        "export": ["done", "export", "state", "total"],
        "stop": [
            "explanation",
            "headline",
            "made",
            "mode",
            "notes",
            "rule",
            "saved",
            "tokens_estimated",
            "tokens_saved",
        ],
    }


def test_a_whole_payload_is_returned_as_a_copy() -> None:
    payload = {"state": "running", "attempt": 1}
    checked = event_checked("run", payload)
    assert checked == payload
    assert checked is not payload


def test_an_unknown_kind_is_refused() -> None:
    with pytest.raises(ContractBroken, match="No event is called 'rumour'"):
        event_checked("rumour", {})


@pytest.mark.parametrize(
    ("payload", "odd"),
    [
        ({"state": "running"}, "attempt"),
        ({"state": "running", "attempt": 1, "extra": 2}, "extra"),
        ({"attempt": 1, "sate": "running"}, "sate, state"),
    ],
)
def test_a_missing_or_unknown_field_is_named(payload: dict[str, object], odd: str) -> None:
    with pytest.raises(ContractBroken, match=f"A run event has other fields: {odd}"):
        event_checked("run", payload)
