"""A period as people write it becomes whole days, or a sentence that says what is missing."""

from __future__ import annotations

from datetime import UTC, date, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from payments.periods import Period, PeriodUnclear, period_parse

TODAY = date(2026, 4, 15)  # a Wednesday


@pytest.mark.parametrize(
    ("text", "start", "end", "label"),
    [
        ("today", "2026-04-15", "2026-04-15", "2026-04-15"),
        ("yesterday", "2026-04-14", "2026-04-14", "2026-04-14"),
        ("this week", "2026-04-13", "2026-04-19", "2026-04-13 to 2026-04-19"),
        ("last week", "2026-04-06", "2026-04-12", "2026-04-06 to 2026-04-12"),
        ("this month", "2026-04-01", "2026-04-30", "April 2026"),
        ("last month", "2026-03-01", "2026-03-31", "March 2026"),
        ("the previous month", "2026-03-01", "2026-03-31", "March 2026"),
        ("this quarter", "2026-04-01", "2026-06-30", "2026-04-01 to 2026-06-30"),
        ("last quarter", "2026-01-01", "2026-03-31", "2026-01-01 to 2026-03-31"),
        ("Q1 2026", "2026-01-01", "2026-03-31", "2026-01-01 to 2026-03-31"),
        ("2025-Q4", "2025-10-01", "2025-12-31", "2025-10-01 to 2025-12-31"),
        ("Q3", "2025-07-01", "2025-09-30", "2025-07-01 to 2025-09-30"),
        ("this year", "2026-01-01", "2026-12-31", "2026"),
        ("last year", "2025-01-01", "2025-12-31", "2025"),
        ("2025", "2025-01-01", "2025-12-31", "2025"),
        ("March", "2026-03-01", "2026-03-31", "March 2026"),
        ("april", "2026-04-01", "2026-04-30", "April 2026"),
        ("May", "2025-05-01", "2025-05-31", "May 2025"),
        ("last April", "2025-04-01", "2025-04-30", "April 2025"),
        ("in March 2026?", "2026-03-01", "2026-03-31", "March 2026"),
        ("Sept. 2025", "2025-09-01", "2025-09-30", "September 2025"),
        ("Feb 2024", "2024-02-01", "2024-02-29", "February 2024"),
        ("March last year", "2025-03-01", "2025-03-31", "March 2025"),
        ("2026-03", "2026-03-01", "2026-03-31", "March 2026"),
        ("03/2026", "2026-03-01", "2026-03-31", "March 2026"),
        ("2026-03-07", "2026-03-07", "2026-03-07", "2026-03-07"),
        ("7 March 2026", "2026-03-07", "2026-03-07", "2026-03-07"),
        ("March 7th, 2026", "2026-03-07", "2026-03-07", "2026-03-07"),
        ("March 26", "2026-03-26", "2026-03-26", "2026-03-26"),
        ("20 April", "2025-04-20", "2025-04-20", "2025-04-20"),
        ("2026-01-01 to 2026-03-31", "2026-01-01", "2026-03-31", "2026-01-01 to 2026-03-31"),
        ("2026-01-01..2026-03-31", "2026-01-01", "2026-03-31", "2026-01-01 to 2026-03-31"),
        ("2026-01-01/2026-03-31", "2026-01-01", "2026-03-31", "2026-01-01 to 2026-03-31"),
        ("between 2026-01-01 and 2026-03-31", "2026-01-01", "2026-03-31",
         "2026-01-01 to 2026-03-31"),
        ("from January to March 2026", "2026-01-01", "2026-03-31", "2026-01-01 to 2026-03-31"),
        ("November to February 2026", "2025-11-01", "2026-02-28", "2025-11-01 to 2026-02-28"),
        ("2026-03-01 – 2026-03-31", "2026-03-01", "2026-03-31", "March 2026"),
        ("since March", "2026-03-01", "2026-04-15", "2026-03-01 to 2026-04-15"),
        ("last 30 days", "2026-03-17", "2026-04-15", "2026-03-17 to 2026-04-15"),
    ],
)  # fmt: skip
def test_a_period_is_read_as_people_mean_it(text: str, start: str, end: str, label: str) -> None:
    expected = Period(date.fromisoformat(start), date.fromisoformat(end), label)
    assert period_parse(text, TODAY) == expected


@pytest.mark.parametrize(
    "text",
    [
        "", "   ", "soon", "03/04/2026", "2026-13", "2026-02-30", "31 April", "0 March 2026", "1e5",
        "last", "Q5", "1999", "2101-01", "last 0 days", "2026-01-01 to", "to March",
        "a to b to c", "٢٠٢٦", "2026-03-01; drop table", "March\x002026", "x" * 101,
    ],
)  # fmt: skip
def test_an_unclear_period_is_answered_with_a_sentence(text: str) -> None:
    with pytest.raises(PeriodUnclear) as refused:
        period_parse(text, TODAY)
    assert str(refused.value).endswith(".")
    assert len(str(refused.value)) < 300


def test_a_period_that_has_not_begun_is_refused() -> None:
    with pytest.raises(PeriodUnclear, match=r"^May 2026 has not begun yet\.$"):
        period_parse("May 2026", TODAY)


def test_a_range_that_ends_before_it_begins_is_refused() -> None:
    with pytest.raises(PeriodUnclear, match="ends before it begins"):
        period_parse("2026-03-31 to 2026-01-01", TODAY)


def test_last_month_in_january_is_december_of_the_year_before() -> None:
    assert period_parse("last month", date(2026, 1, 31)).label == "December 2025"
    assert period_parse("last quarter", date(2026, 1, 31)).start == date(2025, 10, 1)


def test_the_bounds_take_in_the_whole_last_day() -> None:
    period = period_parse("March 2026", TODAY)
    assert period.bounds(UTC) == (
        datetime(2026, 3, 1, tzinfo=UTC),
        datetime(2026, 4, 1, tzinfo=UTC),
    )
    prague = ZoneInfo("Europe/Prague")
    first, after = period.bounds(prague)
    # The clocks change in this month, so it is one hour short.
    assert (after - first.astimezone(UTC)).total_seconds() == (31 * 24 - 1) * 3600


@given(st.text(max_size=60), st.dates(date(2001, 1, 1), date(2099, 12, 31)))
def test_any_text_is_a_period_or_a_sentence(text: str, today: date) -> None:
    try:
        period = period_parse(text, today)
    except PeriodUnclear as refused:
        assert str(refused)  # noqa: PT017 - not every text is refused
    else:
        assert period.start <= period.end
        assert period.start <= today


@given(st.dates(date(2000, 1, 1), date(2026, 4, 15)), st.dates(date(2000, 1, 1), date(2026, 4, 15)))
def test_a_label_names_the_same_period_again(one: date, other: date) -> None:
    first, last = sorted((one, other))
    period = period_parse(f"{first} to {last}", TODAY)
    assert period_parse(period.label, TODAY) == period
