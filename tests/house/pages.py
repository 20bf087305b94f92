"""Read the tables of the documentation."""

import re

from tests.house.tree import ROOT


def page(name: str) -> str:
    """Return a page of the documentation."""
    return (ROOT / name).read_text(encoding="utf-8")


def table(text: str, heading: str) -> list[list[str]]:
    """Return the rows of the first table under a heading, without its head; marks are removed.

    Raises:
        LookupError: no such heading, or no table under it.
    """
    parts = re.split(rf"(?m)^#+ {re.escape(heading)}$", text)
    if len(parts) != 2:
        raise LookupError(f"{len(parts) - 1} headings are called {heading}")
    section = re.split(r"(?m)^#+ ", parts[1])[0]
    lines = [line for line in section.splitlines() if line.startswith("|")]
    if len(lines) < 3:
        raise LookupError(f"no table under {heading}")
    return [
        [cell.strip().replace("`", "") for cell in line.strip().strip("|").split("|")]
        for line in lines[2:]
    ]


def column(text: str, heading: str, number: int = 0) -> list[str]:
    """Return one column of a table."""
    return [row[number] for row in table(text, heading)]
