"""What the `ask` command prints and answers with: event lines, approvals, exit codes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from django.contrib.auth.models import User
from django.db.models import QuerySet

from agent_core.errors import CountersignError
from agent_core.runs.models import Run
from agent_core.runs.selectors import EventRow
from agent_core.runs.states import CallState, Role, RunState
from agent_core.runs.wording import calls_in_words
from reviews.models import Review
from reviews.services import review_approve
from reviews.states import FINAL

EXIT_CODES: Final[Mapping[str, int]] = {
    "completed": 0,
    "answered": 0,
    "policy_block": 10,
    "fatal": 11,
    "budget": 12,
    "cancelled": 13,
    "failed": 14,
    "parked": 15,
}
"""The command's exit code by the rule that ended the run; part of its interface."""

WAITING_EXIT: Final = 20
"""The exit code of a run that waits for a reviewer."""


def event_line(event: EventRow) -> str:
    """Return an event as one line for a terminal, empty for those that say nothing there."""
    data = event.payload
    if event.kind == "message" and data["role"] != Role.STAFF:
        return f"\n{data['text']}\n"
    if event.kind == "call":
        summary = f" · {data['summary']}" if data["summary"] else ""
        return f"  {data['label']}: {CallState(data['state']).label}{summary}"
    if event.kind == "run" and data["state"] in (RunState.WAITING, RunState.RUNNING):
        return f"  ({RunState(data['state']).label})"
    if event.kind == "review":
        return f"  Review: {data['title']} ({data['state']})"
    if event.kind == "stop":
        return _stop_line(data)
    return ""


def _stop_line(data: Mapping[str, Any]) -> str:
    # A worker of the version before, which counts no tokens and has no notes, may have written it.
    calls = calls_in_words(
        made=data["made"],
        saved=data["saved"],
        tokens=data.get("tokens_saved", 0),
        estimated=data.get("tokens_estimated", False),
    )
    told = " ".join([data["explanation"], *data.get("notes", ())])
    return f"■ Stopped: {data['headline']}. {told} {calls}."


def reviews_waiting(run: Run) -> QuerySet[Review]:
    """Return what a run still waits for, oldest first."""
    return Review.objects.filter(run_id=run.pk).exclude(state__in=FINAL).order_by("created_at")


def waiting_words(run: Run) -> str:
    """Say whom a run waits for."""
    if reviews_waiting(run).filter(requester_decides=False).exists():
        return "Waits for a reviewer; the request goes on when it is decided."
    return "Waits for your own confirmation in the chat; nothing has been done yet."


def reviews_approve(run: Run, reviewer: User) -> Iterator[str]:
    """Approve what a run waits for as `reviewer`, saying of each what came of it."""
    for review in reviews_waiting(run):
        try:
            review_approve(review_id=review.pk, actor=reviewer, channel="cli")
        except CountersignError as error:
            yield f"{review.title}: {error}"
        else:
            yield f"{review.title}: approved by {reviewer.username}"
