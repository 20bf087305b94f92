"""How much a run may use and how much it has used."""

from __future__ import annotations

from dataclasses import dataclass, fields


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """The most a run may use. `seconds` leaves out waiting for people; `tries` is for one call."""

    model_calls: int = 12
    tool_calls: int = 24
    tokens: int = 60_000
    seconds: int = 300
    tries: int = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Usage:
    """What a run has used so far, in the units of Limits."""

    model_calls: int = 0
    tool_calls: int = 0
    tokens: int = 0
    seconds: int = 0
    tries: int = 0


@dataclass(frozen=True, slots=True)
class Exceeded:
    """The first limit that is used up."""

    limit: str
    used: int
    allowed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Budget:
    """Usage held against limits."""

    limits: Limits = Limits()
    usage: Usage = Usage()

    def exceeded(self) -> Exceeded | None:
        """Return the first limit that is used up, in the order in which Limits lists them."""
        for item in fields(Limits):
            used = int(getattr(self.usage, item.name))
            allowed = int(getattr(self.limits, item.name))
            if used >= allowed:
                return Exceeded(item.name, used, allowed)
        return None
