"""Golden transcripts: one text file for each case, with one section for each orchestration."""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from agent_core.errors import CountersignError
from agent_core.harness.transcript import Transcript

FOLDER: Final = Path(__file__).parent / "golden"
SECTIONS: Final = ("graph", "middleware")
"""Every orchestration there is, in the order in which a golden keeps them."""

_MARK: Final = "== "


class GoldenBroken(CountersignError):
    """A golden holds what no orchestration has written."""

    code = "harness.golden_broken"


def golden_path(case: str, folder: Path = FOLDER) -> Path:
    """Return where the transcripts of a case are kept."""
    return folder / f"{case}.txt"


def golden_kept(case: str, folder: Path = FOLDER) -> dict[str, str]:
    """Return what is kept of a case, by orchestration; nothing when it was never played.

    Raises:
        GoldenBroken: a section bears no name of an orchestration.
    """
    path = golden_path(case, folder)
    if not path.exists():
        return {}
    kept: dict[str, str] = {}
    for section in f"\n{path.read_text(encoding='utf-8')}".split(f"\n{_MARK}")[1:]:
        name, _end, text = section.partition("\n")
        if name not in SECTIONS or name in kept:
            raise GoldenBroken(f"{path.name} has an unknown section or one twice: {name!r}.")
        kept[name] = text.rstrip("\n") + "\n"
    return kept


def golden_diff(case: str, now: Mapping[str, Transcript], folder: Path = FOLDER) -> str:
    """Return how what was played differs from what is kept; nothing when it does not.

    Only the orchestrations that were played are compared.

    Raises:
        GoldenBroken: what is kept cannot be read.
    """
    kept = golden_kept(case, folder)
    lines = difflib.unified_diff(
        _text({name: kept[name] for name in now if name in kept}).splitlines(),
        golden_text(now).splitlines(),
        fromfile=f"{case}, golden",
        tofile=f"{case}, now",
        lineterm="",
        n=3,
    )
    return "\n".join(lines)


def golden_update(case: str, now: Mapping[str, Transcript], folder: Path = FOLDER) -> None:
    """Keep what was played; what another installation has played stays.

    Raises:
        GoldenBroken: what is kept cannot be read.
    """
    written = {name: transcript.written() for name, transcript in now.items()}
    folder.mkdir(exist_ok=True)
    text = _text({**golden_kept(case, folder), **written})
    golden_path(case, folder).write_text(text, encoding="utf-8")


def golden_text(now: Mapping[str, Transcript]) -> str:
    """Write the transcripts of one case; alike orchestrations still stand side by side."""
    return _text({name: transcript.written() for name, transcript in now.items()})


def _text(sections: Mapping[str, str]) -> str:
    return "\n".join(f"{_MARK}{name}\n{sections[name]}" for name in SECTIONS if name in sections)
