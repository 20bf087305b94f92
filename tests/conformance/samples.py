"""What an app's tests say of its tools: one good call each, in `tests/<app>/tool_samples.py`.

The suite of tools picks these up by the name of the app; a tool that only reads needs none.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from django.conf import settings
from django.utils.module_loading import import_string

from agent_core.contract import Tool


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSample:
    """One call on the demo's data that succeeds.

    `words` is what the staff member writes first. `same` holds the same wish in other spellings,
    `other` wishes that must not be taken for it.
    """

    words: tuple[str, ...] = ()
    arguments: Mapping[str, Any] = field(default_factory=dict)
    same: tuple[Mapping[str, Any], ...] = ()
    other: tuple[Mapping[str, Any], ...] = ()


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
