"""What an app's tests say of its tools: one good call each, and what forces every other outcome.

It stands in `tests/<app>/tool_samples.py`; the suites pick it up by the name of the app.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from django.conf import settings
from django.utils.module_loading import import_string

from agent_core.contract import Tool

if TYPE_CHECKING:
    from reviews.models import Review
    from tests.conformance.scenes import Scene


def as_it_is(scene: Scene) -> None:
    """Arrange nothing: the demo's data as it is."""


def approves(scene: Scene, review: Review) -> None:
    """Have the lead approve, or whoever asked where they confirm for themselves."""
    scene.approve(review)


@dataclass(frozen=True, slots=True, kw_only=True)
class Forced:
    """One way in which a tool ends with one outcome, brought about by real means.

    `arguments` are changes to those of the good call, or text as a model may send it; `words`
    stand in for its words. `before` arranges the desk, `decided` is what the person does who is
    asked, and what happens meanwhile.
    """

    code: str
    arguments: Mapping[str, Any] | str = field(default_factory=dict)
    words: tuple[str, ...] | None = None
    before: Callable[[Scene], None] = as_it_is
    decided: Callable[[Scene, Review], None] = approves


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSample:
    """One call on the demo's data that succeeds, and what else may come of such a call.

    `words` is what the staff member writes first. `same` holds the same wish in other spellings,
    `other` wishes that must not be taken for it. `outcomes` has for each reason the ways to force
    it, by name; `never` says why a reason cannot come of this tool's own code, which is checked.
    """

    words: tuple[str, ...] = ()
    arguments: Mapping[str, Any] = field(default_factory=dict)
    same: tuple[Mapping[str, Any], ...] = ()
    other: tuple[Mapping[str, Any], ...] = ()
    outcomes: Mapping[str, Mapping[str, Forced]] = field(default_factory=dict)
    never: Mapping[str, str] = field(default_factory=dict)


def registered() -> Iterator[Tool]:
    """Yield every tool that the settings register."""
    for path in settings.TOOLSETS:
        yield from import_string(path)


def sample_of(tool: Tool) -> ToolSample:
    """Return the good call of a tool; a tool without one is called with some words."""
    name = f"tests.{tool.run.__module__.partition('.')[0]}.tool_samples"
    samples: Mapping[str, ToolSample] = {}
    if find_spec(name) is not None:
        samples = import_module(name).SAMPLES
    if tool.name in samples:
        return samples[tool.name]
    assert not tool.effect, f"{tool.name} has a side effect: give it a sample in {name}."
    return ToolSample(arguments=dict.fromkeys(argument_names(tool), "some words"))


def argument_names(tool: Tool) -> list[str]:
    """List the arguments that a model fills in."""
    return list(inspect.signature(tool.run).parameters)[1:]
