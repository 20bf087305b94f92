"""Set the stage: servers, the sample data with the retail orders, the processor, the settings."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.parse import urlsplit, urlunsplit

from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django.test import override_settings

from agent_core.checkpoints import setup
from tests.journeys.conftest import samples_load
from tests.journeys.databases import template
from tests.payments.processor import TIMEOUT_SECONDS, Processor
from tests.savings.play import Stage

RETAIL: Final = Path(__file__).with_name("retail")

# Orders of the retail data come to more than what one person may refund a day in the demo.
DAILY_LIMIT: Final = {"EUR": 50_000, "USD": 1_000_000, "JPY": 8_000_000}


@contextmanager
def stage_set(
    address: str, processor: Processor, files: Path, name: str = "savings"
) -> Iterator[Stage]:
    """Fill a database once, and wire the product to the processor and to a folder for files."""
    storages: dict[str, Any] = settings.STORAGES
    default = storages["default"]
    options = {**default["OPTIONS"], "location": files}
    wiring: dict[str, Any] = {
        "PAYMENT_GATEWAY": "sandbox",
        "SANDBOX_URL": processor.url,
        "PAYMENT_TIMEOUT_SECONDS": TIMEOUT_SECONDS,
        "REFUND_DAILY_LIMIT": DAILY_LIMIT,
        "STORAGES": {**storages, "default": {**default, "OPTIONS": options}},
    }
    with override_settings(**wiring), template(address, name, _fill) as filled:
        yield Stage(address, filled, processor)


@contextmanager
def stage_alone() -> Iterator[Stage]:
    """Set the stage outside pytest, on an empty test database beside the configured one."""
    named = connection.settings_dict["NAME"]
    connection.creation.create_test_db(verbosity=0)
    try:
        made = connection.settings_dict["NAME"]
        address = urlunsplit(urlsplit(os.environ["DATABASE_URL"])._replace(path=f"/{made}"))
        setup(address)
        with (
            tempfile.TemporaryDirectory(prefix="cs-savings-") as folder,
            _processor(Path(folder)) as processor,
            stage_set(address, processor, Path(folder) / "files") as stage,
        ):
            yield stage
    finally:
        connection.creation.destroy_test_db(named, verbosity=0)


@contextmanager
def _processor(folder: Path) -> Iterator[Processor]:
    processor = Processor(folder)
    processor.start()
    try:
        yield processor
    finally:
        processor.stop()


def _fill() -> None:
    samples_load()
    call_command("import_retail", str(RETAIL), verbosity=0)
