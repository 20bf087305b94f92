"""Probe tools: each forces one outcome, so that a case can be put together from their names."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Annotated, Any, Final, cast

from agent_core.contract import (
    Artifact,
    RunContext,
    Tool,
    completed,
    fatal,
    policy_block,
    transient,
)
from agent_core.harness.stage import Stage
from agent_core.policy import Policy, Proposal, ReviewProposal, Verdict, allow

RIGHT: Final = "probe.use"

Ended = tuple[str, Artifact]


def _receipt(thing: str) -> Ended:
    text = f"Receipt for {thing}: 5.00 EUR."
    return text, completed("probe.done", stop=True, data={"summary": f"5.00 EUR for {thing}"})


def _lookup(thing: str) -> Ended:
    return f"{thing} is known.", completed("probe.found", stop=False)


def _timeout(thing: str) -> Ended:
    return f"{thing} is being checked.", transient("probe.being_checked")


def _busy(thing: str) -> Ended:
    return f"{thing} could not be looked up just now.", transient("probe.busy")


def _decline(thing: str) -> Ended:
    return f"{thing} was declined. Nothing was charged.", fatal("probe.declined")


def _forbid(thing: str) -> Ended:
    return f"{thing} may not be touched.", policy_block("probe.forbidden")


def _crash(thing: str) -> Ended:
    raise RuntimeError(f"the probe for {thing} breaks on purpose")


def _with(thing: str, **changed: object) -> Ended:
    """End well, with an artifact that one field spoils."""
    good = completed("probe.done", stop=True)
    return f"{thing} went well.", cast("Artifact", {**good, **changed})


def _silent(thing: str) -> Ended:
    return f"{thing} has no outcome.", cast("Artifact", None)


def _stopless(thing: str) -> Ended:
    good = completed("probe.done", stop=True)
    return f"{thing} went well.", cast("Artifact", {k: v for k, v in good.items() if k != "stop"})


def _spoken(thing: str) -> Ended:
    return f"{thing} went well.", cast("Artifact", "completed")


def _bare(thing: str) -> Ended:
    return cast("Ended", f"{thing} went well.")


_READS: Final = frozenset({"lookup", "busy"})
_OUTCOMES: Final[Mapping[str, Callable[[str], Ended]]] = {
    "receipt": _receipt,
    "lookup": _lookup,
    "busy": _busy,
    "timeout": _timeout,
    "decline": _decline,
    "forbid": _forbid,
    "crash": _crash,
    # Malformed artifacts, each in its own way.
    "silent": _silent,
    "spoken": _spoken,
    "stopless": _stopless,
    "odd": lambda thing: _with(thing, reason="success"),
    "outdated": lambda thing: _with(thing, v=2),
    "misapplied": lambda thing: _with(thing, reason="fatal", already_applied=True),
    # Not even a text with an artifact.
    "bare": _bare,
    # Held by a rule of the gate, or until a person has decided.
    "gated": _receipt,
    "reviewed": _receipt,
    "adjustable": _receipt,
}


def _block(proposal: Proposal, facts: Mapping[str, Any]) -> Verdict | None:
    text = f"{proposal.arguments['thing']} is barred by a rule."
    return Verdict(kind="block", rule="probe.barred", text=text)


def _ask(proposal: Proposal, facts: Mapping[str, Any]) -> Verdict | None:
    return Verdict(kind="review", rule="probe.asked", text="A person decides.")


_POLICIES: Final[Mapping[str, Policy]] = {"gated": _block, "reviewed": _ask, "adjustable": _ask}


def _propose(
    context: RunContext, arguments: Mapping[str, Any], facts: Mapping[str, Any]
) -> ReviewProposal:
    """Ask, and let the reviewer put another thing in its place."""
    thing = str(arguments["thing"])
    return ReviewProposal(
        kind="probe",
        subject_id=None,
        subject_hash=thing,
        title=f"Try {thing}",
        button="Approve",
        fields={"thing": thing},
    )


def _identity(context: RunContext, arguments: Mapping[str, Any]) -> str:
    return str(arguments["thing"])


def probe(name: str, stage: Stage | None = None) -> Tool:
    """Return the probe of this name; with a stage it takes its turn there."""
    ends = _OUTCOMES[name]

    def run(context: RunContext, *, thing: Annotated[str, "What it is about."]) -> Ended:
        if stage is not None:
            stage.play(name, thing, str(context.call_id))
        return ends(thing)

    run.__doc__ = f"Force the outcome called {name}."
    reads = name in _READS
    return Tool(
        name=name,
        run=run,
        doing=f"Trying {name}",
        done=f"Tried {name}",
        right=RIGHT,
        effect=not reads,
        may_stop=not reads,
        policies=(_POLICIES.get(name, allow),),
        identity=None if reads else _identity,
        propose=_propose if name == "adjustable" else None,
    )


NAMES: Final[tuple[str, ...]] = tuple(_OUTCOMES)
PROBES: Final[tuple[Tool, ...]] = tuple(probe(name) for name in NAMES)
