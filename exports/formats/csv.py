"""CSV by RFC 4180 in UTF-8: text that a spreadsheet would run is made inert, numbers stay numbers.

A spreadsheet guesses types in CSV whatever we write; a format with types is the way around that.
"""

from __future__ import annotations

import csv
import io
import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from decimal import Decimal
from typing import BinaryIO, Final

from exports.cells import Cell

# The wide forms count as well: a spreadsheet in Japanese takes them for the narrow ones.
_FORMULA_STARTS: Final = frozenset("=+-@\uff1d\uff0b\uff0d\uff20")
# These alone move what follows into a cell of its own in some spreadsheets.
_BREAKS: Final = frozenset("\t\r\n")
_NUMBER: Final = re.compile(r"[+-][0-9]+(?:[.,][0-9]+)?", re.ASCII)
# No dashes: a spreadsheet would subtract the groups of +44-20-7946.
_PHONE: Final = re.compile(r"\+[0-9](?:[ ().]{0,2}[0-9]){6,14}", re.ASCII)


def text_inert(text: str) -> str:
    """Return text that no spreadsheet runs: a quote goes before what looks like a formula."""
    start = 0
    while start < len(text) and unicodedata.category(text[start])[0] in "ZC":
        if text[start] in _BREAKS:
            return "'" + text
        start += 1
    if start == len(text) or text[start] not in _FORMULA_STARTS:
        return text
    if _NUMBER.fullmatch(text) or _PHONE.fullmatch(text):
        return text
    return "'" + text


def cell_text(cell: Cell) -> str:
    """Return the cell as it stands in the file; amounts keep all their decimals."""
    if cell is None:
        return ""
    if isinstance(cell, str):
        return text_inert(cell)
    if isinstance(cell, Decimal):
        return format(cell, "f")
    if isinstance(cell, datetime):
        return cell.astimezone(UTC).strftime("%Y-%m-%d %H:%M:%S")
    return str(cell)


class _Writer:
    """One CSV file while it is written."""

    def __init__(self, file: BinaryIO, columns: Sequence[str], encoding: str) -> None:
        self._text = io.TextIOWrapper(file, encoding=encoding, newline="")
        self._rows = csv.writer(self._text, lineterminator="\r\n")
        self.write(columns)

    def write(self, cells: Sequence[Cell]) -> None:
        """Add one row."""
        self._rows.writerow([cell_text(cell) for cell in cells])

    def close(self) -> None:
        """Write out what is held back, and let go of the file."""
        self._text.flush()
        self._text.detach()


@dataclass(frozen=True, slots=True)
class CsvFormat:
    """CSV, with or without the byte order mark by which Excel knows UTF-8."""

    name: str
    label: str
    byte_order_mark: bool
    extension: str = "csv"
    content_type: str = "text/csv; charset=utf-8; header=present"
    row_limit: int | None = None

    def writer(self, file: BinaryIO, columns: Sequence[str]) -> _Writer:
        """Begin a document with these column names."""
        return _Writer(file, columns, "utf-8-sig" if self.byte_order_mark else "utf-8")

    def rows(self, file: BinaryIO) -> Iterator[Sequence[str]]:
        """Read a document back row by row, the column names first.

        Raises:
            csv.Error: a quote is not closed, or the file is otherwise no CSV.
        """
        text = io.TextIOWrapper(file, encoding="utf-8-sig", newline="")
        try:
            yield from csv.reader(text, strict=True)
        finally:
            # The file belongs to the caller; a wrapper that is dropped would close it.
            text.detach()


CSV: Final = CsvFormat("csv", "CSV", byte_order_mark=True)
CSV_PLAIN: Final = CsvFormat("csv-plain", "CSV for programs", byte_order_mark=False)
