"""A streamed call that breaks off is malformed, and never a call with a shorter amount."""

from __future__ import annotations

import pytest
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.messages.ai import add_ai_message_chunks

from agent_core.chat_models.reading import AskedCall, calls_read
from agent_core.chat_models.scripted import ScriptedModel, calls


def _streamed(*wanted: tuple[str, str]) -> AIMessageChunk:
    model = ScriptedModel(steps=[calls(*wanted)])
    pieces = [piece for piece in model.stream("x") if isinstance(piece, AIMessageChunk)]
    return add_ai_message_chunks(*pieces)


@pytest.mark.parametrize(
    "written",
    [
        '{"payment": "PAY-1", "amount": "50',
        '{"payment": "PAY-1", "amount": 50',
        '{"payment": PAY-1}',
        "null",
        "[1]",
        '"PAY-1"',
        "{} {}",
        '{"amount": NaN}',
        '{"amounts": [{"low": Infinity}, -Infinity]}',
        '{"amount": 1e999}',
        '{"amount": 9223372036854775808}',
        '{"amount": 1' + "0" * 5000 + "}",
        '{"amount": 5, "amount": 500}',
        '{"payments": [{"amount": 5, "amount": 5}]}',
        '{"x": ' + "[" * 40 + "]" * 40 + "}",
        '{"x": ' + "[" * 100_000 + "]" * 100_000 + "}",
    ],
    ids=lambda written: written[:40],
)
def test_what_is_not_one_whole_object_that_can_be_stored_is_malformed(written: str) -> None:
    assert calls_read(_streamed(("refund", written))) == [AskedCall("refund", malformed=True)]


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 2**63, [{"n": -float("inf")}]])
def test_in_a_whole_message_too_a_number_that_json_or_a_row_cannot_hold_is_malformed(
    value: object,
) -> None:
    args = {"amount": value}
    message = AIMessage(
        "", tool_calls=[{"id": "1", "name": "refund", "args": args, "type": "tool_call"}]
    )
    assert calls_read(message) == [AskedCall("refund", malformed=True)]


def test_null_a_fraction_and_the_largest_numbers_are_read_as_they_stand() -> None:
    written = '{"a": null, "b": 1.5, "c": [9223372036854775807, -9223372036854775808], "d": true}'
    arguments = {"a": None, "b": 1.5, "c": [2**63 - 1, -(2**63)], "d": True}
    assert calls_read(_streamed(("refund", written))) == [AskedCall("refund", arguments)]


def test_the_framework_alone_would_have_taken_the_shorter_amount() -> None:
    """Characterisation: this is why `calls_read` exists; red means the framework has changed."""
    whole = _streamed(("refund", '{"payment": "PAY-1", "amount": "50'))
    assert whole.tool_calls[0]["args"] == {"payment": "PAY-1", "amount": "50"}


def test_a_malformed_call_keeps_its_place_among_the_others() -> None:
    whole = _streamed(("a", '{"x": 1}'), ("b", "{"), ("c", ""))
    assert calls_read(whole) == [
        AskedCall("a", {"x": 1}),
        AskedCall("b", malformed=True),
        AskedCall("c"),
    ]


def test_signs_that_no_row_can_hold_are_marked_and_never_left_out() -> None:
    written = r'{"payment": "PAY-1\u0000", "more": [{"\ud83d": "\ud83d\ude00", "n": 1}]}'
    message = AIMessage(
        "",
        tool_calls=[{"id": "1", "name": "a\x00", "args": {"x": "\udfff5"}, "type": "tool_call"}],
    )
    assert calls_read(_streamed(("refund", written))) == [
        AskedCall("refund", {"payment": "PAY-1\ufffd", "more": [{"\ufffd": "😀", "n": 1}]})
    ]
    assert calls_read(message) == [AskedCall("a\ufffd", {"x": "\ufffd5"})]


def test_a_whole_message_is_read_from_its_calls() -> None:
    message = AIMessage(
        "",
        tool_calls=[{"id": "1", "name": "a", "args": {"x": 1}, "type": "tool_call"}],
        invalid_tool_calls=[
            {"id": "2", "name": None, "args": "{", "error": None, "type": "invalid_tool_call"}
        ],
    )
    assert calls_read(message) == [AskedCall("a", {"x": 1}), AskedCall("unknown", malformed=True)]
