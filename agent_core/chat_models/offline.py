"""The offline model: a deterministic planner behind the interface of a chat model.

It answers when no provider is configured. It reads the same messages and tool schemas that a
provider is sent (never an artifact), streams word by word and counts what it was sent and made.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage, ToolCall
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import ToolCallChunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from typing_extensions import override

from agent_core.chat_models.planner import Offer, Plan, plan_make
from agent_core.chat_models.reading import text_of
from agent_core.chat_models.spec import ModelSpec, ModelUnknown

CHARACTERS_PER_TOKEN: Final = 4
ARGUMENT_PIECE: Final = 24
WORD_DELAY: Final = 0.015

STYLES: Final = {
    "planner": "Offline planner (no model configured)",
    "one-at-a-time": "Offline planner, one call at a time (no model configured)",
}


def offline_build(spec: ModelSpec) -> BaseChatModel:
    """Build the offline model; its name may end in `@milliseconds`, the pause between two words.

    Raises:
        ModelUnknown: there is no such style, or the pause is not a whole number.
    """
    style, pause = _style_and_pause(spec.name)
    return OfflineModel(style=style, delay=pause)


def offline_label(name: str) -> str:
    """Name the offline model for people, saying plainly what it is."""
    return STYLES[_style_and_pause(name)[0]]


def _style_and_pause(name: str) -> tuple[str, float]:
    style, at, pause = name.partition("@")
    if style not in STYLES:
        known = " and ".join(f"offline:{each}" for each in STYLES)
        raise ModelUnknown(f"There is no offline model called {style!r}; there are {known}.")
    if not at:
        return style, WORD_DELAY
    if not pause.isdecimal():
        raise ModelUnknown(f"The pause after @ is in whole milliseconds, and {pause!r} is not.")
    return style, int(pause) / 1000


def tokens_of(text: str) -> int:
    """Count tokens the documented way: one for every four characters begun."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


@dataclass(frozen=True, slots=True)
class _Answer:
    """What the model made of one request, before it is cut into pieces."""

    text: str
    calls: tuple[ToolCall, ...]
    usage: UsageMetadata

    @property
    def metadata(self) -> dict[str, str]:
        finish = "tool_calls" if self.calls else "stop"
        return {"finish_reason": finish, "model_name": "offline"}


class OfflineModel(BaseChatModel):
    """A chat model that plans without a network; see docs/offline-model.md for what it reads."""

    style: str = "planner"
    delay: float = WORD_DELAY

    @property
    def _llm_type(self) -> str:
        return "offline"

    @property
    def _identifying_params(self) -> dict[str, Any]:
        return {"model_name": f"offline:{self.style}"}

    @override
    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Offer exactly these tools; no other is ever called."""
        schemas = [convert_to_openai_tool(tool) for tool in tools]
        return self.bind(tools=schemas, tool_choice=tool_choice, **kwargs)

    def tokens_counted(self, messages: Sequence[BaseMessage]) -> int:
        """Return the input tokens that these messages add to a request."""
        return sum(tokens_of(_sent(message)) for message in messages)

    @override
    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        answer = self._answer(messages, kwargs)
        message = AIMessage(
            content=answer.text,
            tool_calls=list(answer.calls),
            usage_metadata=answer.usage,
            response_metadata=answer.metadata,
        )
        return ChatResult(generations=[ChatGeneration(message=message)])

    @override
    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        answer = self._answer(messages, kwargs)
        for piece in _pieces(answer):
            if self.delay:
                time.sleep(self.delay)
            yield ChatGenerationChunk(message=piece)
        yield ChatGenerationChunk(
            message=AIMessageChunk(
                content="",
                usage_metadata=answer.usage,
                response_metadata=answer.metadata,
                chunk_position="last",
            )
        )

    def _answer(self, messages: list[BaseMessage], options: dict[str, Any]) -> _Answer:
        schemas: list[dict[str, Any]] = options.get("tools") or []
        barred = options.get("tool_choice") == "none"
        offers = [] if barred else [_offer(schema) for schema in schemas]
        plan = plan_make(messages, offers, one_at_a_time=self.style == "one-at-a-time")
        calls = tuple(_calls(plan, messages))
        usage = _usage(self.tokens_counted(messages), schemas, plan.text, calls)
        return _Answer(plan.text, calls, usage)


def _offer(schema: dict[str, Any]) -> Offer:
    function = schema["function"]
    fields = function.get("parameters", {}).get("properties", {})
    return Offer(name=function["name"], fields=frozenset(fields))


def _calls(plan: Plan, messages: Sequence[BaseMessage]) -> Iterator[ToolCall]:
    # The same request gets the same ids, and no two requests of one window share one.
    seed = hashlib.sha256(json.dumps([_sent(message) for message in messages]).encode())
    for position, call in enumerate(plan.calls):
        key = hashlib.sha256(f"{seed.hexdigest()}:{position}".encode()).hexdigest()[:16]
        arguments = dict(call.arguments)
        yield ToolCall(name=call.tool, args=arguments, id=f"call_{key}", type="tool_call")


def _sent(message: BaseMessage) -> str:
    """Return what a provider would be sent of a message: its text and its calls."""
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    return text_of(message) + "".join(_written(call) for call in calls)


def _written(call: ToolCall) -> str:
    return str(call["name"]) + json.dumps(call["args"], ensure_ascii=False)


def _usage(
    sent: int,
    schemas: Sequence[dict[str, Any]],
    text: str,
    calls: Sequence[ToolCall],
) -> UsageMetadata:
    offered = tokens_of(json.dumps(schemas, ensure_ascii=False)) if schemas else 0
    read = offered + sent
    made = tokens_of(text) + sum(tokens_of(_written(call)) for call in calls)
    return UsageMetadata(input_tokens=read, output_tokens=made, total_tokens=read + made)


def _pieces(answer: _Answer) -> Iterator[AIMessageChunk]:
    for word in _words(answer.text):
        yield AIMessageChunk(content=word)
    for index, call in enumerate(answer.calls):
        yield _call_piece(index, name=call["name"], key=call["id"], written="")
        written = json.dumps(call["args"], ensure_ascii=False)
        for start in range(0, len(written), ARGUMENT_PIECE):
            yield _call_piece(index, written=written[start : start + ARGUMENT_PIECE])


def _call_piece(
    index: int, *, written: str, name: str | None = None, key: str | None = None
) -> AIMessageChunk:
    piece = ToolCallChunk(name=name, args=written, id=key, index=index, type="tool_call_chunk")
    return AIMessageChunk(content="", tool_call_chunks=[piece])


def _words(text: str) -> Iterator[str]:
    """Cut text after each blank so that the pieces joined are the text."""
    start = 0
    for position, character in enumerate(text):
        if character.isspace():
            yield text[start : position + 1]
            start = position + 1
    if start < len(text):
        yield text[start:]
