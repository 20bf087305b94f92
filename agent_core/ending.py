"""What a batch means for its run: whether it ends in this stop mode, and what is recorded then."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from agent_core.answer import STUB, answer_compose
from agent_core.budget import Budget
from agent_core.chat_models.counting import PromptTokens
from agent_core.host import RunEnd
from agent_core.router import MEASURED_RULES, STOP_RULES, Settled, decide, measured

Kept = Mapping[str, Any]
"""What an orchestration keeps of a run: `history`, `decision`, `held_back` and `model_calls`."""

ANSWERED: Final[dict[str, Any]] = {"stop": True, "rule": "answered", "evidence": {}}


def batch_decided(
    batch: Sequence[Settled],
    budget: Budget,
    *,
    stop_mode: str,
    number: int,
    held_back: Sequence[Kept],
) -> dict[str, Any]:
    """Return `decision` and `held_back` as the state keeps them, after batch `number`.

    The mode `never` is the baseline for measuring: it notes what would have stopped the run, and
    goes on within the budget.
    """
    decision = decide(batch, budget)
    held = list(held_back)
    if stop_mode == "never" and decision.rule in MEASURED_RULES:
        held.append({"rule": decision.rule, "batch": number})
        decision = measured(decision, budget)
    kept = {"stop": decision.stop, "rule": decision.rule, "evidence": dict(decision.evidence)}
    return {"decision": kept, "held_back": held}


def polishes(decision: Kept, stop_mode: str) -> bool:
    """Tell whether this stop is one that the model may rewrite."""
    return stop_mode == "polish" and decision["rule"] == "completed"


def run_end(
    kept: Kept,
    *,
    stop_mode: str,
    said: str = "",
    rewrite: Mapping[str, str] | None = None,
    spared: Callable[[], PromptTokens] = PromptTokens,
) -> RunEnd:
    """Return how a run ended.

    `said` is the model's own answer where no batch stopped the run, `rewrite` the `text` and
    `note` of a tried polish. `spared` counts the request that a stop has saved: a stop within the
    budget for which the model was not called again. What is the baseline saves nothing.
    """
    decision = kept["decision"]
    rule, evidence = decision["rule"], dict(decision["evidence"])
    answer = answer_compose(kept["history"], rule=rule, evidence=evidence)
    if kept["held_back"]:
        evidence["would_have_stopped"] = kept["held_back"]
    if polishes(decision, stop_mode):
        evidence["polish"] = rewrite["note"] if rewrite else "no budget"
    stopped = rule in STOP_RULES
    saves = stopped and rule != "budget" and not rewrite and stop_mode != "never"
    prompt = spared() if saves else PromptTokens()
    return RunEnd(
        rule=rule,
        answer=rewrite["text"] if rewrite else answer.text if stopped else said,
        stub=STUB if stopped else "",
        headline=answer.headline if stopped else "",
        evidence=evidence,
        done=answer.done,
        not_done=answer.not_done,
        model_calls_made=kept["model_calls"],
        model_calls_saved=int(saves),
        tokens_saved=prompt.tokens,
        tokens_estimated=prompt.estimated,
    )
