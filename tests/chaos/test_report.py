"""What a chaos run is judged by, and what it only tells."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from tests.chaos.report import JUDGED_TURNS, RECOVERY_SECONDS, exit_code, report

SOON = [("kill turns", RECOVERY_SECONDS)] * 200
LATE = [*SOON[:195], *[("kill turns", RECOVERY_SECONDS + 0.1)] * 5]
FINE: dict[str, Any] = {
    "turns": JUDGED_TURNS,
    "wrong": {"lost": [], "overdue": []},
    "times": SOON,
    "problems": [],
}


@pytest.mark.parametrize(
    ("found", "code"),
    [
        ({}, 0),
        ({"wrong": {"lost": ["run 1"], "overdue": []}}, 1),
        ({"wrong": {"lost": [], "overdue": ["turns1@chaos"]}}, 1),
        ({"problems": ["500 at /"]}, 1),
        ({"times": LATE}, 1),
        ({"times": [*SOON[:-1], ("stall turns", 90.0)]}, 0),
        ({"times": LATE, "turns": JUDGED_TURNS - 1}, 0),
        ({"times": LATE, "untimed": True}, 0),
        ({"times": LATE, "untimed": True, "problems": ["500 at /"]}, 1),
        ({"times": []}, 0),
    ],
)
def test_a_run_fails_on_what_is_wrong_and_a_long_one_on_slow_recovery(
    found: dict[str, Any], code: int
) -> None:
    assert exit_code(**{"untimed": False} | FINE | found) == code


@pytest.mark.parametrize(("times", "met"), [(SOON, "met"), (LATE, "missed")])
def test_whether_recovery_came_in_time_is_always_told(times: Any, met: str) -> None:
    told = report(ends=Counter(), done=Counter(), **FINE | {"times": times})
    assert f"recovery target, p99 at most 15 s: {met}" in told.splitlines()
    assert "overdue 0" in told.splitlines()
