"""Which executions of a call have begun: a middleware before the stack may execute one again."""

from __future__ import annotations

import logging
import weakref
from typing import Final

from langgraph.prebuilt.tool_node import ToolCallRequest

from agent_core.middleware.messages import UNANSWERED_TEXT, Answered, told

logger = logging.getLogger(__name__)

_UNKNOWN: Final = None


class Begun:
    """Knows, as long as an execution lasts, what came of it.

    LangGraph makes one runtime object for each execution of a call, and a middleware that tries
    again hands on the same. One that goes on after a crash is another execution, and begins anew.
    """

    def __init__(self) -> None:
        self._answers: dict[int, Answered | None] = {}

    def before(self, request: ToolCallRequest) -> bool:
        """Tell whether this execution has begun already, and note that now it has."""
        key = id(request.runtime)
        if key in self._answers:
            call = request.tool_call
            logger.warning("call.again", extra={"tool": call["name"], "call": call["id"]})
            return True
        self._answers[key] = _UNKNOWN
        weakref.finalize(request.runtime, self._answers.pop, key, None)
        return False

    def answer(self, request: ToolCallRequest) -> Answered:
        """Return what came of it; nobody knows what an error left behind."""
        answer = self._answers[id(request.runtime)]
        return answer or told(request.tool_call, UNANSWERED_TEXT, None)

    def noted(self, request: ToolCallRequest, answer: Answered) -> Answered:
        """Note what came of it."""
        self._answers[id(request.runtime)] = answer
        return answer
