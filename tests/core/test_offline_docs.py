"""Every example in docs/offline-model.md is understood as the page says."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agent_core.chat_models.requests import needs_read
from tests.core.fake_desk import Desk

PAGE = Path(__file__).resolve().parents[2] / "docs" / "offline-model.md"
ROWS = re.findall(r"^\| ([a-z]+) \| `([^`]+)` \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
SHOWN = re.findall(r"^\| `([^`]+)` \| [^|]+ \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
NO_ORDERS = [example for example in SHOWN if " " in example]


@pytest.mark.parametrize("example", NO_ORDERS)
def test_what_the_page_calls_no_order_has_no_effect(example: str) -> None:
    desk = Desk({"customer_find": "PAY-1, INV-1", "payments_list": "PAY-1, INV-1"})
    assert {name for batch in desk.ask(example) for name, _given in batch} <= {"customer_find"}
    assert desk.answer


def test_the_page_shows_what_is_no_order() -> None:
    assert len(NO_ORDERS) == 14


@pytest.mark.parametrize(("kind", "example"), ROWS, ids=[example for _kind, example in ROWS])
def test_the_example_is_understood(kind: str, example: str) -> None:
    assert [need.kind for need in needs_read(example)] == [kind]


def test_every_kind_of_request_has_an_example() -> None:
    assert {kind for kind, _example in ROWS} == {
        "find", "paid", "charge", "refund", "ticket", "search", "export", "status", "greeting",
    }  # fmt: skip
