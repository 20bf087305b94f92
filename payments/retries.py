"""When to ask a processor again. Pure; the durations are the ledger's, not the processor's."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

# How long the processor keeps the result of a key; after it, look before you send.
KEY_LIFE: Final = timedelta(hours=24)
# A run that died leaves its intent to the run that takes over; after this, to the settle task.
ORPHAN_AFTER: Final = timedelta(seconds=60)
LONGEST_WAIT: Final = timedelta(minutes=5)


def next_try(tries: int, now: datetime, timeout_seconds: float) -> datetime:
    """Say when to ask again after so many tries: soon at first, later every few minutes."""
    doublings = min(max(tries - 1, 0), 10)
    return now + min(timedelta(seconds=timeout_seconds * (1 << doublings)), LONGEST_WAIT)


def key_outlived(first_sent: datetime, now: datetime) -> bool:
    """Tell whether the processor may have forgotten the key."""
    return now - first_sent >= KEY_LIFE
