"""What can be said of a tool without calling it: its names, words, arguments and registration."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Any, Final

from langchain_core.tools import BaseTool

from agent_core.contract import Tool
from agent_core.harness.findings import Finding, Raised, attempted
from agent_core.toolset import REMAINING, Toolset

RESERVED: Final = frozenset({"config", "run_manager", "callbacks", "runtime"})
"""Names that LangChain fills itself when it calls a tool."""

_NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
_SHORTEST: Final = 3


def shape_findings(tool: Tool | BaseTool) -> list[Finding]:
    """Return what is wrong with a tool as it is registered; nothing of it is executed."""
    found = list(_of_any(tool.name))
    found += _of_ours(tool) if isinstance(tool, Tool) else _of_langchain(tool)
    return found


def _of_any(name: str) -> Iterator[Finding]:
    if not _NAME.fullmatch(name):
        yield Finding(
            "name",
            f"{name!r} is no name that every provider takes. Use up to 64 letters, digits, "
            "underscores and hyphens.",
        )


def _of_ours(tool: Tool) -> Iterator[Finding]:
    yield from _described(inspect.getdoc(tool.run) or "", "Give its function a docstring.")
    if not tool.doing.strip() or not tool.done.strip() or tool.doing == tool.done:
        yield Finding(
            "words",
            "`doing` and `done` are what people read while it works and afterwards. Write both, "
            "and differently.",
        )
    elif tool.name in f"{tool.doing} {tool.done}" and "_" in tool.name:
        yield Finding("words", "`doing` or `done` shows people its name. Use plain words.")
    if not tool.right.strip():
        yield Finding("right", "It names no right. Name the permission that a person needs for it.")
    signature = list(_signature(tool))
    yield from signature
    if not signature:
        yield from _schema(tool)


def _signature(tool: Tool) -> Iterator[Finding]:
    signature = attempted(lambda: inspect.signature(tool.run))
    if isinstance(signature, Raised):
        yield Finding("signature", f"Its arguments cannot be listed: {signature.told}.")
        return
    parameters = list(signature.parameters.values())
    if not parameters or parameters[0].kind not in _FIRST:
        yield Finding("signature", "It takes no context. Make that its function's first argument.")
        return
    for parameter in parameters[1:]:
        name = parameter.name
        if parameter.kind not in _REST:
            yield Finding(
                "signature",
                f"{name!r} cannot be given by name. List every argument of its own by name.",
            )
        elif parameter.annotation is parameter.empty:
            yield Finding("schema", f"{name!r} has no annotation. Say what type it is.")
        elif name == REMAINING:
            yield Finding(
                "remaining",
                f"It takes an argument named {REMAINING!r}, which every stopping tool is given "
                "for what is still open. Call yours otherwise.",
            )
        elif name in RESERVED:
            yield Finding("reserved", f"{name!r} is filled by LangChain. Call it otherwise.")


_FIRST: Final = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
_REST: Final = (inspect.Parameter.KEYWORD_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def _schema(tool: Tool) -> Iterator[Finding]:
    yield from _undescribed(attempted(lambda: Toolset([tool]).structured(tool, None).args))


def _of_langchain(tool: BaseTool) -> Iterator[Finding]:
    yield from _described(tool.description, "Give it a description.")
    if tool.return_direct:
        yield Finding(
            "direct",
            "It is registered with return_direct, which ends the turn even when the call failed. "
            "Take it away; the artifact of each call says whether it may stop.",
        )
    if tool.response_format != "content_and_artifact":
        yield Finding(
            "response_format",
            "It returns text alone, so that no outcome can be read. Set "
            'response_format="content_and_artifact" and return the text with an artifact.',
        )
    for name in ("handle_tool_error", "handle_validation_error"):
        if getattr(tool, name, False):
            yield Finding(
                "errors_as_text",
                f"{name} turns a failure into text without an outcome. Take it away, and return "
                "transient(...) or fatal(...).",
            )
    yield from _undescribed(attempted(lambda: tool.args))


def _described(words: str, what_to_do: str) -> Iterator[Finding]:
    if len(words.split()) < _SHORTEST:
        yield Finding(
            "description", f"The model is not told what it is for. {what_to_do} A sentence will do."
        )


def _undescribed(arguments: dict[str, Any] | Raised) -> Iterator[Finding]:
    if isinstance(arguments, Raised):
        yield Finding("schema", f"No schema can be made of its arguments: {arguments.told}.")
        return
    for name, schema in arguments.items():
        if not str(schema.get("description", "")).strip():
            yield Finding(
                "argument",
                f'The model is not told what {name!r} is. Annotate it: Annotated[str, "The ..."].',
            )
