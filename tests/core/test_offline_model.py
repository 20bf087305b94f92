"""The offline model behind the interface of a chat model: streaming, ids, counting, offers."""

from __future__ import annotations

import asyncio
import json
import time

from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, SystemMessage
from langchain_core.messages.ai import add_ai_message_chunks

from agent_core.chat_models import chat_model
from agent_core.chat_models.offline import tokens_of
from agent_core.polish import polished
from tests.core.fake_desk import FIELDS, schema

REFUND = "refund 5.00 of PAY-1 and 500.00 of PAY-2"


def test_text_streams_word_by_word_and_the_pieces_are_the_text() -> None:
    model = chat_model("offline:planner@0", timeout=5)
    pieces = [str(chunk.content) for chunk in model.stream("hello")]
    whole = model.invoke("hello").text
    assert "".join(pieces) == whole
    assert pieces[:3] == ["Hello. ", "I ", "have "]
    assert pieces[-1] == ""


def test_calls_stream_as_pieces_that_join_to_the_same_calls() -> None:
    model = chat_model("offline:planner@0", timeout=5)
    bound = model.bind_tools([schema("refund_request")])
    chunks = list(bound.stream(REFUND))
    pieces = [chunk for chunk in chunks if isinstance(chunk, AIMessageChunk)]
    assert len(pieces) == len(chunks)
    assert sum(bool(piece.tool_call_chunks) for piece in pieces) > 4
    whole = add_ai_message_chunks(*pieces)
    asked = bound.invoke(REFUND)
    assert isinstance(asked, AIMessage)
    assert whole.tool_calls == asked.tool_calls
    assert [call["args"] for call in whole.tool_calls] == [
        {"payment": "PAY-1", "amount": "5.00"},
        {"payment": "PAY-2", "amount": "500.00"},
    ]
    assert whole.invalid_tool_calls == []
    assert whole.response_metadata["finish_reason"] == "tool_calls"
    assert whole.usage_metadata == asked.usage_metadata


def test_the_same_request_brings_the_same_ids_and_another_request_other_ids() -> None:
    bound = chat_model("offline:planner@0", timeout=5).bind_tools([schema("refund_request")])
    first, again, other = (
        [call["id"] for call in bound.invoke(words).tool_calls]
        for words in (REFUND, REFUND, f"please {REFUND}")
    )
    assert first == again
    assert len({*first, *other}) == 4


def test_tokens_are_counted_from_what_was_sent_and_made() -> None:
    model = chat_model("offline:planner@0", timeout=5)
    tool = schema("refund_request")
    sent = [SystemMessage("Be kind."), HumanMessage("refund PAY-1")]
    message = model.bind_tools([tool]).invoke(sent)
    assert isinstance(message, AIMessage)
    made = "refund_request" + json.dumps({"payment": "PAY-1"})
    assert message.usage_metadata == {
        "input_tokens": tokens_of(json.dumps([tool])) + 2 + 3,
        "output_tokens": tokens_of(made),
        "total_tokens": tokens_of(json.dumps([tool])) + 5 + tokens_of(made),
    }
    assert [tokens_of(text) for text in ("", "a", "abcd", "abcde")] == [0, 1, 1, 2]


def test_the_pause_lies_between_the_words() -> None:
    model = chat_model("offline:planner@20", timeout=5)
    began = time.monotonic()
    words = len(list(model.stream("hello"))) - 1
    assert time.monotonic() - began >= 0.02 * words


def test_it_streams_without_a_running_thread_of_its_own_too() -> None:
    async def pieces() -> list[str]:
        model = chat_model("offline:planner@0", timeout=5)
        return [str(chunk.content) async for chunk in model.astream("hello")]

    assert asyncio.run(pieces())[0] == "Hello. "


def test_no_tool_is_called_when_the_choice_is_none() -> None:
    model = chat_model("offline:planner@0", timeout=5)
    bound = model.bind_tools([schema(name) for name in FIELDS], tool_choice="none")
    message = bound.invoke("refund PAY-1")
    assert isinstance(message, AIMessage)
    assert message.tool_calls == []


def test_asked_to_rewrite_a_text_it_leaves_the_text_as_it_stands() -> None:
    model = chat_model("offline:planner@0", timeout=5)
    text = "5.00 EUR of PAY-1 was refunded. Refund it again only after a new review."
    assert model.invoke([SystemMessage("Rewrite this."), HumanMessage(text)]).text == text


def test_someone_without_any_tool_is_told_so_and_hears_no_echo() -> None:
    model = chat_model("offline:planner@0", timeout=5)
    sent = [SystemMessage("You are the assistant."), HumanMessage("hello")]
    assert model.invoke(sent).text == "Hello. I have no tools here, so I can do nothing for you."


def test_a_polished_answer_is_the_tools_own_text() -> None:
    text = "5.00 EUR of PAY-1 was not refunded."
    rewrite = polished(chat_model("offline:planner@0", timeout=5), text, number=1)
    assert (rewrite.text, rewrite.note) == (text, "kept")
