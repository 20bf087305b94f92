"""Golden transcripts: one text file for each case, compared line by line."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from agent_core.harness.transcript import Transcript

FOLDER: Final = Path(__file__).parent / "golden"


def golden_text(transcripts: Mapping[str, Transcript]) -> str:
    """Write the transcripts of one case; alike orchestrations still stand side by side."""
    parts = [f"== {name}\n{transcript.written()}" for name, transcript in transcripts.items()]
    return "\n".join(parts)


def golden_path(case: str, folder: Path = FOLDER) -> Path:
    """Return where the transcripts of a case are kept."""
    return folder / f"{case}.txt"


def golden_diff(case: str, now: str, folder: Path = FOLDER) -> str:
    """Return how `now` differs from what is kept; nothing when it does not."""
    path = golden_path(case, folder)
    kept = path.read_text(encoding="utf-8") if path.exists() else ""
    lines = difflib.unified_diff(
        kept.splitlines(),
        now.splitlines(),
        fromfile=f"{case}, golden",
        tofile=f"{case}, now",
        lineterm="",
        n=2,
    )
    return "\n".join(lines)
