"""`make bench`: what deciding costs, on servers of its own; a missed target is only told."""

from __future__ import annotations

import argparse
import os


def start() -> None:
    """Start the servers, set Django up, and only then import what needs both."""
    parser = argparse.ArgumentParser(prog="python -m tests.bench", description=__doc__)
    parser.add_argument("--short", action="store_true", help="measure each thing a few times only")
    options = parser.parse_args()
    # What a run logs would be measured with it, and hide the table.
    os.environ.setdefault("LOG_LEVEL", "ERROR")

    import django

    import tests.services  # noqa: F401 - starts the servers

    django.setup()

    from tests.bench.report import SHORT, WHOLE, rows, table
    from tests.savings.stage import stage_alone

    with stage_alone() as stage:
        found = list(rows(stage, SHORT if options.short else WHOLE))
    print(table(found))


if __name__ == "__main__":
    start()
