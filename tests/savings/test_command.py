"""The command: what it prints, and that it ends with 1 when a target is missed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from typing import Any

import pytest

from tests.savings import command
from tests.savings.collection import MODELS, CollectionInvalid
from tests.savings.measure import BASELINE, Trio
from tests.savings.play import Played, model_of
from tests.savings.repeats import Again
from tests.savings.report import AGAIN_TOLD, models_named

Run = Callable[..., int]

# The first test plays the short form, which a busy machine takes its time for.
pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def run(short: list[Trio], monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run the command on what the short form has measured."""

    def run(*arguments: str, trios: list[Trio] = short, again: Sequence[Again] = ()) -> int:
        monkeypatch.setattr(command, "stage_alone", lambda: nullcontext(None))
        monkeypatch.setattr(command, "measure", lambda *_given: trios)
        monkeypatch.setattr(command, "again_measure", lambda *_given: again)
        monkeypatch.setattr("sys.argv", ["savings", *arguments])
        return command.main()

    return run


def test_it_prints_models_table_effects_and_verdict_and_ends_with_0(
    run: Run, short: list[Trio], capsys: pytest.CaptureFixture[str]
) -> None:
    whole = [trio for trio in short if "polish" in trio]
    assert run(trios=whole) == 0
    told = capsys.readouterr().out
    assert "Model: offline:planner@0 (simulated)." in told
    assert "| one tool answers | 1 | hard | 1 |" in told
    assert "and exports equal to never: 1 of 1 requests." in told
    assert "is met." in told


def test_a_providers_model_answers_every_request_and_is_not_called_simulated(
    short: list[Trio], settings: Any
) -> None:
    assert {model_of(trio[BASELINE].request) for trio in short} == set(MODELS)
    settings.CHAT_MODEL = "groq:some"
    assert {model_of(trio[BASELINE].request) for trio in short} == {"groq:some"}
    assert models_named(short) == "groq:some"


def test_a_run_that_did_not_end_is_a_target_that_is_missed(
    run: Run, short: list[Trio], capsys: pytest.CaptureFixture[str]
) -> None:
    trio = next(trio for trio in short if "polish" in trio)
    waits = replace(trio["polish"], state="waiting")
    assert run(trios=[{**trio, "polish": waits}]) == 1
    sentence = "charge-good-card did not end in mode polish: it is waiting."
    assert capsys.readouterr().err.strip() == sentence


def test_what_a_model_that_repeats_has_changed_is_told_apart_and_is_a_target_that_is_missed(
    run: Run, short: list[Trio], capsys: pytest.CaptureFixture[str]
) -> None:
    whole = [trio for trio in short if "polish" in trio]
    hard, never = whole[0]["hard"], whole[0][BASELINE]
    assert run(trios=whole, again=[Again(hard, never, repeated=_repeated(never))]) == 0
    told = capsys.readouterr().out
    assert AGAIN_TOLD in told
    assert told.endswith("| all | 1 | 1 | 1 | 0 | 1 of 1 |\n| receipt | 1 | 1 | 1 | 0 | 1 of 1 |\n")
    twice = replace(_repeated(never), effects={**never.effects, "payments": ()})
    assert run(trios=whole, again=[Again(hard, never, repeated=twice)]) == 1
    said = capsys.readouterr()
    assert said.out.endswith("| 0 of 1 |\n")
    assert "charge-good-card has changed something else when repeated: payments: " in said.err


def _repeated(played: Played) -> Played:
    batches = played.course.batches
    return replace(played, course=replace(played.course, batches=(*batches, *batches)))


def test_a_providers_model_is_not_asked_to_repeat(
    run: Run, short: list[Trio], settings: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    settings.CHAT_MODEL, settings.GROQ_API_KEY = "groq:some", "x"
    again = [Again(short[0]["hard"], short[0][BASELINE], short[0][BASELINE])]
    run(trios=[trio for trio in short if "polish" in trio], again=again)
    assert AGAIN_TOLD not in capsys.readouterr().out


def test_it_ends_with_1_and_says_why_when_a_target_is_missed(
    run: Run, short: list[Trio], capsys: pytest.CaptureFixture[str]
) -> None:
    worse = [{**trio, "hard": trio[BASELINE]} for trio in short if "polish" in trio]
    assert run(trios=worse) == 1
    assert "hard made 1.000 of the model calls of never" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "configured", "sentence"),
    [
        ([], {"CHAT_MODEL": "groq:some"}, "CHAT_MODEL is groq:some, and GROQ_API_KEY is not set."),
        (["--update", "--short"], {}, "Only a whole run with the offline models is kept."),
        (
            ["--update"],
            {"CHAT_MODEL": "groq:some", "GROQ_API_KEY": "x"},
            "Only a whole run with the offline models is kept.",
        ),
    ],
)
def test_what_cannot_be_measured_is_refused_before_anything_is_played(
    *,
    run: Run,
    settings: Any,
    capsys: pytest.CaptureFixture[str],
    arguments: list[str],
    configured: dict[str, str],
    sentence: str,
) -> None:
    settings.GROQ_API_KEY = ""
    for name, value in configured.items():
        setattr(settings, name, value)
    assert run(*arguments) == 2
    assert capsys.readouterr().err == f"{sentence}\n"


def test_a_garbled_collection_is_one_sentence(
    run: Run, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def garbled() -> None:
        raise CollectionInvalid("desk.jsonl, line 3: this is not one JSON object on one line.")

    monkeypatch.setattr(command, "collection_read", garbled)
    assert run() == 2
    assert capsys.readouterr().err.startswith("desk.jsonl, line 3: ")
