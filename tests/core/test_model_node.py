"""The graph's model step: a model that ran out of room has made no whole call."""

from __future__ import annotations

import pytest

from agent_core.chat_models.scripted import ScriptedCall, ScriptedStep, says
from agent_core.harness.cases import Case
from agent_core.harness.play_graph import play_graph
from agent_core.harness.probes import probe


@pytest.mark.parametrize("finish", ["length", "max_tokens", "MAX_TOKENS"])
def test_calls_of_a_model_that_ran_out_of_room_are_malformed_and_not_executed(finish: str) -> None:
    """The arguments read well, and still a second refund or a last digit may be missing."""
    call = ScriptedCall("receipt", {"thing": "T-1"})
    steps = (ScriptedStep(calls=(call,), finish=finish), says("I could not finish."))
    transcript = play_graph(Case(name="out-of-room", steps=steps), [probe("receipt")])
    assert transcript.calls == (
        "receipt -> transient: The details of this call could not be read.",
    )
    assert (transcript.rule, transcript.model_calls) == ("answered", 2)
    assert transcript.text == "I could not finish."


def test_a_text_that_ran_out_of_room_is_still_the_answer() -> None:
    case = Case(name="out-of-room", steps=(says("It was a long", finish="length"),))
    assert play_graph(case, [probe("receipt")]).text == "It was a long"
