"""The tries of one call: counted for whatever is called again without success, in both loops."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, cast

import pytest

from agent_core.budget import Limits
from agent_core.chat_models.scripted import ScriptedStep, calls, says
from agent_core.contract import Artifact, RunContext, completed, fatal, transient
from agent_core.gate import tries_of
from agent_core.harness.cases import Case, batch
from agent_core.harness.play import ORCHESTRATIONS
from agent_core.harness.probes import probe
from agent_core.harness.transcript import Play, Transcript

DONE = says("Done talking.")

each_orchestration = pytest.mark.parametrize("play", ORCHESTRATIONS.values(), ids=ORCHESTRATIONS)


def reading(*artifacts: Artifact | None) -> Any:
    """Return a look-up that ends so, time after time; at last always in the same way."""
    left = list(artifacts)

    def run(context: RunContext, *, thing: str, how: str = "fast") -> tuple[str, Artifact]:
        """Look a thing up."""
        return f"{thing}.", cast("Artifact", left.pop(0) if len(left) > 1 else left[0])

    return replace(probe("lookup"), run=run)


def read(**arguments: str) -> ScriptedStep:
    """Look up one thing."""
    return calls(("lookup", {"thing": "A", **arguments}))


def played(play: Play, tool: Any, *steps: ScriptedStep, **limits: int) -> Transcript:
    """Play these messages with this tool."""
    return play(Case(name="tries", steps=steps, limits=Limits(**limits)), [tool])


@each_orchestration
@pytest.mark.parametrize(
    "artifact", [transient("x.busy"), fatal("x.broken"), None], ids=["transient", "fatal", "none"]
)
def test_a_look_up_that_does_not_succeed_ends_the_turn_by_its_tries(
    play: Play, artifact: Artifact | None
) -> None:
    # Beside it stands what succeeds: a fatal look-up alone would end the turn at once.
    both = calls(("lookup", {"thing": "A"}), ("receipt", {"thing": "R", "remaining": "more"}))
    told = play(
        Case(name="tries", steps=(both,) * 5, limits=Limits(tries=2)),
        [reading(artifact), probe("receipt")],
    )
    assert (told.rule, told.model_calls) == ("budget", 2)
    assert told.decisions[-1].startswith("budget (tries 2 of 2")


@each_orchestration
def test_a_look_up_that_succeeds_may_be_made_again_and_again(play: Play) -> None:
    told = played(play, reading(completed("x.found", stop=False)), *[read()] * 5, DONE)
    assert (told.rule, told.model_calls) == ("answered", 6)


@each_orchestration
def test_a_look_up_for_something_else_is_another_call(play: Play) -> None:
    steps = (read(), read(thing="B"), read(how="slow"), DONE)
    told = played(play, reading(transient("x.busy")), *steps, tries=2)
    assert (told.rule, told.model_calls) == ("answered", 4)


@each_orchestration
def test_arguments_that_mean_the_same_are_the_same_call(play: Play) -> None:
    told = played(play, reading(transient("x.busy")), read(), read(how="fast"), DONE, tries=2)
    assert (told.rule, told.model_calls) == ("budget", 2)


@each_orchestration
def test_a_look_up_twice_in_one_message_is_one_try(play: Play) -> None:
    twice = calls(("lookup", {"thing": "A"}), ("lookup", {"thing": "A"}))
    told = played(play, reading(transient("x.busy")), twice, DONE, tries=2)
    assert (told.rule, told.model_calls) == ("answered", 2)


@each_orchestration
def test_a_look_up_that_has_succeeded_at_last_lets_the_turn_go_on(play: Play) -> None:
    tool = reading(transient("x.busy"), completed("x.found", stop=False))
    told = played(play, tool, read(), read(), DONE, tries=2)
    assert (told.rule, told.model_calls) == ("answered", 3)


@each_orchestration
def test_calls_that_do_not_fit_are_one_call_however_they_differ(play: Play) -> None:
    told = play(
        Case(name="tries", steps=(batch("receipts"), batch("lookup!")), limits=Limits(tries=2)),
        [probe("lookup")],
    )
    assert told.decisions[-1].startswith("budget (tries 2 of 2")


def test_what_an_older_checkpoint_knows_of_the_calls_is_enough_to_count_them() -> None:
    def old(call: str, identity: str, verdict: str = "allow") -> dict[str, Any]:
        return {
            "call": call,
            "position": 0,
            "identity": identity,
            "identity_executed": identity,
            "verdict": verdict,
            "reason": "transient",
        }

    pays = [old("1", "pay"), old("2", "pay")]
    assert tries_of(pays, [{"id": "2"}]) == 2
    assert tries_of([*pays, old("3", "")], [{"id": "3"}]) == 0
    assert tries_of([old("1", "", "invalid"), old("2", "", "invalid")], [{"id": "2"}]) == 2
