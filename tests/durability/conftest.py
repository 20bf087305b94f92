"""Real workers on the real ledger and the real sandbox processor."""

from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest

from tests.durability.worker import LEASES, queues_clear, worker_start
from tests.payments.processor import Processor, processor, processor_process
from tests.rig.processes import Process
from tests.rig.product import Parts

__all__ = ["processor", "processor_process"]


@pytest.fixture
def queues() -> Iterator[None]:
    """Begin and end with empty queues."""
    queues_clear()
    yield
    queues_clear()


@pytest.fixture
def worker(
    tmp_path: Path, database_url: str, processor: Processor, transactional_db: None, queues: None
) -> Iterator[Callable[[], Process]]:
    """Start workers on the test database; whatever is left of them ends with the test."""
    variables = {
        **LEASES,
        "DATABASE_URL": database_url,
        "SANDBOX_URL": processor.url,
        # The worker waits for the processor longer than the processor holds the line.
        "PAYMENT_TIMEOUT_SECONDS": "20",
    }
    with Parts(tmp_path, variables) as parts:
        yield partial(worker_start, parts)
