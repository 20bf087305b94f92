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
from agent_core.policy import Policy, Proposal, Verdict, allow

RIGHT: Final = "probe.use"

Ended = tuple[str, Artifact]


def _receipt(thing: str) -> Ended:
    text = f"Receipt for {thing}: 5.00 EUR."
    return text, completed("probe.done", stop=True, data={"summary": f"5.00 EUR for {thing}"})


def _lookup(thing: str) -> Ended:
    return f"{thing} is known.", completed("probe.found", stop=False)


def _timeout(thing: str) -> Ended:
    return f"{thing} is being checked.", transient("probe.being_checked")


def _decline(thing: str) -> Ended:
    return f"{thing} was declined. Nothing was charged.", fatal("probe.declined")


def _forbid(thing: str) -> Ended:
    return f"{thing} may not be touched.", policy_block("probe.forbidden")


def _crash(thing: str) -> Ended:
    raise RuntimeError(f"the probe for {thing} breaks on purpose")


def _odd(thing: str) -> Ended:
    odd = {"v": 1, "reason": "success", "stop": True, "code": "probe.odd"}
    return f"{thing} went well.", cast("Artifact", odd)


def _silent(thing: str) -> Ended:
    return f"{thing} has no outcome.", cast("Artifact", None)


_READS: Final = frozenset({"lookup"})
_OUTCOMES: Final[Mapping[str, Callable[[str], Ended]]] = {
    "receipt": _receipt,
    "lookup": _lookup,
    "timeout": _timeout,
    "decline": _decline,
    "forbid": _forbid,
    "crash": _crash,
    "odd": _odd,
    "silent": _silent,
    "gated": _receipt,
    "reviewed": _receipt,
}


def _block(proposal: Proposal, facts: Mapping[str, Any]) -> Verdict | None:
    text = f"{proposal.arguments['thing']} is barred by a rule."
    return Verdict(kind="block", rule="probe.barred", text=text)


def _ask(proposal: Proposal, facts: Mapping[str, Any]) -> Verdict | None:
    return Verdict(kind="review", rule="probe.asked", text="A person decides.")


_POLICIES: Final[Mapping[str, Policy]] = {"gated": _block, "reviewed": _ask}


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
    )


NAMES: Final[tuple[str, ...]] = tuple(_OUTCOMES)
PROBES: Final[tuple[Tool, ...]] = tuple(probe(name) for name in NAMES)
