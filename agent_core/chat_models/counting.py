"""How many tokens the next request would have had: the call that a stop saves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.messages.utils import count_tokens_approximately


@runtime_checkable
class CountsTokens(Protocol):
    """A model that counts messages itself, exactly as it would report them when sent."""

    def tokens_counted(self, messages: Sequence[BaseMessage]) -> int:
        """Return the input tokens that these messages add to a request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptTokens:
    """Input tokens of a request that was not sent; estimated when the model cannot count them."""

    tokens: int = 0
    estimated: bool = False


def next_prompt(
    model: BaseChatModel | CountsTokens | None,
    messages: Sequence[BaseMessage],
    *,
    read: int,
    made: int,
) -> PromptTokens:
    """Count the request that would come next: the last one, its answer, and the tools' messages.

    `messages` ends with the model's answer and the tool messages behind it. `read` and `made` are
    the input and output tokens that the provider reported for the last call, 0 if it reported none.
    Without a model at hand the count is an estimate.
    """
    last = max(place for place, each in enumerate(messages) if isinstance(each, AIMessage))
    if read and isinstance(model, CountsTokens):
        return PromptTokens(tokens=read + model.tokens_counted(messages[last:]))
    if read:
        # No provider counts a message that it is not sent; what is new is the tools' text.
        told = count_tokens_approximately(messages[last + 1 :])
        return PromptTokens(tokens=read + made + told, estimated=True)
    return PromptTokens(tokens=count_tokens_approximately(messages), estimated=True)
