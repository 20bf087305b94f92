"""The outcomes of one tool: those its app's tests force, and those that any tool can have."""

from __future__ import annotations

import difflib
import inspect
import re
import types
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from agent_core import contract
from agent_core.contract import REASONS, Tool
from tests.conformance.samples import Forced, approves, as_it_is, sample_of
from tests.conformance.scenes import Played, Scene
from tests.house.tree import PACKAGES
from tests.journeys.golden import Plain

GOLDEN: Final = Path(__file__).parents[1] / "golden" / "outcomes"

_LOG_REFERENCE: Final = re.compile(r"\bE-[0-9A-Z]{8}\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """One forced outcome of one tool, with the file that says how it reads."""

    tool: Tool
    reason: str
    name: str
    forced: Forced

    def __str__(self) -> str:
        return f"{self.tool.name}/{self.reason}-{self.name}"

    @property
    def writes(self) -> bool:
        """Tell whether anything but the conversation may change: where in doubt, it may."""
        forced = self.forced
        if forced.before is not as_it_is or forced.decided is not approves:
            return True
        refused = self.reason in ("transient", "policy_block")
        return self.tool.effect and (not refused or forced.code.endswith(".being_checked"))

    @property
    def golden(self) -> Path:
        """Return the file."""
        return GOLDEN / f"{self}.txt"


def outcomes_of(tool: Tool) -> list[Outcome]:
    """List what is forced of a tool, in the order of the reasons."""
    own = sample_of(tool).outcomes
    found = {reason: {**own.get(reason, {}), **_of_any(tool).get(reason, {})} for reason in REASONS}
    return [
        Outcome(tool=tool, reason=reason, name=name, forced=forced)
        for reason, ways in found.items()
        for name, forced in ways.items()
    ]


def _of_any(tool: Tool) -> Mapping[str, Mapping[str, Forced]]:
    def right_taken(scene: Scene) -> None:
        scene.take_right(tool.right)

    return {
        "transient": {"unreadable": Forced(code="call.invalid", arguments='{"not": JSON')},
        "policy_block": {"right-taken": Forced(code="right.missing", before=right_taken)},
    }


def golden_text(played: Mapping[str, Played]) -> str:
    """Write what is the same in both orchestrations once, and the path of each.

    Raises:
        AssertionError: they differ in more than the path and what only the product records.
    """
    texts = {name: _plain(each) for name, each in played.items()}
    (first, *others) = texts.values()
    assert all(other == first for other in others), texts
    paths = [f"{name}: {' '.join(each.transcript.path)}" for name, each in played.items()]
    return "\n".join([*paths, first])


def _plain(played: Played) -> str:
    """Return what stands beside the path, with stable words for references and dates."""
    told = played.transcript
    lines = [f"model calls: {told.model_calls}", "calls:", *(f"  {call}" for call in told.calls)]
    lines += [f"decisions: {', '.join(told.decisions)}", f"rule: {told.rule}", "text:"]
    lines += [f"  {line}".rstrip() for line in told.text.splitlines()]
    return Plain().text(_LOG_REFERENCE.sub("(reference)", "\n".join(lines))) + "\n"


def golden_difference(path: Path, now: str) -> str:
    """Return how a text differs from its file, line by line; nothing when it does not."""
    kept = path.read_text("utf-8") if path.exists() else ""
    return "\n".join(
        difflib.unified_diff(
            kept.splitlines(), now.splitlines(), fromfile=path.name, tofile="now", lineterm="", n=4
        )
    )


def constructors_reached(run: Callable[..., Any]) -> set[str]:
    """Return the reasons whose constructors a function names, itself or through ours it names."""
    constructors = {getattr(contract, reason): reason for reason in REASONS}
    reached: set[str] = set()
    todo, seen = [inspect.unwrap(run)], set()
    while todo:
        function = todo.pop()
        for value in _named(function):
            if value in constructors:
                reached.add(constructors[value])
            elif value not in seen and _is_ours(value):
                seen.add(value)
                todo.append(value)
    return reached


def _named(function: types.FunctionType) -> Iterator[types.FunctionType]:
    """Yield the functions that a function's code names, also as `module.name`."""
    names = set(_names(function.__code__))
    known = [function.__globals__[name] for name in names if name in function.__globals__]
    modules = [value for value in known if inspect.ismodule(value)]
    known += [getattr(module, name) for module in modules for name in names & set(vars(module))]
    yield from (value for value in known if inspect.isfunction(value))


def _names(code: types.CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, types.CodeType):
            yield from _names(inner)


def _is_ours(function: types.FunctionType) -> bool:
    return function.__module__.partition(".")[0] in PACKAGES
