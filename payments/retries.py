"""When to ask a processor again. Pure; the durations are the ledger's, not the processor's."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

# How long the processor keeps the result of a key; after it, look before you send.
KEY_LIFE: Final = timedelta(hours=24)
# A run that died leaves its intent to the run that takes over; after this, to the settle task.
ORPHAN_AFTER: Final = timedelta(seconds=60)
LONGEST_WAIT: Final = timedelta(minutes=5)
# A refund that the processor has accepted takes a bank from minutes to days.
FIRST_LOOK: Final = timedelta(minutes=1)
LONGEST_LOOK: Final = timedelta(hours=6)


def next_try(tries: int, now: datetime, timeout_seconds: float) -> datetime:
    """Say when to ask again after so many tries: soon at first, later every few minutes."""
    doublings = min(max(tries - 1, 0), 10)
    return now + min(timedelta(seconds=timeout_seconds * (1 << doublings)), LONGEST_WAIT)


def next_look(looks: int, now: datetime) -> datetime:
    """Say when to ask about an accepted refund after so many looks: ever more rarely."""
    return now + min(FIRST_LOOK * (1 << min(looks, 10)), LONGEST_LOOK)


def key_outlived(first_sent: datetime, now: datetime) -> bool:
    """Tell whether the processor may have forgotten the key."""
    return now - first_sent >= KEY_LIFE
