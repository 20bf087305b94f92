"""The sandbox processor and the ledger's cast."""

from tests.payments.conftest import desk, ledger
from tests.payments.processor import processor, processor_process

__all__ = ["desk", "ledger", "processor", "processor_process"]
