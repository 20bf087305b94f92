"""Play the collection in every stop mode, and add up what each one used and what it changed."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Final

from tests.savings.classes import CLASSES, ONE_TOOL
from tests.savings.collection import Request
from tests.savings.effects import differences
from tests.savings.play import Played, Stage, play

MODES: Final = ("hard", "polish", "never")
BASELINE: Final = "never"
TARGET: Final = Decimal("0.55")
"""Of the model calls of `never`, what `hard` may make on the requests that one tool answers."""

ALL: Final = "all"
ONE_TOOL_ANSWERS: Final = "one tool answers"

Trio = Mapping[str, Played]
"""One request in every mode, the baseline among them."""


@dataclass(frozen=True, slots=True)
class Usage:
    """What some requests used in one mode."""

    model_calls: int
    input_tokens: int
    output_tokens: int
    seconds: float


@dataclass(frozen=True, slots=True)
class Row:
    """One group of requests: its name, how many, and their usage by mode."""

    group: str
    requests: int
    usage: Mapping[str, Usage]

    def calls_ratio(self, mode: str) -> Decimal:
        """Return the model calls of a mode as a share of the baseline's."""
        return _ratio(self.usage[mode].model_calls, self.usage[BASELINE].model_calls)

    def input_ratio(self, mode: str) -> Decimal:
        """Return the input tokens of a mode as a share of the baseline's."""
        return _ratio(self.usage[mode].input_tokens, self.usage[BASELINE].input_tokens)


def measure(
    requests: Iterable[Request],
    stage: Stage,
    tell: Callable[[Trio], None] | None = None,
    modes: Sequence[str] = MODES,
) -> list[Trio]:
    """Play every request in every mode, each from the same state; `tell` hears of each."""
    trios: list[Trio] = []
    for request in requests:
        trios.append({mode: play(request, mode, stage) for mode in modes})
        if tell is not None:
            tell(trios[-1])
    return trios


def rows(trios: Sequence[Trio]) -> list[Row]:
    """Return the sums: all, those that one tool answers, then class by class."""
    groups: dict[str, list[Trio]] = {ALL: list(trios), ONE_TOOL_ANSWERS: []}
    groups |= {name: [] for name in CLASSES}
    for trio in trios:
        kind = trio[BASELINE].request.kind
        groups[kind].append(trio)
        if kind in ONE_TOOL:
            groups[ONE_TOOL_ANSWERS].append(trio)
    return [
        Row(
            name,
            len(found),
            {mode: _usage([trio[mode] for trio in found]) for mode in _played(found)},
        )
        for name, found in groups.items()
        if found
    ]


def differing(trio: Trio) -> list[str]:
    """Say what a request has changed otherwise than under the baseline."""
    return [
        f"{mode} against {BASELINE}, {found}"
        for mode in trio
        if mode != BASELINE
        for found in differences(trio[mode].effects, trio[BASELINE].effects)
    ]


def missed(trios: Sequence[Trio]) -> Iterator[str]:
    """Say which target was missed, and by which requests."""
    by_group = {row.group: row for row in rows(trios)}
    row = by_group.get(ONE_TOOL_ANSWERS)
    if row and row.calls_ratio("hard") > TARGET:
        yield (
            f"On the requests that one tool answers, hard made {row.calls_ratio('hard')} of the "
            f"model calls of {BASELINE}; the target is at most {TARGET}."
        )
    for trio in trios:
        name = trio[BASELINE].request.id
        yield from (f"{name} has changed something else: {found}" for found in differing(trio))
        for mode in trio:
            if trio[mode].state != "done":
                yield f"{name} did not end in mode {mode}: it is {trio[mode].state}."


def _played(trios: Sequence[Trio]) -> list[str]:
    """Return the modes in which every one of these was played; none for none."""
    return [mode for mode in MODES if trios and all(mode in trio for trio in trios)]


def _usage(played: Sequence[Played]) -> Usage:
    return Usage(
        model_calls=sum(each.model_calls for each in played),
        input_tokens=sum(sum(each.prompts) for each in played),
        output_tokens=sum(each.output_tokens for each in played),
        seconds=sum(each.seconds for each in played),
    )


def _ratio(part: int, whole: int) -> Decimal:
    return (Decimal(part) / Decimal(whole)).quantize(Decimal("0.001")) if whole else Decimal(1)
