"""`make bench`: what a turn and its decision cost, as ratios; a missed target is only told."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Callable, Iterator
from typing import Final


def start() -> None:
    """Measure what is wanted, each part on servers of its own."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--short", action="store_true", help="measure each thing a few times only")
    parser.add_argument("--only", choices=PARTS, help="measure this part alone")
    options = parser.parse_args()
    # Whoever ends us politely leaves no server behind.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    for part, measured in PARTS.items():
        if options.only in (None, part):
            print(f"\n## {part}\n", flush=True)
            for line in measured(options.short):
                print(line, flush=True)


def deciding(short: bool) -> Iterator[str]:
    """Measure what deciding costs, in this process."""
    _set_up()

    from tests.bench.report import SHORT, WHOLE, rows, table
    from tests.savings.stage import stage_alone

    with stage_alone() as stage:
        found = list(rows(stage, SHORT if short else WHOLE))
    yield table(found)


def throughput(short: bool) -> Iterator[str]:
    """Drive the whole path, in processes of its own."""
    from tests.bench.throughput import SHORT, WHOLE, report

    return report(SHORT if short else WHOLE)


def _set_up() -> None:
    """Start the servers and set Django up: what needs both may only then be imported."""
    # What a run logs would be measured with it, and hide the table.
    os.environ.setdefault("LOG_LEVEL", "ERROR")

    import django

    import tests.services  # noqa: F401 - starts the servers

    django.setup()


def waiting(short: bool) -> Iterator[str]:
    """Let turns wait for a slow model."""
    from tests.bench.waiting import report

    return report()


def cost(short: bool) -> Iterator[str]:
    """Play a conversation that grows, in this process."""
    _set_up()

    from tests.bench.cost import LONG, SHORT, report

    return report(SHORT if short else LONG)


PARTS: Final[dict[str, Callable[[bool], Iterator[str]]]] = {
    "deciding": deciding,
    "cost": cost,
    "waiting": waiting,
    "throughput": throughput,
}


if __name__ == "__main__":
    start()
