"""What the last whole run with the offline models used, request by request: `measured.json`."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.savings.measure import Trio

FILE: Final = Path(__file__).with_name("measured.json")

Kept = Mapping[str, Mapping[str, Sequence[int]]]
"""For each request and mode: model calls, input tokens, output tokens."""


def kept_of(trios: Sequence[Trio]) -> Kept:
    """Return what is kept of a measurement."""
    return {
        next(iter(trio.values())).request.id: {
            mode: [played.model_calls, sum(played.prompts), played.output_tokens]
            for mode, played in trio.items()
        }
        for trio in trios
    }


def kept_read() -> Kept:
    """Return what the last whole run has left."""
    kept: Kept = json.loads(FILE.read_text("utf-8"))
    return kept


def kept_write(kept: Kept) -> None:
    """Keep a run, one request a line."""
    lines = ",\n".join(f" {json.dumps(name)}: {json.dumps(used)}" for name, used in kept.items())
    FILE.write_text(f"{{\n{lines}\n}}\n", encoding="utf-8")
