"""The measurement in words and tables, for the terminal and for docs/savings.md."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import date
from pathlib import Path
from typing import Final

from tests.savings.classes import CLASSES, ONE_TOOL
from tests.savings.measure import (
    ALL,
    BASELINE,
    MODES,
    ONE_TOOL_ANSWERS,
    TARGET,
    Row,
    Trio,
    differing,
    rows,
)
from tests.savings.play import OFFLINE, model_of
from tests.savings.repeats import AGAINST, Again, again_table

PAGE: Final = Path(__file__).parents[2] / "docs" / "savings.md"
BEGIN: Final = "<!-- measured: written by `make savings UPDATE=1` -->"
END: Final = "<!-- end of what was measured -->"

AGAIN_TOLD: Final = f"""### With a model that repeats

The same offline models (simulated) under {BASELINE}, made to call their last batch with effects
once more before they answer. What they changed is compared with {AGAINST}, where the model is not
asked again."""

COLUMNS: Final = (
    "requests",
    "how many",
    "mode",
    "model calls",
    "input tokens",
    "output tokens",
    "seconds",
    f"calls to {BASELINE}",
    f"input to {BASELINE}",
)
GROUPS: Final = {
    ALL: "the whole collection",
    ONE_TOOL_ANSWERS: f"{', '.join(ONE_TOOL[:-1])} and {ONE_TOOL[-1]} together",
    **{name: kind.words for name, kind in CLASSES.items()},
}


def models_named(trios: Sequence[Trio]) -> str:
    """Name the models that answered; the offline ones are no language model, and it says so."""
    names = dict.fromkeys(model_of(trio[BASELINE].request) for trio in trios)
    return ", ".join(f"{name} (simulated)" if name.startswith(OFFLINE) else name for name in names)


def report(trios: Sequence[Trio], day: date, again: Sequence[Again] = ()) -> str:
    """Return the whole report; with the part about a model that repeats where one was played."""
    return "\n\n".join(
        (
            f"Model: {models_named(trios)}. Measured on {day.isoformat()}.",
            table(rows(trios)),
            effects_told(trios),
            target_told(rows(trios)),
            *([AGAIN_TOLD, again_table(again)] if again else []),
        )
    )


def table(found: Sequence[Row]) -> str:
    """Return the sums as one table, a line for each group and mode."""
    head = [f"| {' | '.join(COLUMNS)} |", f"| {' | '.join('---' for _each in COLUMNS)} |"]
    return "\n".join([*head, *(line for row in found for line in _lines(row))])


def effects_told(trios: Sequence[Trio]) -> str:
    """Say on how many requests every mode has changed the same, and name the others."""
    differ = {trio[BASELINE].request.id: differing(trio) for trio in trios}
    same = sum(1 for found in differ.values() if not found)
    told = (
        f"Ledger, processor's books, reviews, tickets and exports equal to {BASELINE}: {same} of "
        f"{len(trios)} requests."
    )
    return "\n".join(
        [told, *(f"- {name}: {each}" for name, found in differ.items() for each in found)]
    )


def target_told(found: Sequence[Row]) -> str:
    """Say how the target for model calls was met."""
    row = next((each for each in found if each.group == ONE_TOOL_ANSWERS), None)
    if row is None:
        return "No request that one tool answers was played."
    ratio = row.calls_ratio("hard")
    verdict = "met" if ratio <= TARGET else "missed"
    return (
        f"Model calls of hard on requests that one tool answers: {ratio} of {BASELINE}'s; the "
        f"target of at most {TARGET} is {verdict}."
    )


def page_written(text: str, measured: str) -> str:
    """Return the page with the measured part replaced."""
    before, _begin, rest = text.partition(BEGIN)
    _old, _end, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{measured}\n\n{END}{after}"


def _lines(row: Row) -> Iterator[str]:
    for mode in MODES:
        usage = row.usage[mode]
        first = (row.group, str(row.requests)) if mode == MODES[0] else ("", "")
        cells = (
            *first,
            mode,
            str(usage.model_calls),
            str(usage.input_tokens),
            str(usage.output_tokens),
            f"{usage.seconds:.1f}",
            str(row.calls_ratio(mode)),
            str(row.input_ratio(mode)),
        )
        yield f"| {' | '.join(cells)} |"
