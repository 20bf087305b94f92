"""The classes of requests by how they end, each with the proof that a run has ended so."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Step:
    """One call as it was left: its tool, whether it is an effect, and its outcome."""

    tool: str
    effect: bool
    reason: str
    stop: bool
    # Given the first outcome of its twin, so it did nothing.
    repeat: bool = False


@dataclass(frozen=True, slots=True)
class Course:
    """What a run did: its batches in order, and the rule that ended it."""

    rule: str
    batches: tuple[tuple[Step, ...], ...]

    def steps(self) -> list[Step]:
        """Return all calls in order."""
        return [step for batch in self.batches for step in batch]

    def effects(self) -> list[Step]:
        """Return the calls that change something, without those that only repeat."""
        return [step for step in self.steps() if step.effect and not step.repeat]


@dataclass(frozen=True, slots=True)
class Class:
    """One class: what it is in words, and whether a run in mode hard belongs to it."""

    words: str
    holds: Callable[[Course], bool]


def _one(*tools: str) -> Callable[[Course], bool]:
    def one_tool_answers(course: Course) -> bool:
        return course.rule == "completed" and [step.tool in tools for step in course.steps()] == [
            True
        ]

    return one_tool_answers


def _look_then_write(course: Course) -> bool:
    first, *others = course.batches
    looks = not any(step.effect for step in first)
    return course.rule == "completed" and looks and len(course.effects()) == 1 and len(others) == 1


def _several_writes(course: Course) -> bool:
    return course.rule == "completed" and len(course.effects()) > 1


def _mixed(course: Course) -> bool:
    """A batch of which a part is done and a part is not, or of which only a part may end it."""
    return any(
        "transient" not in {step.reason for step in batch}
        and ({step.reason for step in batch} == {"completed", "fatal"} or _only_some_stop(batch))
        for batch in course.batches
    )


def _only_some_stop(batch: tuple[Step, ...]) -> bool:
    return len({step.stop for step in batch}) > 1


def _remaining(course: Course) -> bool:
    """A finished receipt that did not end the turn, because something was still to be told."""
    held = [
        batch
        for batch in course.batches
        if all(step.reason == "completed" and step.stop for step in batch)
    ]
    return course.rule == "answered" and bool(held)


CLASSES: Final[Mapping[str, Class]] = {
    "receipt": Class(
        "a charge or refund that one call completes", _one("charge_invoice", "refund_request")
    ),
    "ticket": Class("a ticket that one call opens", _one("ticket_create")),
    "search": Class("an article that one call finds", _one("articles_search")),
    "export": Class("an export that one call starts", _one("export_payments")),
    "look_then_write": Class("a look-up, then one write", _look_then_write),
    "several_writes": Class("several writes, together or in sequence", _several_writes),
    "remaining": Class("a receipt, and something remains to be told", _remaining),
    "mixed": Class("a part done and a part failed, or only a part may end the turn", _mixed),
    "transient": Class(
        "nothing came of it now, or nobody knows yet",
        lambda course: any(step.reason == "transient" for step in course.steps()),
    ),
    "fatal": Class("failed for good", lambda course: course.rule == "fatal"),
    "policy_block": Class(
        "refused by a rule, a right or a person", lambda course: course.rule == "policy_block"
    ),
    "answered": Class(
        "a look-up or words only",
        lambda course: course.rule == "answered" and not course.effects(),
    ),
}
"""In the order in which they are reported."""

ONE_TOOL: Final = ("receipt", "ticket", "search", "export")
"""The requests that one tool answers; the target for model calls is about them."""
