"""The results as a table: whole for the terminal, without the seconds for the page."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import date
from typing import Final

from tests.versions.running import Report
from tests.versions.sets import ROOT, SHOWN

PAGE: Final = ROOT / "docs" / "versions.md"
BEGIN: Final = "<!-- results: written by `python -m tests.versions --update` -->"
END: Final = "<!-- end of results -->"

_HEAD: Final = ("set", "Python", *SHOWN, "passed", "failed", "skipped", "cases", "mixes")
_SECONDS: Final = ("install s", "tests s")


def table_text(reports: Sequence[Report]) -> str:
    """Return the table for the terminal, in columns."""
    rows: list[tuple[str, ...]] = [(*_HEAD, *_SECONDS)]
    rows += [(*_row(each), str(each.install_seconds), str(each.tests_seconds)) for each in reports]
    widths = [max(len(row[at]) for row in rows) for at in range(len(rows[0]))]
    lines = [
        "  ".join(cell.ljust(wide) for cell, wide in zip(row, widths, strict=True)) for row in rows
    ]
    return "\n".join(line.rstrip() for line in lines) + "\n"


def page_written(page: str, reports: Sequence[Report], taken: date) -> str:
    """Return the page with the results between its marks.

    Raises:
        ValueError: the page lacks its marks.
    """
    before, _, rest = page.partition(BEGIN)
    _, mark, after = rest.partition(END)
    if not mark:
        raise ValueError("The page has no place for the results.")
    rows = [_HEAD, tuple("---" for _ in _HEAD), *(_row(each) for each in reports)]
    table = "\n".join(f"| {' | '.join(row)} |" for row in rows)
    spent = "; ".join(
        f"{each.name}: {each.install_seconds} s to install, {each.tests_seconds} s to run"
        for each in reports
    )
    remark = f"Taken on {taken.isoformat()}, on two cores that had other work too: {spent}."
    return f"{before}{BEGIN}\n\n{table}\n\n{remark}\n\n{END}{after}"


def _row(report: Report) -> tuple[str, ...]:
    return (
        report.name,
        str(report.versions["python"]),
        *(report.versions[name] or "–" for name in SHOWN),
        str(report.passed),
        str(report.failed),
        str(report.skipped),
        str(report.harness_cases),
        str(report.harness_mixes),
    )
