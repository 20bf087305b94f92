"""Prove the core on several generations of LangChain and LangGraph, each in a fresh environment.

`python -m tests.versions` runs all sets, `python -m tests.versions a c` some.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path

from tests.versions.running import NotBuilt, Report, set_run
from tests.versions.sets import SETS
from tests.versions.table import PAGE, page_written, table_text

RED = 1
NOT_BUILT = 3

_ENDS = (signal.SIGINT, signal.SIGTERM)


def main(arguments: Sequence[str] | None = None) -> int:
    """Return 0 when all is green, 1 when something is red, 3 when a set could not be installed."""
    parser = argparse.ArgumentParser(prog="python -m tests.versions", description=__doc__)
    parser.add_argument("names", nargs="*", help="sets to run; all when none is named")
    parser.add_argument("--update", action="store_true", help=f"write {PAGE.name} anew")
    parser.add_argument("--short", action="store_true", help="leave out the harness's mixes")
    chosen = parser.parse_args(arguments)
    names = chosen.names or list(SETS)
    if unknown := sorted(set(names) - set(SETS)):
        parser.error(f"there is no set called {', '.join(unknown)}")
    if chosen.update and (chosen.short or set(names) != set(SETS)):
        parser.error("the page tells of all sets in full, so --update runs all")
    try:
        with tempfile.TemporaryDirectory(prefix="cs-versions-") as folder:
            reports = [_reported(name, Path(folder), short=chosen.short) for name in names]
    except NotBuilt as error:
        sys.stderr.write(f"{error}\n")
        return NOT_BUILT
    sys.stdout.write(table_text(reports))
    if any(report.problems for report in reports):
        return RED
    if chosen.update:
        page = PAGE.read_text(encoding="utf-8")
        today = datetime.now(tz=UTC).date()
        PAGE.write_text(page_written(page, reports, today), encoding="utf-8")
    return 0


def _reported(name: str, folder: Path, *, short: bool) -> Report:
    report = set_run(SETS[name], folder, short=short)
    for problem in report.problems:
        sys.stdout.write(f"Set {name}: {problem}\n\n")
    return report


def _leave(number: int, _frame: object) -> None:
    """End politely: what runs is ended and no environment is left, whatever comes meanwhile."""
    for asked in _ENDS:
        signal.signal(asked, signal.SIG_IGN)
    sys.exit(128 + number)


if __name__ == "__main__":
    for ends in _ENDS:
        signal.signal(ends, _leave)
    sys.exit(main())
