"""The measurement, played once for the session: the short form, and the whole where it is asked.

The stage is set while it is played and no longer, because it changes settings.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import Final

import pytest
from pytest_django import DjangoDbBlocker

from tests.payments.processor import Processor, processor_process
from tests.savings.collection import collection_read
from tests.savings.measure import MODES, Trio, measure
from tests.savings.play import Stage
from tests.savings.stage import stage_set

__all__ = ["processor_process"]

UNPOLISHED: Final = tuple(mode for mode in MODES if mode != "polish")
Setting = Callable[[], AbstractContextManager[Stage]]


@pytest.fixture(scope="session")
def db() -> None:
    """Tell pytest-django to make the test database; tests here work on copies of it."""


@pytest.fixture(scope="session")
def setting(
    db: None,
    database_url: str,
    django_db_blocker: DjangoDbBlocker,
    processor_process: Processor,
    tmp_path_factory: pytest.TempPathFactory,
) -> Setting:
    """Return a way to set the stage."""

    @contextmanager
    def set_for_now() -> Iterator[Stage]:
        files = tmp_path_factory.mktemp("savings")
        with (
            django_db_blocker.unblock(),
            stage_set(database_url, processor_process, files) as stage,
        ):
            yield stage

    return set_for_now


@pytest.fixture(scope="session")
def short(setting: Setting) -> list[Trio]:
    """Play the short form, one request of each class; what polishing changes is one class's."""
    requests = [request for request in collection_read() if request.short]
    polished = [request for request in requests if request.kind == "receipt"]
    others = [request for request in requests if request not in polished]
    with setting() as stage:
        return [*measure(polished, stage, modes=MODES), *measure(others, stage, modes=UNPOLISHED)]


@pytest.fixture(scope="session")
def whole(setting: Setting) -> list[Trio]:
    """Play the whole collection in every mode."""
    with setting() as stage:
        return measure(collection_read(), stage)
