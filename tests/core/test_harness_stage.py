"""Parallel probes run side by side and finish in the order that the case forces."""

from __future__ import annotations

import itertools

import pytest

from agent_core.harness import stage as staging
from agent_core.harness.cases import AFTERWARDS, Case, batch
from agent_core.harness.play import played
from agent_core.harness.stage import Stage, StageStuck
from agent_core.harness.transcript import Play

THINGS = ("T-1", "T-2", "T-3")

pytestmark = pytest.mark.usefixtures("quiet")


@pytest.mark.parametrize("finishing", list(itertools.permutations(THINGS)), ids="-".join)
def test_three_calls_finish_as_forced_and_nothing_depends_on_it(
    play: Play, finishing: tuple[str, ...]
) -> None:
    steps = (batch("receipt", "crash", "timeout"), AFTERWARDS)
    forced = played(Case(name="forced", steps=steps, finishing=finishing), play)
    assert [probe.split()[1] for probe in forced.ran] == list(finishing)
    free = played(Case(name="free", steps=steps), play)
    assert forced.written().replace(_ran(forced.ran), "") == free.written().replace(
        _ran(free.ran), ""
    )


def _ran(probes: tuple[str, ...]) -> str:
    return f"ran: {', '.join(probes)}\n"


def test_calls_that_do_not_run_side_by_side_fail_loudly_instead_of_passing(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The second thing is never called, so the first waits for it in vain."""
    monkeypatch.setattr(staging, "PATIENCE", 0.05)
    case = Case(name="stuck", steps=(batch("receipt"), AFTERWARDS), finishing=("T-2", "T-1"))
    with pytest.raises(StageStuck):
        played(case, play)


def test_a_thing_that_comes_again_in_a_later_batch_is_not_held(play: Play) -> None:
    steps = (batch("timeout", "lookup"), batch("timeout"), AFTERWARDS)
    again = played(Case(name="again", steps=steps, finishing=("T-2", "T-1")), play)
    assert again.ran == ("lookup T-2", "timeout T-1", "timeout T-1")


def test_a_stage_without_an_order_holds_nobody_and_lists_who_ran() -> None:
    stage = Stage()
    stage.play("receipt", "T-2", "b")
    stage.play("lookup", "T-1", "a")
    assert stage.ran == ("lookup T-1", "receipt T-2")
