"""Registers the deadly model in the processes that run on `tests.durability.poison.settings`."""

from __future__ import annotations

from typing import cast

from django.apps import AppConfig
from typing_extensions import override


class PoisonConfig(AppConfig):
    """An application without models."""

    name = "tests.durability.poison"
    label = "poison"

    @override
    def ready(self) -> None:
        """Add the provider `poison`."""
        from agent_core.chat_models import PROVIDERS, Provider
        from agent_core.chat_models.offline import offline_label
        from tests.durability.poison.model import poison_build

        registered = cast("dict[str, Provider]", PROVIDERS)
        registered["poison"] = Provider(poison_build, offline_label)
