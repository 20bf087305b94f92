"""Ctrl-C and SIGTERM as a flag that is asked at safe places, never as an exception from nowhere."""

import signal
from types import FrameType


class Stopped(Exception):
    """The launcher was told to stop."""


class Interrupt:
    """Counts the requests to stop: the first ends in order, the second in haste."""

    def __init__(self) -> None:
        self._count = 0
        self._signal = 0

    def listen(self) -> None:
        """Take over the signals that end a program."""
        for kind in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(kind, self._note)

    def _note(self, number: int, _frame: FrameType | None) -> None:
        self._count += 1
        self._signal = number

    def check(self) -> None:
        """Break off a wait.

        Raises: Stopped when a stop was asked for.
        """
        if self._count:
            raise Stopped

    def hasty(self) -> bool:
        """Say whether the person asked again and will not wait."""
        return self._count > 1

    @property
    def exit_code(self) -> int:
        """Return 0 for Ctrl-C, the ordinary way to end, else the shell's code for the signal."""
        return 0 if self._signal in {0, signal.SIGINT} else 128 + self._signal
