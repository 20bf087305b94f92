"""What must come of a batch, worked out from the table of the design alone.

It imports nothing of the core, the router least of all: two readings of one table check each other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final

AFTERWARDS_TEXT: Final = "That is all I can say."
"""What the model says when it is asked once more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Means:
    """What one probe forces, in the words of the table; no reason is missing or malformed.

    `says` is what it tells about a thing in the answer: a look-up nothing, nor a call that does not
    fit, which is never executed.
    """

    reason: str | None
    says: str = ""
    stop: bool = False
    remaining: bool = False
    executed: bool = True


_FAULT: Final = (
    "This could not be completed because of a fault on our side, and it is not tried again. "
    "Please pass on the reference E-REFERENCE."
)

MEANINGS: Final[Mapping[str, Means]] = {
    "receipt": Means(reason="completed", stop=True, says="Receipt for {}: 5.00 EUR."),
    "receipt*": Means(
        reason="completed", stop=True, remaining=True, says="Receipt for {}: 5.00 EUR."
    ),
    "lookup": Means(reason="completed"),
    "timeout": Means(reason="transient", says="{} is being checked."),
    "decline": Means(reason="fatal", says="{} was declined. Nothing was charged."),
    "forbid": Means(reason="policy_block", says="{} may not be touched."),
    "crash": Means(reason="fatal", says=_FAULT),
    "silent": Means(reason=None, says="{} has no outcome."),
    "receipt!": Means(reason="transient", executed=False),
    "receipts": Means(reason="transient", executed=False),
}
"""The calls of the mixes: probes, one with bad arguments, and a tool that does not exist.

A star leaves something remaining, an exclamation mark spoils the arguments.
"""

_Holds = Callable[[Sequence[Means]], bool]


def _some(reason: str | None) -> _Holds:
    return lambda batch: any(call.reason == reason for call in batch)


def _finished(batch: Sequence[Means]) -> bool:
    return all(call.reason == "completed" and call.stop and not call.remaining for call in batch)


def _mixed(batch: Sequence[Means]) -> bool:
    """Completed and fatal together, or only some say stop."""
    if {"completed", "fatal"} <= {call.reason for call in batch}:
        return True
    return {call.stop for call in batch if call.reason == "completed"} == {True, False}


STOPS: Final[tuple[tuple[str, _Holds], ...]] = (
    ("policy_block", _some("policy_block")),
    ("completed", _finished),
    ("fatal", lambda batch: all(call.reason == "fatal" for call in batch)),
)
"""First match wins; each of these stops. A used-up budget comes next, whatever would go on."""

GOES_ON: Final[tuple[tuple[str, _Holds], ...]] = (
    ("unclear", _some(None)),
    ("transient", _some("transient")),
    ("mixed", _mixed),
    ("continue", bool),
)
"""First match wins; each of these goes back to the model."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What a run over one batch must show; `text` is without a headline."""

    decision: str
    rule: str
    model_calls: int
    text: str
    headline: str


def expected(tools: Sequence[str], *, mode: str = "hard", spent: bool = False) -> Expected:
    """Return what must come of these probes called at once, each about a thing of its own.

    `spent` means that the one model call used up a limit.
    """
    batch = [MEANINGS[tool] for tool in tools]
    rule, stops = _rule(batch)
    measured = mode == "never" and rule in ("completed", "fatal")
    if stops and not measured:
        polishes = mode == "polish" and rule == "completed" and not spent
        return Expected(
            decision=rule,
            rule=rule,
            model_calls=2 if polishes else 1,
            text=_answer(batch),
            headline=_headline(batch),
        )
    if spent:
        return Expected(
            decision=f"budget (model_calls 1 of 1, else {rule})",
            rule="budget",
            model_calls=1,
            text=_answer(batch),
            headline="I stopped here because ",
        )
    return Expected(
        decision=f"{rule} (goes on)" if measured else rule,
        rule="answered",
        model_calls=2,
        text=AFTERWARDS_TEXT,
        headline="",
    )


def _rule(batch: Sequence[Means]) -> tuple[str, bool]:
    for rules, stops in ((STOPS, True), (GOES_ON, False)):
        for rule, holds in rules:
            if holds(batch):
                return rule, stops
    raise AssertionError("The last rule holds for every batch.")


def _answer(batch: Sequence[Means]) -> str:
    """Refused or failed, done, open or unknown; look-ups are left out."""
    told = [
        (_GROUPS.index(_group(call)), at, call.says.format(f"T-{at}"))
        for at, call in enumerate(batch, 1)
        if call.says
    ]
    return "\n\n".join(text for _group_at, _at, text in sorted(told))


_GROUPS: Final = ("refused", "done", "open")


def _group(call: Means) -> str:
    if call.reason in ("fatal", "policy_block"):
        return "refused"
    return "done" if call.reason == "completed" else "open"


def _headline(batch: Sequence[Means]) -> str:
    """Return how the headline begins: it names both sides where there are two."""
    told = [_group(call) for call in batch if call.says]
    if len(told) < 2 or set(told) == {"done"}:
        return ""
    return f"{told.count('done')} of {len(told)} done"
