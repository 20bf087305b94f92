"""Turns that wait for a slow model: how many one worker process holds, and what each one takes."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from tests.bench.servers import Product, memory, product_started
from tests.rig.waiting import until

WANTED: Final = 64
LONGEST_SECONDS: Final = 180.0
LOOK_SECONDS: Final = 0.2
WATCHED_SECONDS: Final = 5.0
WARM: Final = 8

_OPEN: Final = "SELECT count(*) FROM runs_run WHERE ended_at IS NULL"
_BROKEN: Final = "SELECT count(*) FROM runs_run WHERE state <> 'done'"


@dataclass(frozen=True, slots=True)
class Held:
    """What was seen while turns waited; memory in bytes."""

    at_once: int
    workers: int
    memory_before: int
    memory_then: int
    sessions_before: int
    sessions_peak: int
    sessions_after: int
    cpu_share: float
    broken: int

    @property
    def memory_each(self) -> float:
        """Return the bytes that one more waiting turn takes."""
        return (self.memory_then - self.memory_before) / max(self.at_once, 1)


def held(product: Product, wanted: int = WANTED, watched: float = WATCHED_SECONDS) -> Held:
    """Let so many turns wait at once on the one worker process, look, and let them all end."""
    product.asked("tests.bench.seats", "seats", str(wanted))
    product.asked("tests.bench.seats", "send", str(WARM))
    _all_ended(product)
    memory_before, sessions_before = memory(product.worker()), product.sessions()
    product.asked("tests.bench.seats", "send", str(wanted), CHAT_MODEL="bench:gated")
    at_once = _settled(product, wanted)
    memory_then, workers = memory(product.worker()), len(set(product.waiting()))
    sessions_peak, cpu_share = _watched(product, watched)
    product.gate.touch()
    _all_ended(product)
    return Held(
        at_once=at_once,
        workers=workers,
        memory_before=memory_before,
        memory_then=memory_then,
        sessions_before=sessions_before,
        sessions_peak=sessions_peak,
        sessions_after=product.sessions(),
        cpu_share=cpu_share,
        broken=product.count(_BROKEN),
    )


def _settled(product: Product, wanted: int) -> int:
    """Wait until so many calls of the model wait, or until no more come; return how many do."""
    seen, since = 0, time.monotonic()
    while seen < wanted and time.monotonic() - since < LONGEST_SECONDS / 6:
        time.sleep(LOOK_SECONDS)
        now = len(product.waiting())
        if now > seen:
            seen, since = now, time.monotonic()
    return seen


def _watched(product: Product, seconds: float) -> tuple[int, float]:
    """Watch the waiting for a while: the most sessions, and the share of one core it takes."""
    peak, before, began = 0, product.used().worker, time.monotonic()
    while time.monotonic() - began < seconds:
        peak = max(peak, product.sessions())
        time.sleep(LOOK_SECONDS)
    return peak, (product.used().worker - before) / (time.monotonic() - began)


def _all_ended(product: Product) -> None:
    until(lambda: not product.count(_OPEN), "no run open", LONGEST_SECONDS, every=LOOK_SECONDS)


def lines(seen: Held) -> Iterator[str]:
    """Say what was seen."""
    met = "met" if seen.at_once >= WANTED and seen.workers == 1 else "missed"
    yield (
        f"Turns that wait for a slow model on one worker process: {seen.at_once} at once "
        f"(target: at least {WANTED}): {met}."
    )
    yield (
        f"Resident memory of the worker: {_mega(seen.memory_before)} before, "
        f"{_mega(seen.memory_then)} then: {seen.memory_each / 1024:.0f} KB a waiting turn."
    )
    yield (
        f"Postgres sessions of the product: {seen.sessions_before} before, at most "
        f"{seen.sessions_peak} while they wait, {seen.sessions_after} afterwards."
    )
    yield f"CPU of the worker while they wait: {seen.cpu_share:.1%} of one core."
    if seen.broken:
        yield f"{seen.broken} of the runs did not end as they should."


def report() -> Iterator[str]:
    """Start the product, let turns wait, and yield what is printed."""
    with product_started() as product:
        yield from lines(held(product))


def _mega(size: int) -> str:
    return f"{size / 2**20:.0f} MB"
