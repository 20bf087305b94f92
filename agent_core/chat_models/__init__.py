"""Chat models by name (`provider:model`): the one place where the product chooses its model.

A new provider is one file with a build and a label function, and one line in PROVIDERS.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from langchain_core.language_models import BaseChatModel

from agent_core.chat_models.groq import groq_build, groq_label
from agent_core.chat_models.offline import offline_build, offline_label
from agent_core.chat_models.spec import (
    ModelKeyMissing,
    ModelSettingWrong,
    ModelSpec,
    ModelUnknown,
)

__all__ = [
    "PROVIDERS",
    "ModelKeyMissing",
    "ModelSettingWrong",
    "ModelSpec",
    "ModelUnknown",
    "Provider",
    "chat_model",
    "model_label",
]


@dataclass(frozen=True, slots=True)
class Provider:
    """One provider as the factory knows it."""

    build: Callable[[ModelSpec], BaseChatModel]
    label: Callable[[str], str]


PROVIDERS: Final[Mapping[str, Provider]] = {
    "offline": Provider(offline_build, offline_label),
    "groq": Provider(groq_build, groq_label),
}


def chat_model(
    spec: str, *, timeout: int, api_key: str | None = None, base_url: str | None = None
) -> BaseChatModel:
    """Return the model that `spec` names, with a timeout and without retries of its own.

    Raises:
        ModelUnknown: there is no such provider or model.
        ModelKeyMissing: the provider needs a key and none is set.
    """
    provider, name = _split(spec)
    return provider.build(ModelSpec(name=name, timeout=timeout, api_key=api_key, base_url=base_url))


def model_label(spec: str) -> str:
    """Return how the user interface names the model.

    Raises:
        ModelUnknown: there is no such provider or model.
    """
    provider, name = _split(spec)
    return provider.label(name)


def _split(spec: str) -> tuple[Provider, str]:
    prefix, colon, name = spec.strip().partition(":")
    known = ", ".join(f"{key}:…" for key in PROVIDERS)
    if not colon or not prefix or not name.strip():
        raise ModelUnknown(
            f"The chat model is written as provider:model, for example offline:planner. "
            f"{spec!r} is not. Known providers: {known}."
        )
    provider = PROVIDERS.get(prefix.strip().lower())
    if provider is None:
        raise ModelUnknown(
            f"There is no chat model provider called {prefix!r}. Known providers: {known}."
        )
    return provider, name.strip()
