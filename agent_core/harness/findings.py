"""What a report says of one tool, and the words in which it says it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeVar

Got = TypeVar("Got")


@dataclass(frozen=True, slots=True)
class Raised:
    """What an adopter's code raised."""

    error: Exception

    @property
    def told(self) -> str:
        """Name the error in words."""
        name = type(self.error).__name__
        return f"{name} ({self.error})" if str(self.error) else name


def attempted(action: Callable[[], Got]) -> Got | Raised:
    """Return what an adopter's code returns, or what it raised: the report goes on either way."""
    try:
        return action()
    except Exception as error:  # noqa: BLE001
        # The one boundary to code that is not ours.
        return Raised(error)


@dataclass(frozen=True, slots=True)
class Finding:
    """One way in which a tool breaks the contract: a stable name, and what is wrong and to do."""

    check: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolReport:
    """What was found of one tool; `called` counts the examples it was called with."""

    name: str
    findings: Sequence[Finding] = ()
    called: int = 0

    @property
    def proved(self) -> bool:
        """Tell whether it was called at all: what it returns shows only then."""
        return self.called > 0

    def lines(self, width: int) -> list[str]:
        """Return one line for a tool, and one more for everything that is broken."""
        name = f"  {self.name:<{width}}  "
        if self.findings:
            return [f"{name}broken", *(f"    {each.check}: {each.text}" for each in self.findings)]
        if not self.proved:
            return [f"{name}not proved: no examples"]
        return [f"{name}ok, called {self.called} time{'s' if self.called != 1 else ''}"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The report on all tools of one place."""

    place: str
    tools: Sequence[ToolReport]

    @property
    def broken(self) -> int:
        """Count the tools that break the contract."""
        return sum(1 for tool in self.tools if tool.findings)

    @property
    def unproved(self) -> int:
        """Count the tools of which nothing is wrong because nothing called them."""
        return sum(1 for tool in self.tools if not tool.findings and not tool.proved)

    @property
    def kept(self) -> bool:
        """Tell whether every tool was called and keeps the contract."""
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
