"""What the model really sent: the pieces of a streamed answer, which `create_agent` hands on only
after LangChain has joined and repaired them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

from langchain.agents.middleware import ModelRequest, ModelResponse
from langchain_core.callbacks import BaseCallbackHandler, BaseCallbackManager
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import (
    AIMessage,
    AIMessageChunk,
    BaseMessage,
    InvalidToolCall,
    ToolCall,
)
from langchain_core.outputs import ChatGenerationChunk, GenerationChunk
from typing_extensions import override

from agent_core.chat_models.reading import calls_read, cut_off, text_of
from agent_core.errors import ContractBroken, ModelEmpty, ModelUnavailable


class Pieces(BaseCallbackHandler):
    """Hears the pieces of one answer. A model that does not stream leaves nothing to hear."""

    run_inline = True

    def __init__(self) -> None:
        self.whole: AIMessageChunk | None = None

    @override
    def on_chat_model_start(
        self, serialized: dict[str, Any], messages: list[list[BaseMessage]], **kwargs: Any
    ) -> None:
        # A middleware that tries again begins a new answer.
        self.whole = None

    @override
    def on_llm_new_token(
        self,
        token: str | list[str | dict[str, Any]],
        *,
        chunk: GenerationChunk | ChatGenerationChunk | None = None,
        run_id: UUID,
        **kwargs: Any,
    ) -> None:
        piece = chunk.message if isinstance(chunk, ChatGenerationChunk) else None
        if isinstance(piece, AIMessageChunk):
            self.whole = piece if self.whole is None else self.whole + piece


def listened(request: ModelRequest[Any], pieces: Pieces) -> ModelRequest[Any]:
    """Return the request with someone who hears the pieces. It does not make the model stream."""
    model: object = request.model
    if not isinstance(model, BaseChatModel):  # One that is configured at run time only.
        return request
    own = model.callbacks
    if isinstance(own, BaseCallbackManager):
        callbacks: Any = own.copy()
        callbacks.add_handler(pieces)
    else:
        callbacks = [*(own or ()), pieces]
    return request.override(model=model.model_copy(update={"callbacks": callbacks}))


def formats_refused(request: ModelRequest[Any]) -> None:
    """Refuse what would end a turn past the router.

    Raises:
        ContractBroken: the agent was made with a response format.
    """
    if request.response_format is not None:
        raise ContractBroken(
            "create_agent was given a response_format. It ends a turn by a call that no gate has "
            "judged and no router has read; let a tool of yours return what is to be structured."
        )


def response_read(
    request: ModelRequest[Any], response: ModelResponse[Any], pieces: Pieces
) -> ModelResponse[Any]:
    """Return the response with each call marked that was not complete as it was sent.

    A message that comes from a cache has the id of an earlier one, which it would replace, and its
    calls with it; so it gets a new one.

    Raises:
        ModelUnavailable: the answer was cut off.
        ModelEmpty: there is neither text nor a call.
    """
    known = {message.id for message in request.messages}
    result = [
        _named(_read(message, pieces.whole), known) if isinstance(message, AIMessage) else message
        for message in response.result
    ]
    return replace(response, result=result)


def _named(message: AIMessage, known: set[str | None]) -> AIMessage:
    if message.id is None or message.id not in known:
        return message
    return message.model_copy(update={"id": str(uuid4())})


def _read(message: AIMessage, whole: AIMessageChunk | None) -> AIMessage:
    if cut_off(message):
        raise ModelUnavailable("The model's answer was cut off.")
    if not message.tool_calls and not message.invalid_tool_calls and not text_of(message).strip():
        raise ModelEmpty
    broken = _broken(whole)
    asked = [call for call in message.tool_calls if (call["name"], call["id"]) not in broken]
    if len(asked) == len(message.tool_calls):
        return message
    repaired = [call for call in message.tool_calls if call not in asked]
    return message.model_copy(
        update={
            "tool_calls": asked,
            "invalid_tool_calls": [*message.invalid_tool_calls, *map(_invalid, repaired)],
        }
    )


def _broken(whole: AIMessageChunk | None) -> set[tuple[str, str | None]]:
    """Return name and id of each call whose arguments are not one complete JSON object."""
    if whole is None:
        return set()
    sent = zip(whole.tool_call_chunks, calls_read(whole), strict=True)
    return {(str(chunk["name"]), chunk["id"]) for chunk, call in sent if call.malformed}


def _invalid(call: ToolCall) -> InvalidToolCall:
    return {
        "name": call["name"],
        "args": None,
        "id": call["id"],
        "error": "broken off",
        "type": "invalid_tool_call",
    }
