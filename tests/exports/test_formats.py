"""Every registered format: the same rows go in and come back, and the bytes are the golden ones.

A new format needs a line in `exports/formats/__init__.py` and its file in `tests/golden/exports`;
`pytest tests/exports/test_formats.py --update-golden` writes the files anew.
"""

from __future__ import annotations

import io
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

import pytest

from exports.cells import Cell, Format
from exports.formats import FORMATS

GOLDEN = Path(__file__).parent.parent / "golden" / "exports"
COLUMNS = ["Payment", "Paid at (UTC)", "Name", "Amount", "Note"]
ROWS: list[list[Cell]] = [
    [
        "PAY-00012",
        datetime(2026, 3, 15, 10, 30, tzinfo=UTC),
        "Žofie Nováková",
        Decimal("-12.50"),
        None,
    ],
    [
        "00012345",
        datetime(2026, 3, 31, 23, 59, 59, tzinfo=UTC),
        "三月 太郎",
        Decimal(500),
        "=1+1",
    ],
    ["1234567890123456789", None, 'O\'Neil, "Bo"', Decimal("0.005"), "two\nlines"],
    ["3-4", None, "TRUE", Decimal("0.00"), "+44 20 7946 0000"],
]

each = pytest.mark.parametrize("form", FORMATS.values(), ids=list(FORMATS))


def document(form: Format, rows: list[list[Cell]]) -> bytes:
    file = io.BytesIO()
    writer = form.writer(file, COLUMNS)
    for row in rows:
        writer.write(row)
    writer.close()
    assert not file.closed
    return file.getvalue()


@each
def test_the_bytes_are_the_golden_ones(form: Format, request: pytest.FixtureRequest) -> None:
    golden = GOLDEN / f"{form.name}.{form.extension}"
    made = document(form, ROWS)
    if request.config.getoption("--update-golden"):
        golden.write_bytes(made)
    assert made == golden.read_bytes()


@each
def test_as_many_rows_are_read_back_as_were_written(form: Format) -> None:
    for count in (0, 1, 2500):
        read = list(form.rows(io.BytesIO(document(form, [ROWS[2]] * count))))
        assert len(read) == count + 1
        assert list(read[0]) == COLUMNS


@each
def test_text_that_looks_like_a_number_comes_back_as_the_same_text(form: Format) -> None:
    read = list(form.rows(io.BytesIO(document(form, ROWS))))
    assert [row[0] for row in read[1:]] == [row[0] for row in ROWS]
    assert read[1][3] == "-12.50"
    assert read[4][4] == "+44 20 7946 0000"
    assert not read[2][4].startswith("=")


@each
def test_it_says_what_it_is(form: Format) -> None:
    assert FORMATS[form.name] is form
    assert form.name == form.name.lower()
    assert form.label
    assert form.extension.isalnum()
    assert "/" in form.content_type
    assert form.row_limit is None or form.row_limit > 0
