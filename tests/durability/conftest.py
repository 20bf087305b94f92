"""Real workers on the real ledger and the real sandbox processor."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.durability.worker import Worker, queues_clear
from tests.payments.processor import Processor, processor, processor_process

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
) -> Iterator[Callable[[], Worker]]:
    """Start workers on the test database; whatever is left of them ends with the test."""
    started: list[Worker] = []

    def start() -> Worker:
        # The worker waits for the processor longer than the processor holds the line.
        made = Worker(
            tmp_path,
            DATABASE_URL=database_url,
            SANDBOX_URL=processor.url,
            PAYMENT_TIMEOUT_SECONDS="20",
        )
        made.start()
        started.append(made)
        return made

    yield start
    for one in started:
        one.stop()
