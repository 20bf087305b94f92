"""The command line of the harness: print every case, or compare with and rewrite the goldens."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence

from agent_core.harness.cases import CASES, Case
from agent_core.harness.golden import FOLDER, golden_diff, golden_path, golden_text
from agent_core.harness.play import ORCHESTRATIONS, played


def main(arguments: Sequence[str] | None = None) -> int:
    """Play the cases; return 0 when all are as kept, 1 when one differs, 2 when none is known."""
    parser = argparse.ArgumentParser(
        prog="python -m agent_core.harness",
        description="Play forced outcomes through both orchestrations and compare with goldens.",
    )
    parser.add_argument("names", nargs="*", help="cases to play; all when none is named")
    parser.add_argument("--update", action="store_true", help="rewrite the golden transcripts")
    parser.add_argument("--show", action="store_true", help="print the transcripts too")
    chosen = parser.parse_args(arguments)
    cases = [case for case in CASES if not chosen.names or case.name in chosen.names]
    unknown = sorted(set(chosen.names) - {case.name for case in CASES})
    if unknown:
        sys.stderr.write(f"There is no case called {', '.join(unknown)}.\n")
        return 2
    # Probes break on purpose; their tracebacks would drown the transcripts.
    logging.disable(logging.CRITICAL)
    try:
        differing = [case.name for case in cases if not _as_kept(case, chosen)]
    finally:
        logging.disable(logging.NOTSET)
    sys.stdout.write(_summary(len(cases), differing, updated=chosen.update))
    return 1 if differing and not chosen.update else 0


def _as_kept(case: Case, chosen: argparse.Namespace) -> bool:
    text = golden_text({name: played(case, play) for name, play in ORCHESTRATIONS.items()})
    difference = golden_diff(case.name, text)
    if chosen.show:
        sys.stdout.write(f"# {case.name}\n{text}\n")
    if difference:
        sys.stdout.write(f"{difference}\n\n")
    if difference and chosen.update:
        FOLDER.mkdir(exist_ok=True)
        golden_path(case.name).write_text(text, encoding="utf-8")
    return not difference


def _summary(total: int, differing: list[str], *, updated: bool) -> str:
    if not differing:
        return f"{total} cases, all as kept.\n"
    verb = "rewritten" if updated else "not as kept"
    return f"{total} cases, {len(differing)} {verb}: {', '.join(differing)}.\n"


if __name__ == "__main__":
    sys.exit(main())
