"""The benchmark's model: streams a few words at once and asks for one ticket.

`bench:ticket` takes no time at all; `bench:gated` first waits until a file is there, as a slow
provider would let a turn wait. The ticket is named as the person's message is, so that no two are
twins.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any, Final

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessageChunk, BaseMessage
from langchain_core.messages.ai import UsageMetadata
from langchain_core.messages.tool import ToolCallChunk
from langchain_core.outputs import ChatGenerationChunk
from typing_extensions import override

from agent_core.chat_models.offline import OfflineModel
from agent_core.chat_models.reading import text_of
from agent_core.chat_models.spec import ModelSpec, ModelUnknown

PIECES: Final = ("I open ", "a ticket ", "for this.")
TOOL: Final = "ticket_create"
GATE: Final = "BENCH_GATE"
"""The variable that names the file for which the gated model waits."""

LOOK_SECONDS: Final = 0.2
USAGE: Final = UsageMetadata(input_tokens=400, output_tokens=30, total_tokens=430)


def bench_build(spec: ModelSpec) -> BaseChatModel:
    """Build the model.

    Raises:
        ModelUnknown: there is no such model.
    """
    if spec.name not in ("ticket", "gated"):
        raise ModelUnknown(f"The benchmark has no model called {spec.name!r}.")
    return BenchModel(gated=spec.name == "gated")


@cache
def gate_opened() -> threading.Event:
    """Return what is set once the file is there; one thread of the process looks for it."""
    opened, place = threading.Event(), Path(os.environ[GATE])

    def look() -> None:
        while not place.exists():
            time.sleep(LOOK_SECONDS)
        opened.set()

    threading.Thread(target=look, daemon=True).start()
    return opened


def waiting_at(gate: Path) -> Path:
    """Return the folder that holds a file for each call that waits at this gate."""
    return gate.with_suffix(".waiting")


@contextmanager
def noted() -> Iterator[None]:
    """Let the measurement see that one more call waits, for as long as it does."""
    folder = waiting_at(Path(os.environ[GATE]))
    folder.mkdir(exist_ok=True)
    place = folder / f"{os.getpid()}-{threading.get_ident()}"
    place.touch()
    try:
        yield
    finally:
        place.unlink()


def bench_label(name: str) -> str:
    """Name the model for people."""
    return f"Benchmark ({name})"


class BenchModel(OfflineModel):
    """Says three pieces of text and makes one call, the same in every turn."""

    gated: bool = False

    @override
    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        if self.gated:
            with noted():
                gate_opened().wait()
        for piece in PIECES:
            yield ChatGenerationChunk(message=AIMessageChunk(content=piece))
        call = ToolCallChunk(
            name=TOOL,
            args=json.dumps({"subject": text_of(messages[-1])[:200]}),
            id="call_0",
            index=0,
            type="tool_call_chunk",
        )
        yield ChatGenerationChunk(message=AIMessageChunk(content="", tool_call_chunks=[call]))
        yield ChatGenerationChunk(
            message=AIMessageChunk(
                content="",
                usage_metadata=USAGE,
                response_metadata={"finish_reason": "tool_calls", "model_name": "bench"},
                chunk_position="last",
            )
        )
