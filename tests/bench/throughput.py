"""The whole path, beside a bare loop: from a message posted to its last event at the browser.

Rounds of the product and of the bare loop take turns, as the machine is never quiet; what is told
is the median of the rounds, and percentiles over the turns of all rounds.
"""

from __future__ import annotations

import statistics
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, Final

from tests.bench.servers import Product, Used, product_started
from tests.rig.spoken import Spoken

AT_ONCE: Final = (1, 8, 32)
SHARE_TARGETS: Final = {1: 0.30, 8: 0.45, 32: 0.45}
TOKEN_TARGET: Final = 3.5
CPU_TARGET_SECONDS: Final = 0.040
SAMPLE_SECONDS: Final = 0.25
TEXT: Final = "Broken box"


@dataclass(frozen=True, slots=True)
class Effort:
    """Rounds, and turns of each conversation in a round by how many there are at once."""

    rounds: int
    turns: dict[int, int]


WHOLE: Final = Effort(rounds=3, turns={1: 30, 8: 10, 32: 5})
SHORT: Final = Effort(rounds=1, turns={1: 3, 8: 1, 32: 1})


@dataclass
class Seen:
    """What was measured with so many conversations at once."""

    product: list[dict[str, Any]] = field(default_factory=list)
    bare: list[dict[str, Any]] = field(default_factory=list)
    same_saver: list[dict[str, Any]] = field(default_factory=list)
    used: list[Used] = field(default_factory=list)
    sessions_peak: int = 0
    sessions_after: int = 0

    def rate(self, which: Sequence[dict[str, Any]]) -> float:
        """Return turns a second, the median of the rounds."""
        return float(statistics.median(len(each["turns"]) / each["seconds"] for each in which))

    def all(self, which: Sequence[dict[str, Any]], name: str) -> list[float]:
        """Return one time of every turn."""
        return sorted(turn[name] for each in which for turn in each["turns"])

    def cpu(self, part: Callable[[Used], float]) -> float:
        """Return seconds of CPU a turn."""
        turns = sum(len(each["turns"]) for each in self.product)
        return sum(part(each) for each in self.used) / turns

    def share(self, which: Sequence[dict[str, Any]]) -> float:
        """Return the product's rate as a share of a bare loop's."""
        return self.rate(self.product) / self.rate(which)


def measured(product: Product, effort: Effort) -> dict[int, Seen]:
    """Measure the product and the bare loop, round by round."""
    seats = product.asked("tests.bench.seats", "seats", str(max(AT_ONCE)))
    found = {count: Seen() for count in AT_ONCE}
    with (
        product.python("tests.bench.client") as client,
        product.python("tests.bench.bare") as bare,
    ):
        _warm(product, client, bare, seats)
        for _round in range(effort.rounds):
            for count, seen in found.items():
                turns = effort.turns[count]
                order = {"threads": count, "turns": turns}
                seen.bare.append(bare.ask({**order, "ours": False}))
                seen.same_saver.append(bare.ask({**order, "ours": True}))
                _product_round(product, client, seats[:count], turns, seen)
    return found


def _warm(
    product: Product,
    client: Spoken,
    bare: Spoken,
    seats: Sequence[dict[str, str]],
) -> None:
    """Let everything be loaded, and every seat have a first turn, before a clock runs."""
    client.ask(_order(product, seats[:4], 2))
    client.ask(_order(product, seats, 1))
    for ours in (False, True):
        bare.ask({"threads": 8, "turns": 2, "ours": ours})


def _order(product: Product, seats: Sequence[dict[str, str]], turns: int) -> dict[str, Any]:
    return {"port": product.port, "seats": list(seats), "turns": turns, "text": TEXT}


def _product_round(
    product: Product,
    client: Spoken,
    seats: Sequence[dict[str, str]],
    turns: int,
    seen: Seen,
) -> None:
    before = product.used()
    with _sessions_watched(product) as peak:
        seen.product.append(client.ask(_order(product, seats, turns)))
    seen.used.append(product.used().since(before))
    seen.sessions_peak = max(seen.sessions_peak, *peak)
    seen.sessions_after = product.sessions()


@contextmanager
def _sessions_watched(product: Product) -> Iterator[list[int]]:
    """Count the database's sessions again and again during the body."""
    counts, done = [0], threading.Event()

    def watch() -> None:
        while not done.wait(SAMPLE_SECONDS):
            counts.append(product.sessions())

    watcher = threading.Thread(target=watch)
    watcher.start()
    try:
        yield counts
    finally:
        done.set()
        watcher.join()


COLUMNS: Final = (
    "at once", "turns/s", "bare turns/s", "ratio", "target", "bare with our saver", "ratio",
    "whole turn p50 / p95", "first event p50 / p95", "first token p50 / p95",
    "bare first token p50", "CPU a turn",
)  # fmt: skip


def rows(found: dict[int, Seen]) -> Iterator[tuple[str, ...]]:
    """Return the table of the throughput."""
    for count, seen in found.items():
        target = SHARE_TARGETS[count]
        bare_token = statistics.median(seen.all(seen.bare, "first_token"))
        yield (
            str(count),
            f"{seen.rate(seen.product):.1f}",
            f"{seen.rate(seen.bare):.1f}",
            f"{seen.share(seen.bare):.2f}",
            f"at least {target:.2f}: {verdict(seen.share(seen.bare) >= target)}",
            f"{seen.rate(seen.same_saver):.1f}",
            f"{seen.share(seen.same_saver):.2f}",
            _range(seen.all(seen.product, "whole")),
            _range(seen.all(seen.product, "first_event")),
            _range(seen.all(seen.product, "first_token")),
            f"{bare_token * 1e3:.1f} ms",
            f"{seen.cpu(lambda used: used.product) * 1e3:.1f} ms",
        )


def remarks(found: dict[int, Seen]) -> Iterator[str]:
    """Say what stands in no table."""
    alone = found[1]
    token = statistics.median(alone.all(alone.product, "first_token"))
    ratio = token / statistics.median(alone.all(alone.bare, "first_token"))
    yield (
        f"First token at 1: {ratio:.1f} times that of the bare loop "
        f"(target: at most {TOKEN_TARGET}): {verdict(ratio <= TOKEN_TARGET)}."
    )
    for count, seen in found.items():
        cpu = seen.cpu(lambda used: used.product)
        client = sum(each["cpu"] for each in seen.product) / sum(
            len(each["turns"]) for each in seen.product
        )
        bare = sum(each["cpu"] for each in seen.bare) / sum(
            len(each["turns"]) for each in seen.bare
        )
        yield (
            f"CPU a turn at {count}: {cpu * 1e3:.1f} ms (target: at most "
            f"{CPU_TARGET_SECONDS * 1e3:.0f}): {verdict(cpu <= CPU_TARGET_SECONDS)}; "
            f"web {seen.cpu(lambda used: used.web) * 1e3:.1f}, "
            f"worker {seen.cpu(lambda used: used.worker) * 1e3:.1f}; beside it "
            f"Postgres {seen.cpu(lambda used: used.postgres) * 1e3:.1f}, "
            f"Redis {seen.cpu(lambda used: used.redis) * 1e3:.1f}, "
            f"the measuring client {client * 1e3:.1f}; a turn of the bare loop {bare * 1e3:.1f}."
        )
    for count, seen in found.items():
        yield (
            f"Postgres sessions at {count}: {seen.sessions_peak} at the peak, "
            f"{seen.sessions_after} afterwards."
        )


def verdict(met: bool) -> str:
    """Say whether a target is met."""
    return "met" if met else "missed"


def _range(times: Sequence[float]) -> str:
    p95 = times[min(len(times) - 1, len(times) * 95 // 100)]
    return f"{statistics.median(times) * 1e3:.0f} / {p95 * 1e3:.0f} ms"


def report(effort: Effort, *, durable: bool = True) -> Iterator[str]:
    """Start the product, measure, and yield what is printed."""
    began = time.monotonic()
    with product_started(durable=durable) as product:
        found = measured(product, effort)
    lines = [COLUMNS, tuple("---" for _each in COLUMNS), *rows(found)]
    yield from (f"| {' | '.join(line)} |" for line in lines)
    yield ""
    yield from remarks(found)
    yield f"Measured in {time.monotonic() - began:.0f} s."
