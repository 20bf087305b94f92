"""The boundary around a LangChain tool: it runs exactly as it was judged, and always has an outcome
or a plain text; nothing of it steers the agent."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final, cast

from langchain_core.messages import ToolMessage
from langchain_core.tools import BaseTool
from langgraph.errors import GraphBubbleUp
from langgraph.prebuilt.tool_node import ToolCallRequest
from langgraph.types import Command
from pydantic import BaseModel, ValidationError

from agent_core.contract import outcome_read, transient
from agent_core.errors import ControlError, reference_new
from agent_core.middleware.messages import Answered, replies_mapped, told
from agent_core.toolset import crashed

logger = logging.getLogger(__name__)

_OURS: Final = ("countersign", "jump_to")


class CallChanged(Exception):
    """A middleware inside the stack changed a call after it was judged. Never leaves the stack."""


def arguments_problem(tool: BaseTool, call: Mapping[str, Any]) -> str:
    """Say why nobody needs to be asked about this call, or nothing when it fits its tool."""
    if call["malformed"]:
        return "The details of this call could not be read."
    schema = tool.tool_call_schema
    if not (isinstance(schema, type) and issubclass(schema, BaseModel)):
        return ""  # A plain JSON schema: the tool itself checks.
    try:
        schema.model_validate(call["arguments"])
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(str(part) for part in each['loc']) or 'call'}: {each['msg']}"
            for each in error.errors()
        )
        return f"The details given do not fit: {problems}."
    return ""


class _Exactly:
    """A tool that runs the judged call and no other, whatever stands between it and the gate."""

    def __init__(self, tool: BaseTool, call: Mapping[str, Any]) -> None:
        self._tool = tool
        self._call = call

    def __getattr__(self, name: str) -> Any:
        return getattr(self._tool, name)

    def invoke(self, given: Mapping[str, Any], *rest: Any, **options: Any) -> Any:
        self._check(given)
        return self._tool.invoke(cast("Any", given), *rest, **options)

    async def ainvoke(self, given: Mapping[str, Any], *rest: Any, **options: Any) -> Any:
        self._check(given)
        return await self._tool.ainvoke(cast("Any", given), *rest, **options)

    def _check(self, given: Mapping[str, Any]) -> None:
        # Besides what the model may fill in, LangGraph injects arguments of its own.
        seen = {name: value for name, value in given["args"].items() if name in self._tool.args}
        same = all(given[name] == self._call[name] for name in ("name", "id"))
        if not same or seen != self._call["args"]:
            raise CallChanged


def exactly(request: ToolCallRequest, tool: BaseTool) -> ToolCallRequest:
    """Return the request so that it runs the listed tool with the judged call, or not at all."""
    return request.override(tool=cast("BaseTool", _Exactly(tool, request.tool_call)))


def outcome_given(call: Mapping[str, Any], answer: Answered) -> Answered:
    """Give an error that the tool itself reports its class, and take away what would steer."""
    return replies_mapped(_own(call, _unsteered(answer)), _classed)


def _own(call: Mapping[str, Any], answer: Answered) -> Answered:
    """Drop replies to other calls: a tool must not say what came of its siblings."""
    if isinstance(answer, list):  # LangGraph lets a tool return several of both.
        kept = [_own(call, each) for each in answer if not _of_another(call, each)]
        return cast("Answered", kept)
    update = answer.update if isinstance(answer, Command) else None
    if not isinstance(update, Mapping) or not isinstance(update.get("messages"), list):
        return answer
    messages = [each for each in update["messages"] if not _of_another(call, each)]
    return replace(cast("Command[Any]", answer), update={**update, "messages": messages})


def _of_another(call: Mapping[str, Any], message: object) -> bool:
    other = isinstance(message, ToolMessage) and message.tool_call_id != call["id"]
    if other:
        logger.warning("tool.answers_for_another", extra={"tool": call["name"]})
    return other


def _classed(reply: ToolMessage) -> ToolMessage:
    if reply.status != "error" or outcome_read(reply.artifact) is not None:
        return reply
    return reply.model_copy(update={"artifact": transient("tool.refused")})


def _unsteered(answer: Answered) -> Answered:
    """One router decides where the turn goes; a tool's own jump is dropped."""
    if isinstance(answer, list):
        return cast("Answered", [_unsteered(each) for each in answer])
    if not isinstance(answer, Command) or answer.graph is not None:
        return answer
    update = answer.update
    if isinstance(update, Mapping):
        update = {name: value for name, value in update.items() if name not in _OURS}
    if answer.goto or update != answer.update:
        logger.warning("tool.steers")
    return replace(answer, update=update, goto=())


def must_pass(error: Exception, passes: tuple[type[BaseException], ...]) -> bool:
    """Tell whether an error steers the run, or is one that the boundary lets through."""
    return isinstance(error, (ControlError, GraphBubbleUp, *passes))


def failure_told(call: Mapping[str, Any], error: Exception) -> ToolMessage:
    """Return the outcome of a LangChain tool that broke, as for a tool of ours."""
    reference = reference_new()
    logger.error(
        "tool.failed",
        extra={"tool": call["name"], "call": call["id"], "reference": reference},
        exc_info=error,
    )
    return told(call, *crashed(reference), refused=True)
