"""A conversation as a person reads it, in a file: lines, calls, why it stopped, reviews.

Whatever differs between two days or two runs is replaced by what it means: a minted reference by
its kind and number, a date by its month counted from now.
"""

from __future__ import annotations

import calendar
import difflib
import json
import re
from datetime import date
from pathlib import Path
from typing import Any, Final

from django.utils import timezone

from agent_core.runs.models import Call, Run
from agent_core.runs.states import RUN_FINAL
from agent_core.runs.wording import explain
from exports.models import Export
from reviews.models import Review
from tests.journeys.chat import Chat

FOLDER: Final = Path(__file__).parents[1] / "golden" / "transcripts"
_MINTED: Final = re.compile(r"\b(PAY|REF|TCK|EXP)-[2-9A-HJ-NP-Z]{8}\b")
_DUE: Final = re.compile(r"\bdue( on)? \d{4}-\d\d-\d\d")
_DAY: Final = re.compile(r"\b(\d{4})-(\d\d)-(\d\d)\b")
FAR: Final = 120
"""Months: what is further away was written by somebody, and does not move with the calendar."""
_MONTHS: Final = calendar.month_name[1:]
_MONTH: Final = re.compile(rf"\b({'|'.join(_MONTHS)}) (\d{{4}})\b")


class Plain:
    """Replaces what is volatile in the texts of one conversation, the same thing the same way."""

    def __init__(self) -> None:
        self._minted: dict[str, str] = {}
        self._today = timezone.localdate()

    def text(self, text: str) -> str:
        """Return the text with stable words for references and dates."""
        text = _MINTED.sub(self._reference, text)
        text = _DUE.sub(lambda found: f"due{found[1] or ''} (due date)", text)
        text = _DAY.sub(lambda found: self._day(date(*map(int, found.groups()))), text)
        return _MONTH.sub(
            lambda found: self._month(int(found[2]), _MONTHS.index(found[1]) + 1), text
        )

    def lines(self, text: str) -> list[str]:
        """Return the text's lines, so that a difference shows where it is."""
        return self.text(text).splitlines()

    def _reference(self, found: re.Match[str]) -> str:
        kind = found[1]
        number = sum(name.startswith(f"({kind}") for name in self._minted.values()) + 1
        return self._minted.setdefault(found[0], f"({kind} {number})")

    def _day(self, day: date) -> str:
        if day == self._today:
            return "(today)"
        return f"{self._month(day.year, day.month)} day {day.day}"

    def _month(self, year: int, month: int) -> str:
        ago = (self._today.year - year) * 12 + self._today.month - month
        if abs(ago) > FAR:
            return f"{year}-{month:02}"
        return f"(month -{ago})" if ago >= 0 else f"(month +{-ago})"


def written(chat: Chat) -> dict[str, Any]:
    """Return a conversation as its golden file holds it."""
    plain = Plain()
    runs = Run.objects.filter(conversation=chat.conversation).order_by("created_at")
    shown: dict[str, Any] = {
        "transcript": [{"role": role, "text": plain.lines(text)} for role, text in chat.lines()],
        "runs": [_run(run, plain) for run in runs],
        "reviews": [_review(review, plain) for review in chat.reviews()],
    }
    exports = Export.objects.filter(conversation_id=chat.conversation.pk).order_by("created_at")
    if files := [f"{row.state}: {row.rows_done} of {row.rows_total}" for row in exports]:
        shown["exports"] = files
    return shown


def _run(run: Run, plain: Plain) -> dict[str, Any]:
    calls = [_call(call, plain) for call in run.calls.all()]
    if run.state not in RUN_FINAL:
        return {"state": run.state, "calls": calls}
    words = explain(run.stop)
    return {
        "state": run.state,
        "calls": calls,
        "rule": run.stop.rule,
        "cause": words["cause"],
        "done": [plain.text(text) for text in words["done"]],
        "not_done": [plain.text(text) for text in words["not_done"]],
        "model_calls": {"made": words["made"], "saved": words["saved"]},
    }


def _call(call: Call, plain: Plain) -> dict[str, str]:
    outcome = call.outcome or {}
    return {
        "label": call.label,
        "state": call.get_state_display(),
        "outcome": f"{outcome.get('reason', '')} {outcome.get('code', '')}".strip(),
        "rule": call.rule,
    }


def _review(review: Review, plain: Plain) -> dict[str, Any]:
    return {
        "title": plain.text(review.title),
        "button": review.button,
        "state": review.get_state_display(),
        "card": {row["label"]: plain.text(row["text"]) for row in review.card},
    }


def golden_text(shown: dict[str, Any]) -> str:
    """Return the text of a golden file."""
    return json.dumps(shown, ensure_ascii=False, indent=2) + "\n"


def golden_difference(name: str, now: str) -> str:
    """Return how a conversation differs from its file, line by line; nothing when it does not."""
    path = FOLDER / f"{name}.json"
    kept = path.read_text("utf-8") if path.exists() else ""
    lines = difflib.unified_diff(
        kept.splitlines(),
        now.splitlines(),
        fromfile=f"tests/golden/transcripts/{name}.json",
        tofile="now",
        lineterm="",
        n=4,
    )
    return "\n".join(lines)
