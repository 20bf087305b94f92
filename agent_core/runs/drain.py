"""Tells every run of this worker that it is leaving (SIGTERM)."""

from __future__ import annotations

from mmap import mmap

_leaving: bytearray | mmap = bytearray(1)
"""One byte. A worker that begins puts it where the children of its pool see it too: the signal
reaches their parent only."""


def leaving() -> bool:
    """Tell whether this worker hands its runs back."""
    return bool(_leaving[0])


def leave() -> None:
    """Hand every run of this worker back at its next safe point, those of its children too."""
    _leaving[0] = 1


def stay() -> None:
    """Begin anew (a worker that starts, tests), and share it with what is forked from now on."""
    global _leaving
    _leaving = mmap(-1, 1)
