"""Registers the benchmark's model in the processes that run on `tests.bench.settings`."""

from __future__ import annotations

from typing import cast

from django.apps import AppConfig
from typing_extensions import override


class BenchConfig(AppConfig):
    """An application without models; the product knows nothing of it."""

    name = "tests.bench"
    label = "bench"

    @override
    def ready(self) -> None:
        """Add the provider `bench`."""
        from agent_core.chat_models import PROVIDERS, Provider
        from tests.bench.model import bench_build, bench_label

        registered = cast("dict[str, Provider]", PROVIDERS)
        registered["bench"] = Provider(bench_build, bench_label)
