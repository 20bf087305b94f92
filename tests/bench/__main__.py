"""`make bench`: what a turn and its decision cost, as ratios; a missed target is only told."""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from typing import Final

PARTS: Final = ("deciding", "throughput")


def start() -> None:
    """Measure what is wanted, each part on servers of its own."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--short", action="store_true", help="measure each thing a few times only")
    parser.add_argument("--only", choices=PARTS, help="measure this part alone")
    options = parser.parse_args()
    for part in PARTS:
        if options.only in (None, part):
            print(f"\n{part}\n")
            for line in {"deciding": deciding, "throughput": throughput}[part](options.short):
                print(line, flush=True)


def deciding(short: bool) -> Iterator[str]:
    """Start the servers, set Django up, and only then import what needs both."""
    # What a run logs would be measured with it, and hide the table.
    os.environ.setdefault("LOG_LEVEL", "ERROR")

    import django

    import tests.services  # noqa: F401 - starts the servers

    django.setup()

    from tests.bench.report import SHORT, WHOLE, rows, table
    from tests.savings.stage import stage_alone

    with stage_alone() as stage:
        found = list(rows(stage, SHORT if short else WHOLE))
    yield table(found)


def throughput(short: bool) -> Iterator[str]:
    """Drive the whole path, in processes of its own."""
    from tests.bench.throughput import SHORT, WHOLE, report

    return report(SHORT if short else WHOLE)


if __name__ == "__main__":
    start()
