"""The registered tools as the model sees them, and the one boundary around their execution."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, get_type_hints

from langchain_core.messages import ToolMessage
from langchain_core.tools import StructuredTool
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.errors import GraphBubbleUp
from pydantic import BaseModel, ConfigDict, ValidationError, create_model
from pydantic import Field as SchemaField

from agent_core.contract import (
    Artifact,
    RunContext,
    Tool,
    fatal,
    outcome_read,
    plain,
    text_storable,
    transient,
)
from agent_core.errors import ContractBroken, ControlError, CountersignError, reference_new
from agent_core.redaction import redacted, shortened

logger = logging.getLogger(__name__)

REMAINING: Final = "remaining"
REMAINING_WORDS: Final = (
    "What the person asked for that will still be open after this call, in a few words. "
    "Leave empty when this call is the last thing to do."
)


class ArgumentsBad(CountersignError):
    """The call does not fit the tool; the message says why, in words for the model."""

    code = "call.invalid"
    retryable = True


@dataclass(frozen=True, slots=True)
class Checked:
    """A call whose arguments fit: the business arguments, and whether something remains."""

    tool: Tool
    arguments: dict[str, Any]
    remaining: bool


class Toolset:
    """Every tool of the product by name.

    Raises:
        ContractBroken: two tools share a name, or a tool takes an argument named `remaining`.
    """

    def __init__(self, tools: Iterable[Tool]) -> None:
        self._tools: dict[str, Tool] = {}
        self._schemas: dict[str, type[BaseModel]] = {}
        self._sent: dict[str, dict[str, Any]] = {}
        for tool in tools:
            if tool.name in self._tools:
                raise ContractBroken(f"Two tools are called {tool.name}.")
            self._tools[tool.name] = tool
            self._schemas[tool.name] = _schema(tool)

    def __iter__(self) -> Any:
        return iter(self._tools.values())

    def tool(self, name: str) -> Tool | None:
        """Return the tool of exactly this name; a near name is nothing."""
        return self._tools.get(name)

    def offered(self, rights: frozenset[str]) -> list[StructuredTool]:
        """Return the tools that someone with these rights may use, ready for `bind_tools`."""
        return [
            self.structured(tool, None) for tool in self._tools.values() if tool.right in rights
        ]

    def schemas(self, rights: frozenset[str]) -> list[dict[str, Any]]:
        """Return the same tools as the schemas that are sent, each worked out once."""
        for tool in self._tools.values():
            if tool.name not in self._sent:
                self._sent[tool.name] = convert_to_openai_tool(self.structured(tool, None))
        return [self._sent[tool.name] for tool in self._tools.values() if tool.right in rights]

    def structured(self, tool: Tool, context: RunContext | None) -> StructuredTool:
        """Return the LangChain tool, bound to the context of one call."""

        def run(**arguments: Any) -> tuple[str, object]:
            if context is None:
                raise ContractBroken(f"{tool.name} was called outside a run.")
            arguments.pop(REMAINING, None)
            return _told(tool, context, tool.run(context, **arguments))

        return StructuredTool.from_function(
            func=run,
            name=tool.name,
            description=inspect.getdoc(tool.run) or tool.doing,
            args_schema=self._schemas[tool.name],
            response_format="content_and_artifact",
        )

    def checked(self, name: str, arguments: Mapping[str, Any]) -> Checked:
        """Check a call of the model against the tool's schema.

        Raises:
            ArgumentsBad: no such tool, or the arguments do not fit.
        """
        tool = self._tools.get(name)
        if tool is None:
            raise ArgumentsBad("There is no such tool. Use only the tools that are offered.")
        schema = self._schemas[name]
        # Models write null for what they leave out: then the argument's default holds.
        given = {
            each: value
            for each, value in arguments.items()
            if value is not None or each not in _optional(schema)
        }
        try:
            values = schema.model_validate(given).model_dump()
        except ValidationError as error:
            problems = "; ".join(
                f"{'.'.join(str(part) for part in problem['loc']) or 'call'}: {problem['msg']}"
                for problem in error.errors()
            )
            raise ArgumentsBad(f"The details given do not fit: {problems}.") from None
        remaining = bool(str(values.pop(REMAINING, "") or "").strip())
        return Checked(tool, values, remaining)

    def executed(
        self,
        tool: Tool,
        arguments: Mapping[str, Any],
        context: RunContext,
        passes: tuple[type[BaseException], ...] = (),
    ) -> ToolMessage:
        """Run one call and return its message with the artifact beside the text.

        This is the one place where a failure becomes an outcome. Errors that steer the graph or
        the run, and those in `passes` (a lost database, a soft time limit), go through.
        """
        call = {
            "type": "tool_call",
            "id": str(context.call_id),
            "name": tool.name,
            "args": dict(arguments),
        }
        try:
            self._schemas[tool.name].model_validate(dict(arguments))
        except ValidationError as error:
            logger.warning("tool.arguments_bad", extra={"tool": tool.name, "error": str(error)})
            return _message(tool, context, *invalid("The details given do not fit."))
        try:
            message = self.structured(tool, context).invoke(call)
            return _message(tool, context, message.content, message.artifact)
        except (ControlError, GraphBubbleUp):
            raise
        except passes:
            raise
        except Exception:  # The boundary: whatever a tool does, the run gets an outcome.
            reference = reference_new()
            logger.exception(
                "tool.failed",
                extra={"tool": tool.name, "call": str(context.call_id), "reference": reference},
            )
            return _message(tool, context, *crashed(reference))


def invalid(problem: str) -> tuple[str, Artifact]:
    """Return the outcome of a call that does not fit: the model may ask again."""
    return problem, transient("call.invalid")


def crashed(reference: str) -> tuple[str, Artifact]:
    """Return the outcome of a tool that broke: final, with a reference into the log."""
    text = (
        "This could not be completed because of a fault on our side, and it is not tried again. "
        f"Please pass on the reference {reference}."
    )
    return text, fatal("tool.failed", data={"reference": reference})


def _message(tool: Tool, context: RunContext, content: str, artifact: object) -> ToolMessage:
    return ToolMessage(
        content=shortened(redacted(text_storable(content))),
        artifact=artifact,
        tool_call_id=str(context.call_id),
        name=tool.name,
    )


def _told(tool: Tool, context: RunContext, returned: object) -> tuple[str, object]:
    """Return what a tool said, as text, and its artifact, None when nothing can store it.

    Raises:
        ContractBroken: it returned something else than text with an artifact.
    """
    if not isinstance(returned, tuple) or len(returned) != 2:
        raise ContractBroken(f"{tool.name} must return (content, artifact).")
    artifact = _artifact_storable(tool, context, returned[1])
    text = _text(returned[0])
    if text.strip():
        return text, artifact
    outcome = outcome_read(artifact)
    if outcome is None or outcome.reason != "completed":
        raise ContractBroken(f"{tool.name} returned no text.")
    # It is done. To call it failed would be worse than to say so in fewer words.
    logger.error("tool.textless", extra={"tool": tool.name, "call": str(context.call_id)})
    return f"{tool.done}.", artifact


def _text(content: object) -> str:
    """Return text, or LangChain's text blocks joined; nothing for what is not text throughout."""
    if isinstance(content, str):
        return text_storable(content)
    texts: list[str] = []
    for block in content if isinstance(content, list) else ():
        is_text = isinstance(block, dict) and block.get("type") == "text"
        text = block.get("text") if is_text else block
        if not isinstance(text, str):
            return ""
        texts.append(text)
    return text_storable("".join(texts))


def _artifact_storable(tool: Tool, context: RunContext, artifact: object) -> object:
    """Leave out what cannot be stored: it would fail the checkpoint behind the effect."""
    try:
        return plain(artifact, "artifact")
    except Exception:  # A stranger's class may raise anything; the outcome is unclear then.
        logger.warning(
            "artifact.unstorable",
            extra={"tool": tool.name, "call": str(context.call_id)},
            exc_info=True,
        )
        return None


def _optional(schema: type[BaseModel]) -> frozenset[str]:
    fields = schema.model_fields.items()
    return frozenset(name for name, field in fields if not field.is_required())


def _schema(tool: Tool) -> type[BaseModel]:
    hints = get_type_hints(tool.run, include_extras=True)
    parameters = list(inspect.signature(tool.run).parameters.values())[1:]
    fields: dict[str, Any] = {}
    for parameter in parameters:
        if parameter.name == REMAINING:
            raise ContractBroken(f"{tool.name} must not take an argument named {REMAINING}.")
        default = ... if parameter.default is parameter.empty else parameter.default
        fields[parameter.name] = (_described(hints[parameter.name]), default)
    if tool.may_stop:
        fields[REMAINING] = (Annotated[str, SchemaField(description=REMAINING_WORDS)], "")
    # Models send numbers where text is asked for; the text keeps exactly what was written.
    config = ConfigDict(extra="forbid", coerce_numbers_to_str=True)
    return create_model(f"{tool.name}_arguments", __config__=config, **fields)


def _described(hint: Any) -> Any:
    """Turn ``Annotated[str, "words"]`` into a schema field with that description."""
    metadata = getattr(hint, "__metadata__", ())
    words = [item for item in metadata if isinstance(item, str)]
    if not words:
        return hint
    return Annotated[hint.__origin__, SchemaField(description=" ".join(words))]
