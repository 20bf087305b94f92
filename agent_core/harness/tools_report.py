"""Find an adopter's tools and report which of them break the contract, and what to do."""

from __future__ import annotations

import importlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from langchain_core.tools import BaseTool

from agent_core.contract import RunContext, Tool
from agent_core.errors import ContractBroken, CountersignError
from agent_core.harness.check_calls import call_findings
from agent_core.harness.check_shape import shape_findings
from agent_core.harness.findings import Finding, Raised, Report, ToolReport, attempted
from agent_core.harness.memory import context_make

Examples = Mapping[str, Sequence[Mapping[str, Any]]]


class PlaceUnknown(CountersignError):
    """There is nothing of this name."""

    code = "harness.place_unknown"


def tools_report(tools: str, examples: str | None = None, context: str | None = None) -> Report:
    """Report on the tools at ``module:NAME``, called with the examples at another such place.

    `context` is the place of a function that returns the RunContext to call them in.

    Raises:
        PlaceUnknown: there is no such module or name, or it holds or returns something else.
        ContractBroken: a tool breaks the contract so that its module cannot even be imported.
    """
    listed = _listed(tools)
    calls = _examples(examples) if examples is not None else {}
    acting = _acting(context) if context is not None else None
    names = [_name(item) for item in listed]
    strangers = sorted(set(calls) - set(names))
    if strangers:
        raise PlaceUnknown(f"{examples} has examples for {', '.join(strangers)}: no such tool.")
    twice = {name for name, times in Counter(names).items() if times > 1}
    return Report(place=tools, tools=[_report(item, calls, acting, twice=twice) for item in listed])


def _report(
    item: object,
    calls: Examples,
    acting: Callable[[], RunContext] | None,
    *,
    twice: set[str],
) -> ToolReport:
    name = _name(item)
    if not isinstance(item, Tool | BaseTool):
        kind = Finding(
            "kind", "It is no tool. Make it a Tool of agent_core.contract, or a LangChain tool."
        )
        return ToolReport(name=name, findings=[kind])
    found = [Finding("twice", "Another tool has the same name.")] if name in twice else []
    found += shape_findings(item)
    # What is not registered rightly is not called: its examples would only repeat that.
    examples = [] if found else list(calls.get(name, ()))
    for arguments in examples:
        right = item.right if isinstance(item, Tool) else ""
        found += call_findings(item, arguments, acting() if acting else context_make(right))
    return ToolReport(name=name, findings=found, called=len(examples))


def _listed(place: str) -> list[object]:
    found = _at(place)
    if isinstance(found, Tool | BaseTool):
        return [found]
    if isinstance(found, str | bytes) or not isinstance(found, Iterable):
        raise PlaceUnknown(f"{place} is a {type(found).__name__} and no list of tools.")
    listed = attempted(lambda: list(found.values() if isinstance(found, Mapping) else found))
    if isinstance(listed, Raised):
        raise PlaceUnknown(f"{place} raises {listed.told} when it is listed.")
    if not listed:
        raise PlaceUnknown(f"{place} holds no tools.")
    return listed


def _examples(place: str) -> Examples:
    found = _at(place)
    if not isinstance(found, Mapping) or not all(
        isinstance(calls, list | tuple) and all(isinstance(each, Mapping) for each in calls)
        for calls in found.values()
    ):
        raise PlaceUnknown(f"{place} is no mapping of tool names to lists of arguments.")
    return found


def _acting(place: str) -> Callable[[], RunContext]:
    function = _at(place)
    if not callable(function):
        raise PlaceUnknown(f"{place} is a {type(function).__name__} and no function.")

    def acting() -> RunContext:
        context = attempted(function)
        if isinstance(context, Raised):
            raise PlaceUnknown(f"{place} raises {context.told}.")
        if not isinstance(context, RunContext):
            raise PlaceUnknown(f"{place} returns a {type(context).__name__} and no RunContext.")
        return context

    return acting


def _at(place: str) -> object:
    module_name, colon, name = place.partition(":")
    if not (module_name and colon and name):
        raise PlaceUnknown(f"{place!r} is no place. Write it as my.module:TOOLS.")
    module = attempted(lambda: importlib.import_module(module_name))
    if isinstance(module, Raised):
        if isinstance(module.error, ContractBroken):
            raise module.error
        raise PlaceUnknown(f"The module {module_name} cannot be imported: {module.told}.")
    if not hasattr(module, name):
        raise PlaceUnknown(f"The module {module_name} has no {name}.")
    return getattr(module, name)


def _name(item: object) -> str:
    name = getattr(item, "name", None) or getattr(item, "__name__", None)
    return str(name or type(item).__name__)
