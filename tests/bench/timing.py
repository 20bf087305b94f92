"""Times of one kind: their median and their 90th percentile."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Times:
    """What was measured several times, in seconds."""

    seconds: Sequence[float]

    @property
    def median(self) -> float:
        """Return the time that half of the tries were faster than."""
        return statistics.median(self.seconds)

    @property
    def p90(self) -> float:
        """Return the time that nine of ten tries were faster than."""
        ranked = sorted(self.seconds)
        return ranked[min(len(ranked) - 1, len(ranked) * 9 // 10)]


def timed(work: Callable[[], object], *, tries: int, loops: int) -> Times:
    """Time one call of `work`, as the mean of `loops` calls, `tries` times."""
    work()
    found = []
    for _try in range(tries):
        began = time.perf_counter()
        for _loop in range(loops):
            work()
        found.append((time.perf_counter() - began) / loops)
    return Times(found)
