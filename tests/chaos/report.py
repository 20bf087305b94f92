"""What a chaos run prints: a line while it goes on, the figures at its end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Final

from tests.chaos.kills import KILLS
from tests.chaos.recovery import middle, percentile

SHOWN: Final = 20
"""The most wrong things that are told one by one; the counts are whole."""

RECOVERY_SECONDS: Final = 15.0
"""Within this a run goes on after a hit, in 99 of 100 cases."""

JUDGED_TURNS: Final = 500
"""With fewer turns too few runs are hit to tell a 99th percentile from the worst one."""


def progress(*, seconds: float, sent: int, turns: int, ended: int, kills: int, hurt: int) -> str:
    """Say how far it is."""
    return (
        f"{seconds:5.0f} s  {sent}/{turns} sent, {ended} ended or waiting, "
        f"{kills} kills, {hurt} runs hit and not going on yet"
    )


def report(
    *,
    turns: int,
    ends: Counter[str],
    done: Counter[str],
    wrong: Mapping[str, Sequence[str]],
    times: Sequence[tuple[str, float]],
    problems: Sequence[str],
) -> str:
    """Return the figures."""
    kills = sum(count for kind, count in done.items() if kind in KILLS)
    lines = [f"turns {turns}, faults {done.total()}, of them kills {kills}"]
    lines += [_counted("kills", done, kills=True), _counted("others", done, kills=False)]
    lines += ["ends: " + ", ".join(f"{name} {count}" for name, count in sorted(ends.items()))]
    lines += [f"{name} {len(found)}" for name, found in wrong.items()]
    lines += [f"error pages {len(problems)}", *_recovery(times)]
    met = "met" if in_time(times) else "missed"
    lines += [f"recovery target, p99 at most {RECOVERY_SECONDS:.0f} s: {met}"]
    for name, found in wrong.items():
        lines += [f"  {name}: {sentence}" for sentence in found[:SHOWN]]
    lines += [f"  error page: {problem}" for problem in problems[:SHOWN]]
    return "\n".join(lines)


def exit_code(
    *,
    turns: int,
    wrong: Mapping[str, Sequence[str]],
    times: Sequence[tuple[str, float]],
    problems: Sequence[str],
    untimed: bool,
) -> int:
    """Return 1 when anything was wrong, or when a long run recovered too slowly.

    `untimed`: how soon it recovered is told and not judged.
    """
    slow = turns >= JUDGED_TURNS and not untimed and not in_time(times)
    return int(any(wrong.values()) or bool(problems) or slow)


def in_time(times: Sequence[tuple[str, float]]) -> bool:
    """Tell whether nearly all that was hit went on as soon as it should."""
    return percentile([took for _kind, took in times]) <= RECOVERY_SECONDS


def _counted(title: str, done: Counter[str], *, kills: bool) -> str:
    chosen = [f"{kind} {done[kind]}" for kind in sorted(done) if (kind in KILLS) == kills]
    return f"{title}: {', '.join(chosen) or 'none'}"


def _recovery(times: Sequence[tuple[str, float]]) -> list[str]:
    by_kind: dict[str, list[float]] = {"all": [took for _kind, took in times]}
    for kind, took in sorted(times):
        by_kind.setdefault(kind, []).append(took)
    return [
        f"time to recover, {kind}: {len(found)} runs, median {middle(found):.1f} s, "
        f"p99 {percentile(found):.1f} s, most {max(found, default=0.0):.1f} s"
        for kind, found in by_kind.items()
    ]
