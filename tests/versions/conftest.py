"""Let the other generations begin first: they take longest, and the other processes go on."""

from __future__ import annotations

import pytest


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Put the run of the other generations before everything else."""
    items.sort(key=lambda item: item.name != "test_the_core_is_green_on_the_other_generations")
