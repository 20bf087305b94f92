"""What the model sent, read strictly: pieces, answers that were cut off, and room that ran out."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from langchain.agents.middleware import ModelRetryMiddleware
from langchain_core.messages import HumanMessage

from agent_core.chat_models.scripted import ScriptedCall, ScriptedStep, fails, says
from agent_core.errors import ModelEmpty, ModelUnavailable
from tests.core.turns import CONFIG, DONE, Turn, noted, one, replied_once

GIVEN = {"messages": [HumanMessage("Go on.")]}
BROKEN_OFF = ScriptedStep(calls=(ScriptedCall("noted", '{"thing": "T-1", "amount": "50'),))


def streamed(turn: Turn) -> Turn:
    """Play a turn while someone reads its messages, which makes the model stream."""
    for _step in turn.agent.stream(GIVEN, CONFIG, stream_mode=["messages", "updates"]):
        pass
    return turn


def streamed_asynchronously(turn: Turn) -> Turn:
    """Play the same on an event loop."""

    async def play() -> None:
        async for _step in turn.agent.astream(GIVEN, CONFIG, stream_mode=["messages", "updates"]):
            pass

    asyncio.run(play())
    return turn


PLAYS = pytest.mark.parametrize("play", [Turn.ask, streamed, streamed_asynchronously])


@PLAYS
def test_a_call_that_breaks_off_is_malformed_and_not_executed(play: Any) -> None:
    """LangChain repairs the pieces of a stream: 50 would be paid where 500.00 was meant."""
    made: list[str] = []
    turn = play(Turn(BROKEN_OFF, DONE, tools=[noted(made)]))
    assert made == []
    assert turn.told == ["The details of this call could not be read."]
    assert turn.replies[0].artifact["code"] == "call.invalid"
    assert turn.said == "Done talking."
    assert replied_once(turn.model.requests[1])


@PLAYS
def test_a_whole_call_beside_it_is_executed(play: Any) -> None:
    made: list[str] = []
    step = ScriptedStep(calls=(*BROKEN_OFF.calls, ScriptedCall("noted", {"thing": "T-2"})))
    turn = play(Turn(step, DONE, tools=[noted(made)]))
    assert made == ["T-2"]
    assert len(turn.replies) == 2


@PLAYS
def test_an_answer_that_was_cut_off_is_no_answer(play: Any) -> None:
    """Neither a reason for stopping nor usage: the provider's stream ended without an error."""
    made: list[str] = []
    for step in (
        says("I have refunded", cut_off=True),
        ScriptedStep(calls=(ScriptedCall("noted", {"thing": "T-1"}),), cut_off=True),
    ):
        turn = Turn(step, tools=[noted(made)])
        with pytest.raises(ModelUnavailable, match="cut off"):
            play(turn)
        assert made == []
        assert [type(message) for message in turn.messages] == [HumanMessage]


def test_a_retry_before_the_stack_asks_again_after_a_cut() -> None:
    retry = ModelRetryMiddleware(max_retries=1, initial_delay=0, jitter=False)
    steps = (says("I have ref", cut_off=True), one("noted"))
    made: list[str] = []
    turn = Turn(*steps, tools=[noted(made)], before=[retry]).ask()
    assert made == ["T-1"]
    assert turn.said == "Noted T-1."


def test_after_a_broken_try_only_the_pieces_of_the_next_one_count() -> None:
    """A retry inside the stack calls the model again for one and the same request."""
    whole, cut = '{"thing": "T-1"}', '{"thing": "T-1", "amount": "50'
    for first, second, expected in ((cut, whole, ["T-1"]), (whole, cut, [])):
        made: list[str] = []
        steps = (
            ScriptedStep(calls=(ScriptedCall("noted", first, "same"),), error=TimeoutError()),
            ScriptedStep(calls=(ScriptedCall("noted", second, "same"),)),
        )
        retry = ModelRetryMiddleware(max_retries=1, initial_delay=0, jitter=False)
        streamed(Turn(*steps, DONE, tools=[noted(made)], extra=[retry]))
        assert made == expected


@PLAYS
@pytest.mark.parametrize("finish", ["length", "max_tokens", "MAX_TOKENS"])
def test_calls_of_a_model_that_ran_out_of_room_are_malformed(play: Any, finish: str) -> None:
    made: list[str] = []
    step = ScriptedStep(calls=(ScriptedCall("noted", {"thing": "T-1"}),), finish=finish)
    turn = play(Turn(step, DONE, tools=[noted(made)]))
    assert made == []
    assert turn.told == ["The details of this call could not be read."]
    assert turn.said == "Done talking."


def test_a_text_that_ran_out_of_room_is_still_an_answer() -> None:
    assert Turn(says("It was a long", finish="length")).ask().said == "It was a long"


@PLAYS
def test_an_empty_answer_fails_the_turn_and_leaves_nothing_behind(play: Any) -> None:
    turn = Turn(ScriptedStep())
    with pytest.raises(ModelEmpty):
        play(turn)
    assert [type(message) for message in turn.messages] == [HumanMessage]


def test_a_model_that_fails_fails_the_turn_and_the_next_one_goes_on() -> None:
    turn = Turn(fails(TimeoutError("no answer")), DONE)
    with pytest.raises(TimeoutError):
        turn.ask()
    turn.ask("hello?")
    assert turn.said == "Done talking."
    assert replied_once(turn.model.requests[1])


def test_signs_that_nothing_can_store_are_marked_in_text_and_arguments() -> None:
    made: list[str] = []
    step = ScriptedStep(text="A\x00B", calls=(ScriptedCall("noted", '{"thing": "T\\u0000"}'),))
    turn = Turn(step, tools=[noted(made)]).ask()
    assert made == ["T\ufffd"]
    assert turn.messages[1].content == "A\ufffdB"
