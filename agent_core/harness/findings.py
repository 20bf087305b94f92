"""What a report says of one tool, and the words in which it says it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

Got = TypeVar("Got")


@dataclass(frozen=True, slots=True)
class Raised:
    """What an adopter's code raised."""

    error: BaseException

    @property
    def told(self) -> str:
        """Name the error in words."""
        name = type(self.error).__name__
        return f"{name} ({self.error})" if str(self.error) else name


def attempted(action: Callable[[], Got]) -> Got | Raised:
    """Return what an adopter's code returns, or what it raised: the report goes on either way.

    A `sys.exit` in it is no end of ours. Only who sits before the terminal ends the report.
    """
    try:
        return action()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # noqa: BLE001
        # The one boundary to code that is not ours.
        return Raised(error)


@dataclass(frozen=True, slots=True)
class Finding:
    """One way in which a tool breaks the contract: a stable name, and what is wrong and to do.

    What does not break it is a note: a tool may raise, and then that call has proved nothing.
    """

    check: str
    text: str
    breaks: bool = True

    @property
    def line(self) -> str:
        """Return it as one line under its tool."""
        return f"    {'' if self.breaks else 'note, '}{self.check}: {self.text}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolReport:
    """What was found of one tool; `called` counts the examples it was called with."""

    name: str
    findings: Sequence[Finding] = ()
    called: int = 0

    @property
    def broken(self) -> bool:
        """Tell whether it breaks the contract."""
        return any(each.breaks for each in self.findings)

    @property
    def proved(self) -> bool:
        """Tell whether an example came to an outcome: what it returns shows only then."""
        return self.called > sum(1 for each in self.findings if not each.breaks)

    def lines(self, width: int) -> list[str]:
        """Return one line for a tool, and one more for everything that was found."""
        head = f"  {self.name:<{width}}  {self._verdict()}"
        return [head, *(each.line for each in self.findings)]

    def _verdict(self) -> str:
        if self.broken:
            return "broken"
        if not self.proved:
            return f"not proved: {'every example raised' if self.called else 'no examples'}"
        return f"ok, called {self.called} time{'s' if self.called != 1 else ''}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The report on all tools of one place."""

    place: str
    tools: Sequence[ToolReport]

    @property
    def broken(self) -> int:
        """Count the tools that break the contract."""
        return sum(1 for tool in self.tools if tool.broken)

    @property
    def unproved(self) -> int:
        """Count the tools of which nothing is wrong because no call came to an outcome."""
        return sum(1 for tool in self.tools if not tool.broken and not tool.proved)

    @property
    def kept(self) -> bool:
        """Tell whether every tool came to an outcome and keeps the contract."""
        return not self.broken and not self.unproved

    def written(self) -> str:
        """Return the report as text."""
        width = max((len(tool.name) for tool in self.tools), default=0)
        lines = [f"The tools of {self.place}", ""]
        for tool in self.tools:
            lines += tool.lines(width)
        total = f"{len(self.tools)} tool{'s' if len(self.tools) != 1 else ''}"
        return "\n".join([*lines, "", f"{total}, {self._verdict()}.", ""])

    def _verdict(self) -> str:
        counts = ((self.broken, "broken"), (self.unproved, "not proved"))
        told = [f"{number} of them {what}" for number, what in counts if number]
        return ", ".join(told) or "all keep the contract"
