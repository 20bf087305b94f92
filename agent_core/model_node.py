"""The graph's model step: stream the text, count the tokens, mint an id for each call."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any, Final
from uuid import uuid4

from langchain_core.language_models import LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.runnables import Runnable
from langgraph.runtime import Runtime

from agent_core import faults
from agent_core.chat_models.reading import calls_read, cut_off, finish_of, storable, text_of
from agent_core.errors import CountersignError, ModelEmpty, ModelFailed, ModelUnavailable
from agent_core.graph_state import State
from agent_core.host import ModelUsage, Parts

_PASSING: Final = (408, 409, 429)
"""Refusals of a provider that pass by themselves: too slow, in conflict, too many."""


def call_model(state: State, runtime: Runtime[Parts]) -> State:
    """Ask the model, streaming its text; mint an id for each call it makes.

    Raises:
        ModelFailed: no usable answer came.
    """
    parts = runtime.context
    parts.host.safe_point()
    number = state["model_calls"] + 1
    parts.host.model_began(number)
    offered = parts.toolset.schemas(parts.host.context().rights)
    model = parts.model.bind_tools(offered) if offered else parts.model
    began = time.monotonic()
    whole: AIMessageChunk | None = None
    with faults.around("model.call"):
        for chunk in _pieces(model, state["messages"]):
            whole = chunk if whole is None else whole + chunk
            if text := text_of(chunk):
                parts.host.model_delta(storable(text))
    if whole is None:
        raise ModelEmpty
    usage = _usage(whole, number, milliseconds=int((time.monotonic() - began) * 1000))
    parts.host.model_ended(usage)
    message, batch = _minted(whole)
    if not batch and not text_of(message).strip():
        raise ModelEmpty
    return {
        "messages": [*state["messages"], message],
        "batch": batch,
        "batch_number": state["batch_number"] + (1 if batch else 0),
        "model_calls": number,
        "tokens": state["tokens"] + usage.input_tokens + usage.output_tokens,
        "last_usage": {"read": usage.input_tokens, "made": usage.output_tokens},
    }


def _pieces(
    model: Runnable[LanguageModelInput, AIMessage], messages: list[BaseMessage]
) -> Iterator[AIMessageChunk]:
    """Yield the pieces of an answer; whatever the provider's client raises becomes ours.

    Raises:
        ModelUnavailable: trying again later can help.
        ModelFailed: the request itself was refused.
    """
    try:
        for chunk in model.stream(messages):
            if not isinstance(chunk, AIMessageChunk):
                raise ModelFailed("The model answered with something else than a message.")
            yield chunk
    except CountersignError:
        raise
    except Exception as error:  # The boundary to the provider: its errors are of many families.
        status = getattr(error, "status_code", None)
        refused = isinstance(status, int) and 400 <= status < 500 and status not in _PASSING
        raise (ModelFailed if refused else ModelUnavailable)(type(error).__name__) from error


def _minted(whole: AIMessageChunk) -> tuple[AIMessage, list[dict[str, Any]]]:
    """Replace the provider's call ids by ours; a malformed call keeps its place and is answered."""
    batch = [
        {
            "id": str(uuid4()),
            "position": position,
            "tool": asked.tool,
            "arguments": asked.arguments,
            "malformed": asked.malformed,
        }
        for position, asked in enumerate(calls_read(whole))
    ]
    message = AIMessage(
        content=storable(text_of(whole)),
        tool_calls=[
            {"id": call["id"], "name": call["tool"], "args": call["arguments"], "type": "tool_call"}
            for call in batch
        ],
    )
    return message, batch


def _usage(whole: AIMessageChunk, number: int, *, milliseconds: int) -> ModelUsage:
    """Read what the call used.

    Raises:
        ModelUnavailable: neither usage nor a reason for finishing came, so the stream was cut off.
    """
    metadata = whole.response_metadata
    used = whole.usage_metadata
    if cut_off(whole):
        raise ModelUnavailable("The model's answer was cut off.")
    return ModelUsage(
        number=number,
        model=str(metadata.get("model_name", "")),
        input_tokens=used["input_tokens"] if used else 0,
        output_tokens=used["output_tokens"] if used else 0,
        milliseconds=milliseconds,
        finish_reason=finish_of(whole),
    )
