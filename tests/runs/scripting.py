"""The shorthand in which tests of whole turns write the steps of the scripted model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agent_core.chat_models.scripted import (
    ScriptedCall,
    ScriptedModel,
    ScriptedStep,
    calls,
    fails,
    says,
)

__all__ = ["ScriptedModel", "Step", "scripted"]

# A text, an exception, or calls as (name, arguments); arguments as text stand as they are.
Step = str | Exception | Sequence[tuple[str, Mapping[str, Any] | str]]

# Providers repeat their ids; no turn may lean on them.
PROVIDER_ID = "the-provider-repeats-this"


def scripted(steps: Sequence[Step]) -> ScriptedModel:
    """Return a model that plays these steps."""
    return ScriptedModel(steps=[_step(step) for step in steps])


def _step(step: Step) -> ScriptedStep:
    if isinstance(step, str):
        return says(step)
    if isinstance(step, Exception):
        return fails(step)
    return calls(*(ScriptedCall(name, arguments, PROVIDER_ID) for name, arguments in step))
