"""Tells every run of this process that the worker is leaving (SIGTERM)."""

from __future__ import annotations

import threading

_leaving = threading.Event()


def leaving() -> bool:
    """Tell whether this worker hands its runs back."""
    return _leaving.is_set()


def leave() -> None:
    """Hand every run of this process back at its next safe point."""
    _leaving.set()


def stay() -> None:
    """Undo `leave`, for a process that begins anew (tests, a worker that starts)."""
    _leaving.clear()
