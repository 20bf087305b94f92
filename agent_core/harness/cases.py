"""The cases of the harness: what the model says, message by message, and what people decide."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from agent_core.budget import Limits
from agent_core.chat_models.scripted import ScriptedCall, ScriptedStep, says

AFTERWARDS: Final = says("That is all I can say.")


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

    A star after the name leaves something remaining.
    """
    return ScriptedStep(calls=tuple(_call(name, at) for at, name in enumerate(tools, 1)))


def _call(name: str, at: int) -> ScriptedCall:
    arguments = {"thing": f"T-{at}"}
    if name.endswith("*"):
        arguments["remaining"] = "the rest"
    return ScriptedCall(name.rstrip("*"), arguments)


def _alone(tool: str) -> Case:
    return Case(name=tool, steps=(batch(tool), AFTERWARDS))


def _together(*tools: str) -> Case:
    return Case(name="-and-".join(tools), steps=(batch(*tools), AFTERWARDS))


_ALONE: Final = (
    "receipt",
    "lookup",
    "timeout",
    "decline",
    "forbid",
    "crash",
    "odd",
    "silent",
    "gated",
)
_PAIRS: Final = (
    ("receipt", "decline"),
    ("receipt", "lookup"),
    ("receipt", "timeout"),
    ("forbid", "receipt"),
    ("receipt", "gated"),
    ("decline", "decline"),
)

CASES: Final[tuple[Case, ...]] = (
    *(_alone(tool) for tool in _ALONE),
    *(_together(*tools) for tools in _PAIRS),
    Case(name="answered", steps=(says("Hello."),)),
    Case(name="remaining", steps=(batch("receipt*"), batch("lookup", "receipt"), AFTERWARDS)),
    Case(name="unknown-tool", steps=(batch("receipts"), AFTERWARDS)),
    Case(
        name="bad-arguments",
        steps=(
            ScriptedStep(calls=(ScriptedCall("receipt", {"things": 1}),)),
            ScriptedStep(calls=(ScriptedCall("receipt", "{not json"),)),
            AFTERWARDS,
        ),
    ),
    Case(name="empty-answer", steps=(ScriptedStep(),)),
    Case(
        name="twin",
        steps=(
            ScriptedStep(calls=(_call("receipt", 1), _call("receipt", 1))),
            AFTERWARDS,
        ),
    ),
    Case(
        name="repeated-after-decline",
        steps=(batch("decline", "lookup"), batch("decline"), AFTERWARDS),
    ),
    Case(
        name="tries-used-up",
        steps=(batch("timeout"), batch("timeout"), batch("timeout"), AFTERWARDS),
    ),
    Case(
        name="model-calls-used-up",
        steps=(batch("lookup"), batch("lookup"), AFTERWARDS),
        limits=Limits(model_calls=2),
    ),
    Case(name="never-completed", steps=(batch("receipt"), AFTERWARDS), stop_mode="never"),
    Case(name="never-forbid", steps=(batch("forbid"), AFTERWARDS), stop_mode="never"),
    Case(
        name="reviewed-approved",
        steps=(batch("reviewed"), AFTERWARDS),
        decisions={"reviewed": {"state": "approved"}},
    ),
    Case(
        name="reviewed-rejected-beside-a-receipt",
        steps=(batch("receipt", "reviewed"), AFTERWARDS),
        decisions={"reviewed": {"state": "rejected", "sentence": "The lead said no."}},
    ),
)
