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

    def lines(self, width: int) -> list[str]:
        """Return one line for a good tool, and one more for everything that is broken."""
        if self.findings:
            broken = [f"    {each.check}: {each.text}" for each in self.findings]
            return [f"  {self.name:<{width}}  broken", *broken]
        times = f"called {self.called} time{'s' if self.called != 1 else ''}"
        return [
            f"  {self.name:<{width}}  ok, {times if self.called else 'not called: no examples'}"
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The report on all tools of one place."""

    place: str
    tools: Sequence[ToolReport]

    @property
    def kept(self) -> bool:
        """Tell whether every tool keeps the contract."""
        return not any(tool.findings for tool in self.tools)

    def written(self) -> str:
        """Return the report as text."""
        width = max((len(tool.name) for tool in self.tools), default=0)
        lines = [f"The tools of {self.place}", ""]
        for tool in self.tools:
            lines += tool.lines(width)
        broken = sum(1 for tool in self.tools if tool.findings)
        total = f"{len(self.tools)} tool{'s' if len(self.tools) != 1 else ''}"
        verdict = "all keep the contract" if not broken else f"{broken} of them broken"
        return "\n".join([*lines, "", f"{total}, {verdict}.", ""])
