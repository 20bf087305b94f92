"""`groq:…` on the wire, against a server of our own: tools, stream, usage, time-out, no retries."""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace

import groq
import pytest
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk, HumanMessage, ToolMessage
from langchain_core.messages.ai import add_ai_message_chunks

from agent_core.budget import Limits
from agent_core.chat_models import chat_model
from agent_core.chat_models.reading import AskedCall, calls_read
from agent_core.contract import completed
from agent_core.errors import ModelUnavailable
from agent_core.graph import graph_compile
from agent_core.harness.memory import MemoryHost, context_make
from agent_core.harness.probes import PROBES, RIGHT, probe
from agent_core.host import Parts
from agent_core.toolset import Toolset
from tests.core.fake_desk import schema
from tests.core.groq_server import GroqServer, groq_serve


@pytest.fixture
def server() -> Iterator[GroqServer]:
    with groq_serve() as serving:
        yield serving


def _model(server: GroqServer, name: str, timeout: int = 5) -> BaseChatModel:
    return chat_model(f"groq:{name}", timeout=timeout, api_key="k-1", base_url=server.address)


def _streamed(model: BaseChatModel, *tools: str) -> AIMessageChunk:
    bound = model.bind_tools([schema(tool) for tool in tools]) if tools else model
    pieces = [piece for piece in bound.stream("hi") if isinstance(piece, AIMessageChunk)]
    return add_ai_message_chunks(*pieces)


def test_a_text_streams_with_its_usage(server: GroqServer) -> None:
    pieces = [str(piece.content) for piece in _model(server, "say").stream("hi")]
    assert [piece for piece in pieces if piece] == ["Good ", "morning", "."]
    whole = _streamed(_model(server, "say"))
    assert whole.usage_metadata is not None
    assert whole.usage_metadata["total_tokens"] == 30
    assert whole.response_metadata["finish_reason"] == "stop"
    assert server.paths[0] == "/openai/v1/chat/completions"
    assert server.keys[0] == "Bearer k-1"


def test_a_whole_answer_carries_its_usage_too(server: GroqServer) -> None:
    message = _model(server, "say").invoke("hi")
    assert isinstance(message, AIMessage)
    assert message.text == "Good morning."
    assert message.usage_metadata is not None
    assert message.usage_metadata["input_tokens"] == 21


def test_two_calls_stream_with_names_arguments_and_ids(server: GroqServer) -> None:
    whole = _streamed(_model(server, "calls"), "refund_request")
    assert [(call["name"], call["args"], call["id"]) for call in whole.tool_calls] == [
        ("refund_request", {"payment": "PAY-1", "amount": "5.00"}, "call_a"),
        ("refund_request", {"payment": "PAY-2"}, "call_b"),
    ]
    offered = server.requests[0]["tools"]
    assert [tool["function"]["name"] for tool in offered] == ["refund_request"]


def test_malformed_arguments_are_read_as_a_malformed_call(server: GroqServer) -> None:
    whole = _streamed(_model(server, "malformed"), "refund_request")
    assert calls_read(whole) == [AskedCall("refund_request", malformed=True)]


def test_an_unanswered_request_ends_by_the_timeout_after_one_try(server: GroqServer) -> None:
    began = time.monotonic()
    with pytest.raises(groq.APITimeoutError):
        _model(server, "hang", timeout=1).invoke("hi")
    assert 0.9 <= time.monotonic() - began < 3
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("name", "error"), [("busy", groq.RateLimitError), ("down", groq.InternalServerError)]
)
def test_a_refusal_is_raised_after_one_try(
    name: str, error: type[groq.APIStatusError], server: GroqServer
) -> None:
    with pytest.raises(error) as raised:
        _model(server, name).invoke("hi")
    assert len(server.requests) == 1
    if name == "busy":
        assert raised.value.response.headers["retry-after"] == "7"


def test_a_stream_that_is_cut_off_fails_the_run_in_the_graph(server: GroqServer) -> None:
    """The client raises nothing: only the missing finish and usage tell."""
    host = MemoryHost(context_make(RIGHT))
    parts = Parts(host=host, model=_model(server, "cut"), toolset=Toolset(PROBES), limits=Limits())
    with pytest.raises(ModelUnavailable, match="cut off"):
        graph_compile(None).invoke({}, context=parts)
    assert host.ends == []


def test_nothing_of_an_artifact_is_sent_to_the_provider(server: GroqServer) -> None:
    artifact = completed("secret.code", stop=False, data={"payment_id": "internal-77"})
    messages = [
        HumanMessage("hi"),
        AIMessage("", tool_calls=[{"id": "c", "name": "lookup", "args": {}, "type": "tool_call"}]),
        ToolMessage("PAY-1 was found.", artifact=artifact, tool_call_id="c", name="lookup"),
    ]
    _model(server, "say").invoke(messages)
    sent = str(server.requests[0]["messages"])
    assert "PAY-1 was found." in sent
    for inner in ("secret.code", "internal-77", "completed", "already_applied"):
        assert inner not in sent


def test_a_whole_turn_runs_through_the_graph_on_the_wire(server: GroqServer) -> None:
    refund = replace(probe("receipt"), name="refund_request")
    host = MemoryHost(context_make(RIGHT))
    parts = Parts(
        host=host, model=_model(server, "malformed"), toolset=Toolset([refund]), limits=Limits()
    )
    graph_compile(None).invoke({}, context=parts)
    # The same malformed call for ever: two re-asks, then the turn ends by the tries of that call.
    assert len(server.requests) == 3
    assert host.ends[0].rule == "budget"
    replies = [m for m in server.requests[2]["messages"] if m["role"] == "tool"]
    asked = [
        call["id"] for m in server.requests[2]["messages"] for call in m.get("tool_calls") or []
    ]
    assert [reply["tool_call_id"] for reply in replies] == asked
    assert len(asked) == 2
    assert host.usages[0].input_tokens == 21
