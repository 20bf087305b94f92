"""What a row consists of before a format writes it, and what a format has to offer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import BinaryIO, Protocol

Cell = str | int | Decimal | date | datetime | None
"""Text is text, whatever it looks like; an amount is a Decimal; None is an empty cell."""


class RowWriter(Protocol):
    """Writes the rows of one file; nothing is complete before `close`."""

    def write(self, cells: Sequence[Cell]) -> None:
        """Add one row."""
        ...

    def close(self) -> None:
        """Finish the document; the file itself stays open."""
        ...


class Format(Protocol):
    """One way to write rows into a file, and to read them back for the check."""

    @property
    def name(self) -> str:
        """The stored word."""
        ...

    @property
    def label(self) -> str:
        """What people call it."""
        ...

    @property
    def extension(self) -> str:
        """The end of the file's name, without the dot."""
        ...

    @property
    def content_type(self) -> str:
        """What a browser is told."""
        ...

    @property
    def row_limit(self) -> int | None:
        """The most rows below the header that it holds; None when there is no limit."""
        ...

    def writer(self, file: BinaryIO, columns: Sequence[str]) -> RowWriter:
        """Begin a document with these column names."""
        ...

    def rows(self, file: BinaryIO) -> Iterator[Sequence[str]]:
        """Read a document back row by row, the column names first."""
        ...
