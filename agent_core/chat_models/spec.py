"""What is asked of a model provider, and what can be wrong with it, as sentences for operators."""

from __future__ import annotations

from dataclasses import dataclass

from agent_core.errors import CountersignError


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSpec:
    """One model as the settings ask for it: `name` is what follows `provider:`."""

    name: str
    timeout: int
    api_key: str | None = None
    base_url: str | None = None


class ModelSettingWrong(CountersignError, ValueError):
    """The chat model setting cannot be used."""

    code = "model.setting"


class ModelUnknown(ModelSettingWrong):
    """The chat model setting names a provider or a model that does not exist."""

    code = "model.unknown"


class ModelKeyMissing(ModelSettingWrong):
    """The chat model needs a key and none is set."""

    code = "model.key_missing"
