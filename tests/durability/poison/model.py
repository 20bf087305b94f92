"""The offline planner, but what a person writes may kill the process that reads it.

"poison" ends it at once, as the kernel does when memory is gone; "greedy" asks for more memory than
the process may have.
"""

from __future__ import annotations

import os
import resource
import signal
import threading
from collections.abc import Iterator
from functools import cache
from typing import Any, Final

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.outputs import ChatGenerationChunk
from typing_extensions import override

from agent_core.chat_models.offline import OfflineModel
from agent_core.chat_models.reading import text_of
from agent_core.chat_models.spec import ModelSpec

NAME: Final = "poison:planner@0"
POISON: Final = "open a ticket about the poison"
GREEDY: Final = "open a ticket about the greedy customer"

MEET: Final = "POISON_MEET"
"""How many turns of a process must be with the model before it answers any of them."""

_GIGABYTE: Final = 2**30
_MEETING_SECONDS: Final = 90


def poison_build(spec: ModelSpec) -> BaseChatModel:
    """Build the model."""
    return PoisonModel(style="planner", delay=0.0)


class PoisonModel(OfflineModel):
    """Reads like the planner, until somebody writes something deadly."""

    @override
    def _stream(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> Iterator[ChatGenerationChunk]:
        _read(text_of([each for each in messages if each.type == "human"][-1]))
        yield from super()._stream(messages, stop, run_manager, **kwargs)


def _read(text: str) -> None:
    if size := int(os.environ.get(MEET, "0")):
        _meeting(size).wait(_MEETING_SECONDS)
    if "poison" in text:
        os.kill(os.getpid(), signal.SIGKILL)
    if "greedy" in text:
        _swallow()


@cache
def _meeting(size: int) -> threading.Barrier:
    return threading.Barrier(size)


def _swallow() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (4 * _GIGABYTE, hard))
    try:
        bytearray(8 * _GIGABYTE)
    finally:
        resource.setrlimit(resource.RLIMIT_AS, (soft, hard))
