"""The measurement itself: the short form in every run of the tests, the whole with the long ones.

The outcomes are made by the offline models, which answer the same each time, so calls and effects
are exact; nothing here is about the clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from tests.savings.classes import CLASSES
from tests.savings.kept import kept_of, kept_read
from tests.savings.measure import BASELINE, Trio, differing, missed, rows

# The first test plays the short form, which a busy machine takes its time for.
pytestmark = pytest.mark.timeout(300)


@pytest.fixture(
    params=["short", pytest.param("whole", marks=[pytest.mark.full, pytest.mark.timeout(1800)])]
)
def trios(request: pytest.FixtureRequest, db: None) -> Sequence[Trio]:
    """Return the short form, or the whole where the long tests run; `db` is named for pytest."""
    played: Sequence[Trio] = request.getfixturevalue(request.param)
    return played


def test_every_class_is_played(trios: Sequence[Trio]) -> None:
    assert {trio[BASELINE].request.kind for trio in trios} == set(CLASSES)


def test_every_request_ends_as_its_class_says(trios: Sequence[Trio]) -> None:
    wrong = [
        (played.request.id, played.request.kind, played.course)
        for played in (trio["hard"] for trio in trios)
        if not CLASSES[played.request.kind].holds(played.course)
    ]
    assert wrong == []


def test_every_request_makes_as_many_writes_as_it_orders(trios: Sequence[Trio]) -> None:
    counted = {
        trio["hard"].request.id: (len(trio["hard"].course.effects()), trio["hard"].request.writes)
        for trio in trios
    }
    assert {name: pair for name, pair in counted.items() if pair[0] != pair[1]} == {}


def test_every_decision_of_a_reviewer_was_asked_for(trios: Sequence[Trio]) -> None:
    decided = {
        trio["hard"].request.id: (
            len(trio["hard"].effects["reviews"]),
            len(trio["hard"].request.decisions),
        )
        for trio in trios
    }
    assert {name: pair for name, pair in decided.items() if pair[0] != pair[1]} == {}


def test_targets_are_met_and_effects_are_equal_in_every_mode(trios: Sequence[Trio]) -> None:
    assert list(missed(trios)) == []


def test_something_is_changed_at_all_where_a_request_orders_it(trios: Sequence[Trio]) -> None:
    """Equal effects would prove nothing if they were empty."""
    nothing_done = {"policy_block", "fatal"}
    tables = ("intents", "tickets", "exports")
    empty = [
        played.request.id
        for played in (trio["hard"] for trio in trios)
        if played.request.writes
        and played.request.kind not in nothing_done
        and not any(played.effects[table] for table in tables)
    ]
    # An export of a year without payments, and an amount that is asked back, change nothing.
    assert [name for name in empty if name not in {"export-empty", "half-a-yen"}] == []


def test_what_the_product_shows_as_saved_is_the_next_call_of_never(trios: Sequence[Trio]) -> None:
    """One call, and exactly the tokens that this very call reads where it is made.

    A refusal ends the turn in every mode, so its next call is made here, after the end.
    """
    for trio in trios:
        hard, never = trio["hard"], trio[BASELINE]
        shown = (hard.request.id, hard.saved, hard.tokens_saved)
        if hard.course.rule not in ("completed", "fatal", "policy_block"):
            assert shown == (hard.request.id, 0, 0)
        elif hard.course.rule == "policy_block":
            assert shown == (hard.request.id, 1, hard.spared)
            assert never.prompts == hard.prompts
        else:
            assert shown == (hard.request.id, 1, hard.spared)
            assert never.prompts == (*hard.prompts, hard.tokens_saved)


def test_the_sum_of_what_is_shown_as_saved_is_the_difference_of_the_modes(
    trios: Sequence[Trio],
) -> None:
    measured = [trio for trio in trios if trio["hard"].course.rule != "policy_block"]
    row = rows(measured)[0]
    hard, never = row.usage["hard"], row.usage[BASELINE]
    assert never.model_calls - hard.model_calls == sum(trio["hard"].saved for trio in measured)
    assert never.input_tokens - hard.input_tokens == sum(
        trio["hard"].tokens_saved for trio in measured
    )


def test_the_model_calls_are_those_of_the_kept_run(trios: Sequence[Trio]) -> None:
    """Tokens are not compared: what a look-up says names months, and they differ in length."""
    kept = kept_read()
    for name, used in kept_of(trios).items():
        calls = {mode: figures[0] for mode, figures in used.items()}
        assert {mode: kept[name][mode][0] for mode in used} == calls, (
            f"{name} differs; `make savings UPDATE=1` keeps a new run"
        )


def test_a_mode_that_changes_something_else_is_named_with_the_rows(short: list[Trio]) -> None:
    trio = next(each for each in short if each["hard"].request.id == "charge-good-card")
    lost = replace(trio["hard"], effects={**trio["hard"].effects, "payments": ()})
    told = differing({**trio, "hard": lost})
    assert any(each.startswith("hard against never, payments: only there new") for each in told)
    sentences = list(missed([{**trio, "hard": lost}]))
    assert sentences[0].startswith("charge-good-card has changed something else: hard against")


def test_a_second_call_on_what_one_tool_answers_misses_the_target(short: list[Trio]) -> None:
    worse = [{**trio, "hard": trio[BASELINE]} for trio in short]
    (sentence,) = missed(worse)
    assert sentence == (
        "On the requests that one tool answers, hard made 1.000 of the model calls of never; the "
        "target is at most 0.55."
    )
