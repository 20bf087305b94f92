"""What the progress bar shows: it never goes back, and is full only when the file is there."""

from __future__ import annotations


def progress_shown(done: int, total: int) -> int:
    """Return the rows shown as done while work goes on: the last one is held back."""
    return max(0, min(done, total - 1))


def progress_rebased(done: int, old_total: int | None, new_total: int) -> int:
    """Return where the bar stands when a second attempt counts other rows than the first.

    Neither the number nor the share goes back, unless fewer rows are left than were shown.
    """
    if not old_total or not done:
        return progress_shown(done, new_total)
    share = -(-done * new_total // old_total)
    return progress_shown(max(done, share), new_total)


def progress_percent(done: int, total: int | None, *, ready: bool) -> int:
    """Return the percentage: 100 when the file can be fetched and never before."""
    if ready:
        return 100
    return min(99, done * 100 // total) if total else 0
