"""The rows of the benchmark: what was measured, beside what, against which target."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.bench.deciding import BATCHES, decide_timed
from tests.bench.timing import Times
from tests.bench.turns import TURNS, Clocked, turns_clocked
from tests.savings.play import Stage

ROOT: Final = Path(__file__).parents[2]
DECIDE_TARGET_SECONDS: Final = 20e-6
SHARE_TARGET: Final = 0.01

COLUMNS: Final = ("what", "median", "90 % within", "beside", "ratio", "target", "verdict")
JSON: Final = "a JSON round trip of the same batch"
TURN: Final = "the whole turn"
HARNESS: Final = "the harness, all cases and mixes"
ALONE: Final = "gate + route, the decision alone"
WITH_DATABASE: Final = "gate + route, with the host's reads and writes"


@dataclass(frozen=True, slots=True)
class Effort:
    """How often things are measured."""

    tries: int
    loops: int
    turns: int
    harness: Sequence[str] = ()


WHOLE: Final = Effort(tries=50, loops=2_000, turns=30)
SHORT: Final = Effort(tries=3, loops=20, turns=2, harness=("receipt", "decline"))


def names() -> list[str]:
    """Return what the rows are about, in their order."""
    deciding = [f"decide, a batch of 3, rule {rule}" for rule in BATCHES]
    turning = [f"{what}: {turn}" for turn in TURNS for what in (ALONE, WITH_DATABASE)]
    return [*deciding, *turning, HARNESS]


def rows(stage: Stage, effort: Effort) -> Iterator[tuple[str, ...]]:
    """Measure, row by row."""
    for rule in BATCHES:
        yield _deciding(rule, effort)
    for turn in TURNS:
        yield from _turning(turn, turns_clocked(turn, stage, turns=effort.turns))
    yield _harness(effort)


def table(found: Sequence[tuple[str, ...]]) -> str:
    """Return the rows as a table."""
    lines = [COLUMNS, tuple("---" for _each in COLUMNS), *found]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _deciding(rule: str, effort: Effort) -> tuple[str, ...]:
    ours, yardstick = decide_timed(rule, tries=effort.tries, loops=effort.loops)
    return (
        f"decide, a batch of 3, rule {rule}",
        _micro(ours.median),
        _micro(ours.p90),
        f"{JSON}: {_micro(yardstick.median)}",
        f"{ours.median / yardstick.median:.2f}",
        f"under {_micro(DECIDE_TARGET_SECONDS)}",
        _verdict(ours.p90 < DECIDE_TARGET_SECONDS),
    )


def _turning(turn: str, clocked: Sequence[Clocked]) -> Iterator[tuple[str, ...]]:
    """The target is about the decision; what the database takes is told and has none."""
    beside = f"{TURN}: {_milli(Times([each.whole for each in clocked]).median)}"
    alone = Times([each.share_alone for each in clocked])
    seconds = Times([each.alone for each in clocked])
    yield (
        f"{ALONE}: {turn}",
        _milli(seconds.median),
        _milli(seconds.p90),
        beside,
        f"{alone.median:.2%} (90 % within {alone.p90:.2%})",
        f"under {SHARE_TARGET:.0%}",
        _verdict(alone.p90 < SHARE_TARGET),
    )
    share = Times([each.share for each in clocked])
    seconds = Times([each.with_database for each in clocked])
    yield (
        f"{WITH_DATABASE}: {turn}",
        _milli(seconds.median),
        _milli(seconds.p90),
        beside,
        f"{share.median:.1%} (90 % within {share.p90:.1%})",
        "none",
        host_told(share.median),
    )


def host_told(share: float) -> str:
    """Say on which side of the target the decision is with what the host adds; it has no target."""
    if share < SHARE_TARGET:
        return f"under {SHARE_TARGET:.0%}"
    return f"above {SHARE_TARGET:.0%}: the host stores the batch in the database"


def _harness(effort: Effort) -> tuple[str, ...]:
    began = time.perf_counter()
    command = [sys.executable, "-m", "agent_core.harness", *effort.harness]
    subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
    return (HARNESS, f"{time.perf_counter() - began:.1f} s", "", "", "", "none", "")


def _verdict(met: bool) -> str:
    return "met" if met else "missed"


def _micro(seconds: float) -> str:
    return f"{seconds * 1e6:.1f} µs"


def _milli(seconds: float) -> str:
    return f"{seconds * 1e3:.2f} ms"
