"""The scripted model of tests and the harness: it plays a list of steps and records what it read.

A step is what one model call brings: a text, calls (with ids of the test's choosing), calls whose
arguments cannot be read, an exception, or nothing at all; each after a delay if wanted.
"""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel, LanguageModelInput
from langchain_core.messages import AIMessage, AIMessageChunk, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import ToolCallChunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.runnables import Runnable
from langchain_core.tools import BaseTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from pydantic import PrivateAttr
from typing_extensions import override

from agent_core.chat_models.reading import calls_read


@dataclass(frozen=True, slots=True)
class ScriptedCall:
    """One call; `arguments` as text stands for arguments that the provider sent as they are."""

    tool: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    id: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ScriptedStep:
    """What one model call brings. `error` is raised after the text, as a broken stream would be.

    `finish` is why the model stopped, when it is something else than its text or its calls.
    """

    text: str = ""
    calls: Sequence[ScriptedCall] = ()
    error: BaseException | None = None
    delay: float = 0.0
    tokens: tuple[int, int] = (10, 5)
    cut_off: bool = False
    finish: str = ""


class ScriptEnded(AssertionError):
    """The model was called more often than the script has steps."""


def says(text: str, **options: Any) -> ScriptedStep:
    """Answer with a text."""
    return ScriptedStep(text=text, **options)


def calls(*wanted: ScriptedCall | tuple[str, Mapping[str, Any] | str]) -> ScriptedStep:
    """Make these calls in one message; a pair is a tool with its arguments."""
    made = [each if isinstance(each, ScriptedCall) else ScriptedCall(*each) for each in wanted]
    return ScriptedStep(calls=tuple(made))


def fails(error: BaseException, *, text: str = "") -> ScriptedStep:
    """Break with this error, after streaming `text`."""
    return ScriptedStep(text=text, error=error)


class ScriptedModel(BaseChatModel):
    """Plays `steps` in order. `requests` holds every message list it was sent, `offered` the tools.

    The last step is repeated when `repeat` is set; otherwise one call too many raises ScriptEnded.
    """

    steps: list[ScriptedStep]
    repeat: bool = False
    _requests: list[list[BaseMessage]] = PrivateAttr(default_factory=list)
    _offered: list[list[str]] = PrivateAttr(default_factory=list)
    _lock: threading.Lock = PrivateAttr(default_factory=threading.Lock)

    @property
    def requests(self) -> list[list[BaseMessage]]:
        """Return every message list that was sent, oldest first."""
        return self._requests

    @property
    def offered(self) -> list[list[str]]:
        """Return the names of the tools offered with each request."""
        return self._offered

    @property
    def _llm_type(self) -> str:
        return "scripted"

    @override
    def bind_tools(
        self,
        tools: Sequence[dict[str, Any] | type | Callable[..., Any] | BaseTool],
        *,
        tool_choice: str | None = None,
        **kwargs: Any,
    ) -> Runnable[LanguageModelInput, AIMessage]:
        """Note what is offered; the script alone decides what is called."""
        schemas = [convert_to_openai_tool(tool) for tool in tools]
        return self.bind(tools=schemas, tool_choice=tool_choice, **kwargs)

    @override
    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        whole: ChatGenerationChunk | None = None
        for chunk in self._stream(messages, stop, run_manager, **kwargs):
            whole = chunk if whole is None else whole + chunk
        if whole is None:
            return ChatResult(generations=[ChatGenerationChunk(message=AIMessageChunk(content=""))])
        return ChatResult(
            generations=[ChatGeneration(message=_unstreamed(cast("AIMessageChunk", whole.message)))]
        )

    @override
    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        step, number = self._next(messages, kwargs)
        if step.delay:
            time.sleep(step.delay)
        for piece in _pieces(step, number):
            yield ChatGenerationChunk(message=piece)
        if step.error is not None:
            raise step.error
        if not step.cut_off:
            yield ChatGenerationChunk(message=_end(step))

    def _next(
        self, messages: list[BaseMessage], options: dict[str, Any]
    ) -> tuple[ScriptedStep, int]:
        with self._lock:
            number = len(self._requests)
            self._requests.append(list(messages))
            tools: list[dict[str, Any]] = options.get("tools") or []
            self._offered.append([tool["function"]["name"] for tool in tools])
        if number < len(self.steps):
            return self.steps[number], number
        if self.repeat and self.steps:
            return self.steps[-1], number
        raise ScriptEnded(f"The script has {len(self.steps)} steps and was asked for another.")


def _pieces(step: ScriptedStep, number: int) -> Iterator[AIMessageChunk]:
    if step.text:
        yield AIMessageChunk(content=step.text)
    for index, call in enumerate(step.calls):
        written = call.arguments if isinstance(call.arguments, str) else json.dumps(call.arguments)
        piece = ToolCallChunk(
            name=call.tool,
            args=written,
            id=call.id or f"call_{number}_{index}",
            index=index,
            type="tool_call_chunk",
        )
        yield AIMessageChunk(content="", tool_call_chunks=[piece])


def _end(step: ScriptedStep) -> AIMessageChunk:
    read, made = step.tokens
    return AIMessageChunk(
        content="",
        usage_metadata=UsageMetadata(
            input_tokens=read, output_tokens=made, total_tokens=read + made
        ),
        response_metadata={
            "finish_reason": step.finish or ("tool_calls" if step.calls else "stop"),
            "model_name": "scripted",
        },
        chunk_position="last",
    )


def _unstreamed(message: AIMessageChunk) -> AIMessage:
    """Return the message as a provider's plain answer holds it: broken arguments stay broken."""
    asked = list(zip(message.tool_call_chunks, calls_read(message), strict=True))
    return AIMessage(
        content=message.content,
        tool_calls=[
            {"name": call.tool, "args": call.arguments, "id": chunk["id"], "type": "tool_call"}
            for chunk, call in asked
            if not call.malformed
        ],
        invalid_tool_calls=[
            {
                "name": call.tool,
                "args": chunk["args"],
                "id": chunk["id"],
                "error": "not JSON",
                "type": "invalid_tool_call",
            }
            for chunk, call in asked
            if call.malformed
        ],
        usage_metadata=message.usage_metadata,
        response_metadata=message.response_metadata,
    )
