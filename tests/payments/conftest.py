"""The sandbox processor and the ledger's cast, for whoever moves money in a test."""

from typing import Any

import pytest

from tests.payments import cast
from tests.payments.processor import Processor, processor, processor_process

__all__ = ["desk", "ledger", "processor", "processor_process"]


@pytest.fixture
def ledger(processor: Processor, settings: Any) -> Processor:
    """Point the ledger at the sandbox, with the limits that the tests count with."""
    settings.PAYMENT_GATEWAY = "sandbox"
    settings.REFUND_DAILY_LIMIT = {"EUR": 50_000}
    settings.CHARGE_REVIEW_ABOVE = {"EUR": 200_000}
    settings.CONVERSATION_NOTICE = "tests.payments.cast.notice_post"
    cast.NOTICES.clear()
    return processor


@pytest.fixture
def desk(db: None, ledger: Processor) -> cast.Desk:
    """Return Ana, Lea, and a customer with one payment of 100.00 EUR."""
    return cast.Desk()
