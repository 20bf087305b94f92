"""What the graph keeps between steps: primitives and LangChain messages only."""

from __future__ import annotations

from typing import Annotated, Any, TypedDict

from langchain_core.messages import BaseMessage

Result = dict[str, Any]


def _merged(left: dict[str, Result], right: dict[str, Result]) -> dict[str, Result]:
    return {**left, **right}


class State(TypedDict, total=False):
    """What is checkpointed: primitives and LangChain messages only."""

    messages: list[BaseMessage]
    batch: list[dict[str, Any]]
    batch_number: int
    results: Annotated[dict[str, Result], _merged]
    history: list[dict[str, Any]]
    reviews: dict[str, dict[str, Any]]
    model_calls: int
    tool_calls: int
    tokens: int
    # What the provider reported for the last model call: tokens read and made.
    last_usage: dict[str, int]
    decision: dict[str, Any]
    held_back: list[dict[str, Any]]
    polished: dict[str, str]


class ActState(TypedDict):
    """What one act task is sent: the call, and the decision about it if there was one."""

    call: dict[str, Any]
    review: dict[str, Any] | None
