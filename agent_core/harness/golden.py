"""Golden transcripts: one text file for each case, with one section for each orchestration."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
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


class GoldenNoText(GoldenBroken):
    """A golden is no text at all."""

    code = "harness.golden_no_text"


def golden_path(case: str, folder: Path = FOLDER) -> Path:
    """Return where the transcripts of a case are kept."""
    return folder / f"{case}.txt"


def golden_kept(case: str, folder: Path = FOLDER) -> dict[str, str]:
    """Return what is kept of a case, by orchestration; nothing when it was never played.

    Raises:
        GoldenBroken: a section bears no name of an orchestration.
        GoldenNoText: it is not UTF-8.
    """
    path = golden_path(case, folder)
    if not path.exists():
        return {}
    try:
        text = path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise GoldenNoText(
            f"{path.name} is no UTF-8 text from byte {error.start} on; --update writes it anew."
        ) from None
    kept: dict[str, str] = {}
    for section in f"\n{text}".split(f"\n{_MARK}")[1:]:
        name, _end, text = section.partition("\n")
        if name not in SECTIONS or name in kept:
            raise GoldenBroken(f"{path.name} has an unknown section or one twice: {name!r}.")
        kept[name] = text.rstrip("\n") + "\n"
    return kept


def golden_diff(case: str, now: Mapping[str, Transcript], folder: Path = FOLDER) -> str:
    """Return how what was played differs from what is kept; nothing when it does not.

    Only the orchestrations that were played are compared.

    Raises:
        GoldenBroken: what is kept was not written by any of them.
    """
    try:
        kept = golden_kept(case, folder)
    except GoldenNoText as error:
        return str(error)
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
    """Keep what was played; what another installation has played stays, if it can be read.

    Raises:
        GoldenBroken: what is kept was not written by any of them.
    """
    written = {name: transcript.written() for name, transcript in now.items()}
    folder.mkdir(exist_ok=True)
    try:
        kept = golden_kept(case, folder)
    except GoldenNoText:
        kept = {}
    text = _text({**kept, **written})
    golden_path(case, folder).write_text(text, encoding="utf-8")


def goldens_left_over(cases: Iterable[str], folder: Path = FOLDER) -> list[str]:
    """Return the files of goldens that no case is compared with."""
    used = {golden_path(case, folder).name for case in cases}
    return sorted({path.name for path in folder.glob("*.txt")} - used)


def golden_text(now: Mapping[str, Transcript]) -> str:
    """Write the transcripts of one case; alike orchestrations still stand side by side."""
    return _text({name: transcript.written() for name, transcript in now.items()})


def _text(sections: Mapping[str, str]) -> str:
    return "\n".join(f"{_MARK}{name}\n{sections[name]}" for name in SECTIONS if name in sections)
