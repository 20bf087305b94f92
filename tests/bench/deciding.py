"""The router alone: `decide` over a batch of three, beside a JSON round trip of the same batch."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final
from uuid import UUID

from agent_core.budget import Budget
from agent_core.contract import Outcome, completed, outcome_read, transient
from agent_core.router import Settled, decide
from tests.bench.timing import Times, timed

_PAID: Final = completed(
    "refund.completed",
    stop=True,
    data={"refund": "REF-7QK2M9XA", "amount_minor": 500, "currency": "EUR", "left_minor": 3500},
)
_FOUND: Final = completed("customer.found", stop=False, data={"customer": "CUS-1001"})
_SLOW: Final = transient("refund.unknown", data={"unknown": True})

BATCHES: Final[Mapping[str, Sequence[object]]] = {
    # The fastest end, and the longest way: every rule is tried and every limit looked at.
    "completed": (_PAID, _PAID, _PAID),
    "transient": (_PAID, _FOUND, _SLOW),
}


def batch_of(artifacts: Sequence[object]) -> list[Settled]:
    """Return a batch with these outcomes."""
    outcomes: list[Outcome | None] = [outcome_read(each) for each in artifacts]
    return [
        Settled(call_id=str(UUID(int=place)), outcome=outcome)
        for place, outcome in enumerate(outcomes)
    ]


def decide_timed(rule: str, *, tries: int, loops: int) -> tuple[Times, Times]:
    """Time a decision by this rule, and the yardstick.

    Raises:
        ValueError: the batch is decided by another rule.
    """
    batch, budget = batch_of(BATCHES[rule]), Budget()
    if decide(batch, budget).rule != rule:
        raise ValueError(f"This batch is not decided by {rule}.")
    plain: list[dict[str, Any]] = [asdict(each) for each in batch]
    return (
        timed(lambda: decide(batch, budget), tries=tries, loops=loops),
        timed(lambda: json.loads(json.dumps(plain)), tries=tries, loops=loops),
    )
