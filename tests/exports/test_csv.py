"""CSV: a spreadsheet shows text and numbers, and a program reads back what was stored."""

from __future__ import annotations

import csv
import io
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from exports.cells import Cell
from exports.formats.csv import CSV, CSV_PLAIN, cell_text, text_inert


@pytest.mark.parametrize(
    "text",
    [
        "=1+1",
        "+1+1",
        "-1+1",
        "@SUM(A1)",
        "=cmd|' /C calc'!A0",
        " =1+1",
        "\u00a0=1+1",
        "\u200b=1+1",
        "\ufeff=1+1",
        "\t=1+1",
        "\r=1+1",
        "\n=1+1",
        "\thello",
        "\rhello",
        "-2-3",
        "+44-20-7946-0000",
        "-A1",
        "\uff1d1+1",
        "\uff0b1+1",
        "\uff20SUM(A1)",
        "-1E5",
    ],
)
def test_text_that_a_spreadsheet_would_run_gets_a_quote(text: str) -> None:
    assert text_inert(text) == "'" + text


@pytest.mark.parametrize(
    "text",
    [
        "",
        " ",
        "hello",
        "-12.50",
        "-12,50",
        "+44 20 7946 0000",
        "+420 777 123 456",
        "+442079460000",
        "+44 (20) 7946 0000",
        "00012345",
        "1234567890123456789",
        "3-4",
        "1E5",
        "TRUE",
        "a=b",
        "see a, =1+1",
        "one\n=1+1",
        "'quoted'",
        "Žluťoučký kůň",
        "三月",
    ],
)
def test_other_text_stays_as_it_is(text: str) -> None:
    assert text_inert(text) == text


def test_an_amount_stays_a_number_with_all_its_decimals() -> None:
    assert cell_text(Decimal("-12.50")) == "-12.50"
    assert cell_text(Decimal("1E+3")) == "1000"
    assert cell_text(Decimal("0.000")) == "0.000"
    assert cell_text(-3) == "-3"


def test_a_moment_is_written_in_universal_time() -> None:
    there = timezone(timedelta(hours=2))
    assert cell_text(datetime(2026, 3, 1, 1, 30, tzinfo=there)) == "2026-02-28 23:30:00"
    assert cell_text(datetime(2026, 3, 1, 1, 30, tzinfo=UTC)) == "2026-03-01 01:30:00"
    assert cell_text(date(2026, 3, 1)) == "2026-03-01"
    assert cell_text(None) == ""


def written(rows: list[list[Cell]], columns: list[str], form: object = CSV_PLAIN) -> bytes:
    file = io.BytesIO()
    writer = form.writer(file, columns)  # type: ignore[attr-defined]
    for row in rows:
        writer.write(row)
    writer.close()
    return file.getvalue()


def test_fields_are_quoted_and_lines_end_as_rfc_4180_says() -> None:
    text = written([["a,b", 'say "hi"', "two\nlines", "two\rlines"]], ["A", "B", "C", "D"])
    assert text == b'A,B,C,D\r\n"a,b","say ""hi""","two\nlines","two\rlines"\r\n'


def test_a_formula_after_a_comma_or_a_line_break_stays_inside_its_field() -> None:
    text = written([["one,=1+1"], ["one\r\n=1+1"]], ["A"])
    rows = list(csv.reader(io.StringIO(text.decode(), newline=""), strict=True))
    assert rows == [["A"], ["one,=1+1"], ["one\r\n=1+1"]]


def test_the_mark_stands_once_at_the_beginning_and_a_reader_that_knows_it_sees_no_harm() -> None:
    text = written([["Žluťoučký", "三月"]], ["Name", "Month"], CSV)
    assert text.startswith(b"\xef\xbb\xbfName,Month\r\n")
    assert text.count(b"\xef\xbb\xbf") == 1
    rows = list(csv.reader(io.StringIO(text.decode("utf-8-sig"), newline="")))
    assert rows == [["Name", "Month"], ["Žluťoučký", "三月"]]
    assert not written([], ["Name"], CSV_PLAIN).startswith(b"\xef\xbb\xbf")


TEXT = st.text(st.characters(codec="utf-8"), max_size=30)


@given(st.lists(st.lists(TEXT, min_size=2, max_size=2), max_size=10))
def test_every_text_comes_back_inert_and_whole(rows: list[list[str]]) -> None:
    cells: list[list[Cell]] = [list(row) for row in rows]
    for form in (CSV, CSV_PLAIN):
        read = list(form.rows(io.BytesIO(written(cells, ["A", "B"], form))))
        assert read == [["A", "B"], *([text_inert(cell) for cell in row] for row in rows)]
        for row, origin in zip(read[1:], rows, strict=True):
            for cell, text in zip(row, origin, strict=True):
                assert cell in (text, "'" + text)
                assert not cell.lstrip().startswith(("=", "@"))


def test_a_file_that_was_cut_off_is_not_read_as_whole() -> None:
    text = written([["one", "two,three"]], ["A", "B"])
    with pytest.raises(csv.Error):
        list(CSV_PLAIN.rows(io.BytesIO(text[:-4])))
