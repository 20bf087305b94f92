"""The Groq provider. Timeouts are always set and the client's own retries are off: see DESIGN 7."""

from __future__ import annotations

import os
from typing import Any, Final

from langchain_core.language_models import BaseChatModel

from agent_core.chat_models.spec import ModelKeyMissing, ModelSpec

KEY_NAME: Final = "GROQ_API_KEY"


def groq_build(spec: ModelSpec) -> BaseChatModel:
    """Build a Groq model that streams with usage.

    Raises:
        ModelKeyMissing: no key was passed and none is in the environment.
    """
    # Imported here, so that the offline model needs no provider package.
    from langchain.chat_models import init_chat_model

    key = spec.api_key or os.environ.get(KEY_NAME, "")
    if not key.strip():
        raise ModelKeyMissing(
            f"The model groq:{spec.name} needs a key: set {KEY_NAME}, or use offline:planner."
        )
    # The server chooses its own address only in tests and behind a proxy.
    address: dict[str, Any] = {"base_url": spec.base_url} if spec.base_url else {}
    model: BaseChatModel = init_chat_model(
        f"groq:{spec.name}",
        api_key=key.strip(),
        timeout=spec.timeout,
        max_retries=0,
        temperature=0,
        **address,
    )
    return model


def groq_label(name: str) -> str:
    """Name the model for people."""
    return f"Groq {name}"
