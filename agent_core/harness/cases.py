"""The cases of the harness: what the model says, message by message, and what people decide."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from agent_core.budget import Limits
from agent_core.chat_models.scripted import ScriptedCall, ScriptedStep, fails, says
from agent_core.harness.oracle import AFTERWARDS_TEXT

AFTERWARDS: Final = says(AFTERWARDS_TEXT)


@dataclass(frozen=True, slots=True)
class AskedOf:
    """One call that waits for a person."""

    call_id: str
    tool: str
    arguments: Mapping[str, Any]


Decided = Mapping[str, Any] | Callable[[AskedOf], Mapping[str, Any]]
"""A final decision, or what makes one when asked.

It holds `state`; `sentence` in a refusal; `changes` where the person changed the call; and in
`review` the id of the review it came from, which is the call's own id when none is given.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One forced course of events.

    - `steps`: what the model says, message by message.
    - `decisions`: given to the reviews, by tool name.
    - `finishing`: the things of the parallel calls in the order in which these finish; empty when
      it may be any.
    - `seconds`: the working time that the host's clock shows.
    """

    name: str
    steps: tuple[ScriptedStep, ...]
    limits: Limits = field(default_factory=Limits)
    stop_mode: str = "hard"
    decisions: Mapping[str, Decided] = field(default_factory=dict)
    finishing: tuple[str, ...] = ()
    seconds: int = 0

    def decided(self, asked: AskedOf) -> dict[str, Any]:
        """Return what the person says of one call, naming the review it came from."""
        decision = self.decisions[asked.tool]
        made = decision(asked) if callable(decision) else decision
        return {"review": asked.call_id, **made}


def batch(*tools: str) -> ScriptedStep:
    """Return one model message that calls these probes at once, each about a thing of its own.

    A star after the name leaves something remaining, an exclamation mark spoils the arguments.
    """
    return ScriptedStep(calls=tuple(_call(name, at) for at, name in enumerate(tools, 1)))


def _call(name: str, at: int) -> ScriptedCall:
    arguments = {"things" if name.endswith("!") else "thing": f"T-{at}"}
    if name.endswith("*"):
        arguments["remaining"] = "the rest"
    return ScriptedCall(name.rstrip("*!"), arguments)


def _alone(tool: str) -> Case:
    return Case(name=tool, steps=(batch(tool), AFTERWARDS))


def _together(*tools: str, backwards: bool = False) -> Case:
    things = tuple(f"T-{at}" for at in range(1, len(tools) + 1))
    return Case(
        name="-and-".join(tools) + ("-last-to-first" if backwards else ""),
        steps=(batch(*tools), AFTERWARDS),
        finishing=things[::-1] if backwards else things,
    )


def _by_thing(**decisions: Mapping[str, Any]) -> Callable[[AskedOf], Mapping[str, Any]]:
    return lambda asked: decisions[str(asked.arguments["thing"]).replace("-", "")]


_APPROVED: Final = {"state": "approved"}
_REJECTED: Final = {"state": "rejected", "sentence": "The lead said no."}
_EXPIRED: Final = {"state": "expired", "sentence": "Nobody decided in time."}
_TO_T9: Final = {"state": "approved", "changes": {"thing": "T-9"}}
_POLISHED: Final = says("Here you go. Receipt for T-1: 5.00 EUR.")
_POLISHED_AWAY: Final = says("All done, that was 50.00 EUR for T-1.")

_OUTCOMES: Final = (
    *(_alone(tool) for tool in ("receipt", "lookup", "timeout", "decline", "forbid", "crash")),
    _together("receipt", "decline"),
    _together("receipt", "decline", backwards=True),
    _together("receipt", "lookup"),
    _together("receipt", "timeout"),
    _together("forbid", "receipt"),
    _together("decline", "decline"),
    _together("receipt", "decline", "timeout"),
    _together("receipt", "decline", "timeout", backwards=True),
    _together("receipt", "receipt", "receipt"),
    _together("lookup", "crash", "forbid"),
    Case(name="receipt-and-gated", steps=(batch("receipt", "gated"), AFTERWARDS)),
    _alone("gated"),
    Case(name="remaining", steps=(batch("receipt*"), batch("lookup", "receipt"), AFTERWARDS)),
    Case(name="remaining-does-not-soften", steps=(batch("receipt*", "forbid*"), AFTERWARDS)),
)
_MALFORMED: Final = tuple(
    _alone(tool)
    for tool in ("silent", "spoken", "stopless", "odd", "outdated", "misapplied", "bare")
)
_MODEL: Final = (
    Case(name="answered", steps=(says("Hello."),)),
    Case(name="empty-answer", steps=(ScriptedStep(),)),
    Case(name="empty-answer-after-a-receipt", steps=(batch("receipt*"), ScriptedStep())),
    Case(name="model-fails", steps=(fails(RuntimeError("no model")),)),
    Case(name="unknown-tool", steps=(batch("receipts"), AFTERWARDS)),
    Case(
        name="bad-arguments",
        steps=(
            ScriptedStep(calls=(ScriptedCall("receipt", {"things": 1}),)),
            ScriptedStep(calls=(ScriptedCall("receipt", "{not json"),)),
            AFTERWARDS,
        ),
    ),
    Case(
        name="bad-arguments-beside-a-receipt",
        steps=(
            ScriptedStep(calls=(_call("receipt", 1), ScriptedCall("decline", "{not json"))),
            AFTERWARDS,
        ),
    ),
    Case(
        name="bad-arguments-again-and-again",
        steps=(batch("receipts"), batch("receipts"), batch("receipts"), AFTERWARDS),
    ),
)
_NO_REPEAT: Final = (
    Case(
        name="twin",
        steps=(ScriptedStep(calls=(_call("receipt", 1), _call("receipt", 1))), AFTERWARDS),
    ),
    Case(
        name="repeated-after-decline",
        steps=(batch("decline", "lookup"), batch("decline"), AFTERWARDS),
    ),
    Case(
        name="repeated-after-a-receipt",
        steps=(batch("receipt*"), batch("receipt"), AFTERWARDS),
    ),
    Case(
        name="repeat-of-a-changed-call",
        steps=(batch("adjustable*"), batch("adjustable"), AFTERWARDS),
        decisions={"adjustable": _TO_T9},
    ),
)
_BUDGETS: Final = (
    Case(
        name="tries-used-up",
        steps=(batch("timeout"), batch("timeout"), batch("timeout"), AFTERWARDS),
    ),
    Case(
        name="tries-of-a-look-up-used-up",
        steps=(batch("busy"), batch("busy"), batch("busy"), AFTERWARDS),
    ),
    Case(
        name="model-calls-used-up",
        steps=(batch("lookup"), batch("lookup"), AFTERWARDS),
        limits=Limits(model_calls=2),
    ),
    Case(
        name="usual-limits-used-up",
        steps=(batch("receipt*", "lookup"), *[batch("lookup")] * Limits().model_calls),
    ),
    Case(
        name="tool-calls-used-up",
        steps=(batch("receipt", "lookup", "timeout"), AFTERWARDS),
        limits=Limits(tool_calls=3),
    ),
    Case(
        name="tokens-used-up",
        steps=(batch("lookup"), batch("decline", "lookup"), AFTERWARDS),
        limits=Limits(tokens=30),
    ),
    Case(name="seconds-used-up", steps=(batch("receipt*"), AFTERWARDS), seconds=300),
    Case(
        name="used-up-but-finished",
        steps=(batch("receipt"), AFTERWARDS),
        limits=Limits(model_calls=1, tool_calls=1, tokens=1),
    ),
)
_MODES: Final = (
    Case(name="polish-kept", steps=(batch("receipt"), _POLISHED), stop_mode="polish"),
    Case(name="polish-loses-a-fact", steps=(batch("receipt"), _POLISHED_AWAY), stop_mode="polish"),
    Case(
        name="polish-fails",
        steps=(batch("receipt"), fails(RuntimeError("no model"))),
        stop_mode="polish",
    ),
    Case(name="polish-decline", steps=(batch("decline"), AFTERWARDS), stop_mode="polish"),
    Case(name="never-completed", steps=(batch("receipt"), AFTERWARDS), stop_mode="never"),
    Case(name="never-fatal", steps=(batch("decline"), AFTERWARDS), stop_mode="never"),
    Case(name="never-forbid", steps=(batch("forbid"), AFTERWARDS), stop_mode="never"),
    Case(
        name="never-to-the-limit",
        steps=(batch("receipt"), AFTERWARDS),
        stop_mode="never",
        limits=Limits(model_calls=1),
    ),
)
_REVIEWS: Final = (
    Case(
        name="reviewed-approved",
        steps=(batch("reviewed"), AFTERWARDS),
        decisions={"reviewed": _APPROVED},
    ),
    Case(
        name="reviewed-edited",
        steps=(batch("adjustable"), AFTERWARDS),
        decisions={"adjustable": _TO_T9},
    ),
    Case(
        name="reviewed-rejected-beside-a-receipt",
        steps=(batch("receipt", "reviewed"), AFTERWARDS),
        decisions={"reviewed": _REJECTED},
    ),
    Case(
        name="reviewed-rejected-beside-an-approved",
        steps=(batch("reviewed", "reviewed", "lookup"), AFTERWARDS),
        decisions={"reviewed": _by_thing(T1=_REJECTED, T2=_APPROVED)},
    ),
    Case(
        name="reviewed-expired",
        steps=(batch("reviewed"), AFTERWARDS),
        decisions={"reviewed": _EXPIRED},
        stop_mode="never",
    ),
)

CASES: Final[tuple[Case, ...]] = (
    *_OUTCOMES,
    *_MALFORMED,
    *_MODEL,
    *_NO_REPEAT,
    *_BUDGETS,
    *_MODES,
    *_REVIEWS,
)
