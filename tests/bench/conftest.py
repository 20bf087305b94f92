"""The stage of the benchmark, apart from the measurement's, as the order of tests is random."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from pytest_django import DjangoDbBlocker

from tests.payments.processor import Processor, processor_process
from tests.savings.play import Stage
from tests.savings.stage import stage_set

__all__ = ["processor_process"]


@pytest.fixture
def db() -> None:
    """Tell pytest-django to make the test database; tests here work on copies of it."""


@pytest.fixture
def stage(
    db: None,
    database_url: str,
    django_db_blocker: DjangoDbBlocker,
    processor_process: Processor,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[Stage]:
    """Set the stage for one test."""
    files = tmp_path_factory.mktemp("bench")
    with (
        django_db_blocker.unblock(),
        stage_set(database_url, processor_process, files, "bench") as stage,
    ):
        yield stage
