"""What several tests of the core share. It stands without Django, as the core does."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest

from agent_core.harness.play import ORCHESTRATIONS
from agent_core.harness.transcript import Play


@pytest.fixture
def quiet() -> Iterator[None]:
    """Keep the tracebacks of what breaks on purpose out of the report."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.fixture(params=list(ORCHESTRATIONS))
def play(request: pytest.FixtureRequest) -> Play:
    """Return each orchestration in turn."""
    return ORCHESTRATIONS[request.param]
