"""The benchmark runs and prints every row; what it prints is no matter of the tests.

How fast a busy machine is says nothing about the code, so no test fails on a clock.
"""

from __future__ import annotations

import re
from typing import Final

import pytest

from tests.bench.deciding import BATCHES, batch_of
from tests.bench.report import COLUMNS, SHORT, WITH_DATABASE, host_told, names, rows, table
from tests.bench.timing import Times
from tests.bench.turns import TURNS, Clock, turns_clocked
from tests.savings.play import Stage
from tests.savings.report import PAGE

PAGE_TEXT: Final = PAGE.read_text("utf-8")


def test_every_row_is_printed_in_order(stage: Stage) -> None:
    found = list(rows(stage, SHORT))
    assert [row[0] for row in found] == names()
    assert {len(row) for row in found} == {len(COLUMNS)}
    assert {row[-1] for row in found if WITH_DATABASE not in row[0]} <= {"met", "missed", ""}
    assert {row[-2:] for row in found if WITH_DATABASE in row[0]} <= {
        ("none", host_told(share)) for share in (0.5, 0.001)
    }
    lines = table(found).splitlines()
    assert lines[0] == f"| {' | '.join(COLUMNS)} |"
    assert len(lines) == len(names()) + 2


@pytest.mark.parametrize("turn", TURNS)
def test_what_is_clocked_is_a_part_of_the_turn(stage: Stage, turn: str) -> None:
    """Gate and route are clocked at all, and what they ask is clocked apart within them."""
    for clocked in turns_clocked(turn, stage, turns=1):
        assert 0 < clocked.alone < clocked.with_database < clocked.whole
        assert 0 < clocked.share_alone < clocked.share < 1


def test_what_is_asked_within_is_counted_once_and_only_inside() -> None:
    clock = Clock()
    inner = clock.apart(lambda: sum(range(1000)))
    outer = clock.apart(inner)
    outer()
    assert (clock.inside, clock.asked) == (0, 0)
    clock.watched(outer)()
    assert 0 < clock.asked < clock.inside


def test_the_benchmarked_batches_are_batches_of_three() -> None:
    assert {len(batch_of(artifacts)) for artifacts in BATCHES.values()} == {3}


def test_nine_of_ten_tries_are_within_the_ninetieth_percentile() -> None:
    times = Times([float(each) for each in range(1, 11)])
    assert (times.median, times.p90) == (5.5, 10.0)
    assert sum(each <= Times(list(range(100))).p90 for each in range(100)) == 91


def test_what_the_host_adds_is_said_to_be_above_a_hundredth_and_why_without_a_verdict() -> None:
    assert host_told(0.117) == "above 1%: the host stores the batch in the database"
    assert host_told(0.009) == "under 1%"
    for line in PAGE_TEXT.splitlines():
        if line.startswith(f"| {WITH_DATABASE}"):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            share = float(cells[4].partition("%")[0]) / 100
            assert cells[5:] == ["none", host_told(share)]


def test_the_page_shows_every_row_of_the_benchmark() -> None:
    shown = [line.split(" | ")[0].removeprefix("| ") for line in PAGE_TEXT.splitlines()]
    assert [name for name in names() if name not in shown] == []
    assert f"| {' | '.join(COLUMNS)} |" in PAGE_TEXT
    assert re.search(r"make bench", PAGE_TEXT)
