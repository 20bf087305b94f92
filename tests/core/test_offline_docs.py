"""Every example in docs/offline-model.md is understood as the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agent_core.chat_models.requests import needs_read

PAGE = Path(__file__).resolve().parents[2] / "docs" / "offline-model.md"
ROWS = re.findall(r"^\| ([a-z]+) \| `([^`]+)` \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize(("kind", "example"), ROWS, ids=[example for _kind, example in ROWS])
def test_the_example_is_understood(kind: str, example: str) -> None:
    assert [need.kind for need in needs_read(example)] == [kind]


def test_every_kind_of_request_has_an_example() -> None:
    assert {kind for kind, _example in ROWS} == {
        "find", "paid", "charge", "refund", "ticket", "search", "export", "status", "greeting",
    }  # fmt: skip
