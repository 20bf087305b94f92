"""Read a period as people write it ("last month", "March 2026"). Pure: today is handed in."""

from __future__ import annotations

import re
from calendar import monthrange
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, tzinfo
from typing import ClassVar, Final

from django.utils.translation import gettext as _

from agent_core.errors import CountersignError

MONTHS: Final = (
    "January", "February", "March", "April", "May", "June", "July", "August", "September",
    "October", "November", "December",
)  # fmt: skip
EARLIEST_YEAR: Final = 2000
LATEST_YEAR: Final = 2100
LONGEST_TEXT: Final = 100

_MONTH_NUMBERS: Final = {
    **{name.lower(): number for number, name in enumerate(MONTHS, 1)},
    **{name[:3].lower(): number for number, name in enumerate(MONTHS, 1)},
    "sept": 9,
}
_MONTH: Final = "|".join(sorted(_MONTH_NUMBERS, key=len, reverse=True))
_FILLER: Final = re.compile(r"^(?:(?:in|on|for|of|during|the|month|year|all|from|between)\s+)+")
_BETWEEN: Final = re.compile(r"\s+(?:to|until|till|through|thru|and|-|/)\s+|\s*(?:\.\.+|[–—])\s*")
_ISO_SLASH: Final = re.compile(r"(?<=\d{4}-\d\d-\d\d)/(?=\d{4}-\d\d-\d\d)")


class PeriodUnclear(CountersignError):
    """The period is not clear. Name a month, such as March 2026, or two dates."""

    code: ClassVar[str] = "period.unclear"


@dataclass(frozen=True, slots=True)
class Period:
    """Whole days from `start` to `end`, both included; `label` is for people."""

    start: date
    end: date
    label: str

    def bounds(self, zone: tzinfo) -> tuple[datetime, datetime]:
        """Return the first moment and the first moment after it, for `>=` and `<`."""
        after = self.end + timedelta(days=1)
        return datetime.combine(self.start, time.min, zone), datetime.combine(after, time.min, zone)


def period_parse(text: str, today: date) -> Period:
    """Return the period that `text` names, seen from `today`.

    Raises:
        PeriodUnclear: it is empty, ambiguous, impossible or wholly in the future; its message is
            a sentence for the person who asked.
    """
    asked = text.strip() if isinstance(text, str) else ""
    if not asked:
        raise PeriodUnclear(_("Please name a period, such as March 2026 or last month."))
    if len(asked) > LONGEST_TEXT:
        raise PeriodUnclear(_("The period is too long to read. Name a month or two dates."))
    period = _read(_plain(asked), today)
    if period is None:
        raise PeriodUnclear(
            _(
                "The period “%(asked)s” is not clear. Name a month, such as March 2026, or two "
                "dates, such as 2026-01-01 to 2026-03-31."
            )
            % {"asked": _shown(asked)}
        )
    if period.start > today:
        raise PeriodUnclear(_("%(label)s has not begun yet.") % {"label": period.label})
    return period


def _shown(text: str) -> str:
    """Return what somebody wrote, fit to be repeated inside a sentence."""
    return " ".join("".join(sign if sign.isprintable() else " " for sign in text).split())


def _plain(text: str) -> str:
    """Return the text in lower case, without punctuation or words that say nothing."""
    words = " ".join(re.sub(r"[,;?!\"'“”]", " ", text.lower()).split()).rstrip(".")
    return _FILLER.sub("", words)


def _read(words: str, today: date) -> Period | None:
    parts = _BETWEEN.split(_ISO_SLASH.sub(" to ", words))
    if len(parts) == 1:
        if words.startswith("since "):
            first = _single(_FILLER.sub("", words.removeprefix("since ")), today)
            return first and _span(first.start, max(first.start, today))
        return _single(words, today)
    if len(parts) == 2:
        return _between(parts[0], _FILLER.sub("", parts[1]), today)
    return None


def _between(first: str, last: str, today: date) -> Period | None:
    """Return a range; "January to March 2026" lends the year of its end to its start."""
    end = _single(last, today)
    if end is None:
        return None
    if re.fullmatch(_MONTH, first):
        month = _MONTH_NUMBERS[first]
        lent = end.end.year if month <= end.start.month else end.end.year - 1
        start: Period | None = _month(lent, month)
    else:
        start = _single(first, today)
    if start is None:
        return None
    if start.start > end.end:
        raise PeriodUnclear(_("The period ends before it begins. Please check the two dates."))
    return _span(start.start, end.end)


def _single(words: str, today: date) -> Period | None:
    """Return the period of one expression, or None."""
    named = _named(words, today)
    if named is not None:
        return named
    for pattern, read in _PATTERNS:
        match = pattern.fullmatch(words)
        if match is not None:
            return read(match, today)
    return None


def _named(words: str, today: date) -> Period | None:
    monday, week = today - timedelta(days=today.weekday()), timedelta(days=7)
    quarter = (today.month - 1) // 3
    spans: dict[str, Callable[[], Period]] = {
        "today": lambda: _day(today),
        "yesterday": lambda: _day(today - timedelta(days=1)),
        "this week": lambda: _span(monday, monday + timedelta(days=6)),
        "last week": lambda: _span(monday - week, monday - timedelta(days=1)),
        "this month": lambda: _month(today.year, today.month),
        "last month": lambda: _month_back(today),
        "this quarter": lambda: _quarter(today.year, quarter + 1),
        "last quarter": lambda: (
            _quarter(today.year, quarter) if quarter else _quarter(today.year - 1, 4)
        ),
        "this year": lambda: _year(today.year),
        "last year": lambda: _year(today.year - 1),
    }
    first, _space, unit = words.partition(" ")
    meant = spans.get(f"{'last' if first in {'previous', 'past'} else first} {unit}".strip())
    return meant() if meant else None


def _month_back(today: date) -> Period:
    last = today.replace(day=1) - timedelta(days=1)
    return _month(last.year, last.month)


def _days_back(match: re.Match[str], today: date) -> Period | None:
    days = int(match["days"])
    return _span(today - timedelta(days=days - 1), today) if 1 <= days <= 3660 else None


def _bare_month(match: re.Match[str], today: date) -> Period:
    """Return the latest such month that has begun; "last March" never means the running one."""
    month = _MONTH_NUMBERS[match["month"]]
    word = match["word"]
    if word == "this":
        return _month(today.year, month)
    begun = month < today.month if word else month <= today.month
    return _month(today.year if begun else today.year - 1, month)


def _month_of_year(match: re.Match[str], today: date) -> Period | None:
    word, month = match["year"], _MONTH_NUMBERS[match["month"]]
    if word == "this year":
        return _month(today.year, month)
    if word == "last year":
        return _month(today.year - 1, month)
    return _checked_month(int(word), month)


def _iso_month(match: re.Match[str], today: date) -> Period | None:
    return _checked_month(int(match["year"]), int(match["number"]))


def _iso_day(match: re.Match[str], today: date) -> Period | None:
    return _checked_day(int(match["year"]), int(match["number"]), int(match["day"]))


def _spoken_day(match: re.Match[str], today: date) -> Period | None:
    month, day = _MONTH_NUMBERS[match["month"]], int(match["day"])
    if match["year"]:
        return _checked_day(int(match["year"]), month, day)
    this_year = _checked_day(today.year, month, day)
    if this_year is not None and this_year.start <= today:
        return this_year
    return _checked_day(today.year - 1, month, day)


def _whole_year(match: re.Match[str], today: date) -> Period | None:
    year = int(match["year"])
    return _year(year) if EARLIEST_YEAR <= year <= LATEST_YEAR else None


def _named_quarter(match: re.Match[str], today: date) -> Period | None:
    number = int(match["quarter"] or match["quarter2"])
    word = match["year"] or match["year2"]
    year = int(word) if word else today.year
    if not EARLIEST_YEAR <= year <= LATEST_YEAR:
        return None
    if not word and number > (today.month - 1) // 3 + 1:
        year -= 1
    return _quarter(year, number)


def _checked_month(year: int, month: int) -> Period | None:
    if not EARLIEST_YEAR <= year <= LATEST_YEAR or not 1 <= month <= 12:
        return None
    return _month(year, month)


def _checked_day(year: int, month: int, day: int) -> Period | None:
    if not EARLIEST_YEAR <= year <= LATEST_YEAR:
        return None
    try:
        return _day(date(year, month, day))
    except ValueError:
        return None


def _day(day: date) -> Period:
    return Period(day, day, day.isoformat())


def _month(year: int, month: int) -> Period:
    last = monthrange(year, month)[1]
    return Period(date(year, month, 1), date(year, month, last), f"{MONTHS[month - 1]} {year}")


def _quarter(year: int, number: int) -> Period:
    first, last = _month(year, number * 3 - 2), _month(year, number * 3)
    return _span(first.start, last.end)


def _year(year: int) -> Period:
    return Period(date(year, 1, 1), date(year, 12, 31), str(year))


def _span(start: date, end: date) -> Period:
    """Return the range under its shortest name, so that equal periods read the same."""
    if start == end:
        return _day(start)
    for known in (_month(start.year, start.month), _year(start.year)):
        if (known.start, known.end) == (start, end):
            return known
    return Period(
        start,
        end,
        _("%(start)s to %(end)s") % {"start": start.isoformat(), "end": end.isoformat()},
    )


_Reader = Callable[[re.Match[str], date], Period | None]
_YEAR: Final = r"(?P<year>\d{4})"
_DAY: Final = r"(?P<day>\d{1,2})(?:st|nd|rd|th)?"
_PATTERNS: Final[tuple[tuple[re.Pattern[str], _Reader], ...]] = tuple(
    (re.compile(pattern, re.ASCII), read)
    for pattern, read in (
        (_YEAR, _whole_year),
        (rf"{_YEAR}-(?P<number>\d{{1,2}})", _iso_month),
        (rf"(?P<number>\d{{1,2}})[/.]{_YEAR}", _iso_month),
        (rf"{_YEAR}-(?P<number>\d{{1,2}})-(?P<day>\d{{1,2}})", _iso_day),
        (rf"(?:(?P<word>this|last)\s+)?(?P<month>{_MONTH})", _bare_month),
        (
            rf"(?P<month>{_MONTH})\.?\s+(?:of\s+)?(?P<year>\d{{4}}|this year|last year)",
            _month_of_year,
        ),
        (rf"{_DAY}\s+(?:of\s+)?(?P<month>{_MONTH})\.?(?:\s+{_YEAR})?", _spoken_day),
        (rf"(?P<month>{_MONTH})\.?\s+{_DAY}(?:\s+{_YEAR})?", _spoken_day),
        (r"(?:last|past)\s+(?P<days>\d{1,4})\s+days", _days_back),
        (
            r"q(?P<quarter>[1-4])(?:\s+(?P<year>\d{4}))?|(?P<year2>\d{4})[\s-]q(?P<quarter2>[1-4])",
            _named_quarter,
        ),
    )
)
