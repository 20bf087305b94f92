"""A model that plays a script and keeps what it was sent."""

import json
from collections.abc import Iterator, Sequence
from typing import Any

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk, BaseMessage
from langchain_core.outputs import ChatGenerationChunk, ChatResult
from pydantic import Field

Step = str | Exception | list[tuple[str, dict[str, Any] | str]]


class ScriptedModel(BaseChatModel):
    """Plays one step a call: a text, an exception, or calls as (name, arguments)."""

    steps: list[Any]
    sent: list[list[BaseMessage]] = Field(default_factory=list)

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Sequence[Any], **options: Any) -> Any:
        return self

    def _generate(self, *args: Any, **options: Any) -> ChatResult:
        raise NotImplementedError("this model only streams")

    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **options: Any,
    ) -> Iterator[ChatGenerationChunk]:
        self.sent.append(messages)
        step = self.steps.pop(0)
        if isinstance(step, Exception):
            raise step
        if isinstance(step, str):
            for word in step.split(" "):
                yield ChatGenerationChunk(message=AIMessageChunk(content=f"{word} "))
            step = []
        yield ChatGenerationChunk(
            message=AIMessageChunk(
                content="",
                tool_call_chunks=[
                    {
                        "name": name,
                        "args": arguments if isinstance(arguments, str) else json.dumps(arguments),
                        "id": "the-provider-repeats-this",
                        "index": index,
                        "type": "tool_call_chunk",
                    }
                    for index, (name, arguments) in enumerate(step)
                ],
                response_metadata={"finish_reason": "stop"},
                usage_metadata={"input_tokens": 10, "output_tokens": 5, "total_tokens": 15},
            )
        )
