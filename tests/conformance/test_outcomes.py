"""Every tool with every outcome it can have, through both orchestrations, as its golden file.

A new tool is picked up by itself; what forces its outcomes stands in `tests/<app>/tool_samples.py`.
`pytest tests/conformance/test_outcomes.py --update-golden` writes the golden files anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any, Protocol

import pytest
from pytest_django import DjangoDbBlocker

from agent_core.chat_models.scripted import ScriptedCall, ScriptedStep
from agent_core.contract import REASONS, Tool
from agent_core.harness.play import ORCHESTRATIONS
from agent_core.toolset import Toolset
from tests.conformance.batches import BATCHES, ELSEWHERE, Batch
from tests.conformance.desk import Rows, changed, inner_words, out_of_reach, rows_now
from tests.conformance.outcomes import (
    GOLDEN,
    Outcome,
    constructors_reached,
    golden_difference,
    golden_text,
    outcomes_of,
)
from tests.conformance.samples import Forced, registered, sample_of
from tests.conformance.scenes import Played, Scene
from tests.house.pages import page, table
from tests.house.test_documents import missing_tests
from tests.journeys.conftest import product, samples
from tests.journeys.databases import copied
from tests.payments.processor import Processor, processor, processor_process

__all__ = ["processor", "processor_process", "product", "samples"]

TOOLS = list(registered())
OUTCOMES = [outcome for tool in TOOLS for outcome in outcomes_of(tool)]

Fresh = Callable[[], AbstractContextManager[None]]
Kept = Callable[[Path, str], None]


class Plays(Protocol):
    """Plays a scene through each orchestration."""

    def __call__(
        self,
        words: tuple[str, ...],
        steps: tuple[ScriptedStep, ...],
        forced: Forced,
        *,
        writes: bool = True,
    ) -> Mapping[str, Played]:
        """Play on fresh data; `writes=False` says, and proves, that nothing of it changes."""


@pytest.fixture(scope="module")
def shared(samples: str, database_url: str, django_db_blocker: DjangoDbBlocker) -> Iterator[None]:
    """Have one database for all scenes that change nothing: a copy takes longer than a scene."""
    with django_db_blocker.unblock(), copied(database_url, samples):
        yield


@pytest.fixture
def db(shared: None, samples: str, database_url: str, django_db_blocker: DjangoDbBlocker) -> Fresh:
    """Return a way to have a fresh database with the demo's data, as often as a test needs one."""

    @contextmanager
    def fresh() -> Iterator[None]:
        with django_db_blocker.unblock(), copied(database_url, samples):
            yield

    return fresh


@pytest.fixture
def plays(db: Fresh, product: Processor, settings: Any, monkeypatch: pytest.MonkeyPatch) -> Plays:
    """Return a way to play a scene with the product's tools."""
    settings.REVIEW_DECIDED = "tests.payments.assistant.stage.decided"

    def play(
        words: tuple[str, ...],
        steps: tuple[ScriptedStep, ...],
        forced: Forced,
        *,
        writes: bool = True,
    ) -> Mapping[str, Played]:
        played = {}
        for name, orchestration in ORCHESTRATIONS.items():
            with db() if writes else nullcontext(), ExitStack() as closing:
                scene = Scene(words, Toolset(TOOLS), product, settings, monkeypatch, closing)
                forced.before(scene)
                rows = None if writes else rows_now()
                played[name] = scene.play(orchestration, steps, forced.decided)
                _clean(scene, played[name], written=str(steps))
                if rows is not None:
                    _unchanged(rows)
        return played

    return play


def _clean(scene: Scene, played: Played, *, written: str) -> None:
    """Prove that no text holds anything of our inner life, nor another team's customer.

    What the model wrote itself may be repeated to it.
    """
    foreign = [word for word in out_of_reach(scene.user) if word not in written]
    for text in (*played.contents, played.transcript.text):
        assert text.strip()
        assert inner_words(text) == [], text
        assert [word for word in foreign if word in text] == [], text


def _unchanged(rows: Rows) -> None:
    """Prove that nothing has changed but the conversation, which may be bound to its customer."""
    tables = changed(rows, rows_now())
    assert [each for each in tables if not each.startswith("runs.")] == []


@pytest.fixture
def kept(request: pytest.FixtureRequest) -> Kept:
    """Return a way to compare a text with its golden file, or to write that anew."""

    def compare(path: Path, now: str) -> None:
        if request.config.getoption("--update-golden"):
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(now, "utf-8")
        difference = golden_difference(path, now)
        if difference:
            pytest.fail(f"{path.stem} reads otherwise:\n{difference}", pytrace=False)

    return compare


@pytest.mark.parametrize("outcome", OUTCOMES, ids=str)
def test_the_outcome_is_forced_and_reads_as_its_golden_file(
    outcome: Outcome, plays: Plays, kept: Kept
) -> None:
    sample, forced = sample_of(outcome.tool), outcome.forced
    arguments = (
        forced.arguments
        if isinstance(forced.arguments, str)
        else {**sample.arguments, **forced.arguments}
    )
    words = sample.words if forced.words is None else forced.words
    call = ScriptedCall(outcome.tool.name, arguments)

    played = plays(words, (ScriptedStep(calls=(call,)),), forced, writes=outcome.writes)

    for each in played.values():
        assert each.outcomes == ((outcome.reason, forced.code),), each.contents
        assert each.transcript.replies == (1,)
    kept(outcome.golden, golden_text(played))


@pytest.mark.parametrize("batch", BATCHES, ids=lambda batch: batch.name)
def test_several_calls_end_as_their_golden_file_says(
    batch: Batch, plays: Plays, kept: Kept
) -> None:
    played = plays(batch.words, batch.steps, Forced(code="", decided=batch.decided))

    for each in played.values():
        assert [code for _reason, code in each.outcomes] == list(batch.codes), each.contents
        assert set(each.transcript.replies) == {1}
    kept(batch.golden, golden_text(played))


def test_every_golden_file_has_its_outcome() -> None:
    played = {outcome.golden for outcome in OUTCOMES} | {batch.golden for batch in BATCHES}
    assert set(GOLDEN.glob("*/*.txt")) == played


def test_every_code_of_an_outcome_is_forced_here_or_its_test_is_named() -> None:
    text = page("docs/codes.md")
    # What exists under `create_agent` alone is of nobody's tool.
    known = {
        code
        for code, _reason, _stops, when in table(text, "Outcomes")
        if not when.startswith("under create_agent")
    }
    # An error whose row names no other code is passed on as an outcome under its own.
    known |= {code for code, _where, as_outcome in table(text, "Errors") if _is_reason(as_outcome)}
    forced = {outcome.forced.code for outcome in OUTCOMES}
    forced |= {code for batch in BATCHES for code in batch.codes}
    assert forced <= known
    assert known - forced == set(ELSEWHERE)
    assert missing_tests([[code, "", test] for code, test in ELSEWHERE.items()]) == []


def _is_reason(as_outcome: str) -> bool:
    return as_outcome.strip() in REASONS


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: str(tool.name))
def test_each_reason_is_forced_or_said_to_be_impossible_and_never_both(tool: Tool) -> None:
    forced = {outcome.reason for outcome in outcomes_of(tool)}
    never = sample_of(tool).never
    assert forced | set(never) == set(REASONS)
    assert forced & set(never) == set()
    assert all(len(why.split()) >= 5 for why in never.values())


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: str(tool.name))
def test_what_is_said_to_be_impossible_is_in_no_code_that_the_tool_reaches(tool: Tool) -> None:
    reached = constructors_reached(tool.run)
    assert "completed" in reached
    assert reached & set(sample_of(tool).never) == set()
