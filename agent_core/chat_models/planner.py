"""From the messages of a window and the offered tools to a text or calls. Deterministic."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from langchain_core.messages import BaseMessage


@dataclass(frozen=True, slots=True)
class Offer:
    """One tool that is bound, with the fields of its schema."""

    name: str
    fields: frozenset[str]


@dataclass(frozen=True, slots=True)
class PlannedCall:
    """One call the planner wants made."""

    tool: str
    arguments: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Plan:
    """Either a text or calls."""

    text: str = ""
    calls: tuple[PlannedCall, ...] = ()


def plan_make(
    messages: Sequence[BaseMessage], offers: Sequence[Offer], *, one_at_a_time: bool = False
) -> Plan:
    """Plan the next message of the assistant."""
    return Plan(text="Hello. How can I help?")
