"""The command line of the harness: play cases and mixes, or report on an adopter's tools."""

from __future__ import annotations

import argparse
import logging
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from agent_core.errors import ContractBroken, CountersignError
from agent_core.harness.cases import CASES, Case
from agent_core.harness.golden import (
    FOLDER,
    golden_diff,
    golden_text,
    golden_update,
    goldens_left_over,
)
from agent_core.harness.mixes import Mix, all_problems, mixes
from agent_core.harness.play import ORCHESTRATIONS, played
from agent_core.harness.tools_report import tools_report

PASSED: Final = 0
FAILED: Final = 1
UNKNOWN: Final = 2
UNPROVED: Final = 3
INTERRUPTED: Final = 130

_SHOWN: Final = 20

_DESCRIPTION: Final = """\
Play forced outcomes through every orchestration there is, without a network, a
database or a model, and compare what happened with what is right:

  cases   about sixty courses of events, each with a golden transcript beside
          this program: path of nodes, model calls, replies, rule and final text
  mixes   one, two and three parallel calls in every order of calling, finishing
          first to last and last to first, held against the table of the rules;
          one and two of them also in the other stop modes and with a limit used
          up, there in one order
  tools   your own tools: which of them break the contract, and what to do; what
          a tool returns is proved by the examples that call it, and by nothing else
"""
_EPILOG: Final = """\
examples:
  python -m agent_core.harness                       all cases, and the mixes
  python -m agent_core.harness --all                 and every mix of three
  python -m agent_core.harness receipt twin --show   two cases, with transcripts
  python -m agent_core.harness --update              rewrite the goldens
  python -m agent_core.harness --tools shop.tools:TOOLS
  python -m agent_core.harness --tools shop.tools:TOOLS --examples shop.tools:EXAMPLES

exit status: 0 all right, 1 something is not, 2 nothing of that name,
3 a tool that no example has called, or that raised in each of them, so that
nothing is proved of it, 130 interrupted
"""


def main(arguments: Sequence[str] | None = None, folder: Path = FOLDER) -> int:
    """Run one command.

    Return 0 when all is right, 1 when something is not, 2 when there is nothing of a name, 3 when
    nothing is wrong but no call of a tool came to an outcome, and 130 when it was interrupted.
    """
    parser = _parser()
    chosen = parser.parse_args(arguments)
    if chosen.tools is None and (chosen.examples, chosen.context) != (None, None):
        parser.error("--examples and --context say how to call the tools of --tools")
    if chosen.list:
        sys.stdout.write("".join(f"{case.name}\n" for case in CASES))
        return PASSED
    # Probes break on purpose; their tracebacks would drown what is wrong.
    logging.disable(logging.CRITICAL)
    try:
        if chosen.tools is not None:
            return _tools(chosen)
        return _cases(chosen, folder)
    except ContractBroken as error:
        sys.stderr.write(f"A tool breaks the contract: {error}\n")
        return FAILED
    except CountersignError as error:
        sys.stderr.write(f"{error}\n")
        return UNKNOWN
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        logging.disable(logging.NOTSET)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m agent_core.harness",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "names", nargs="*", metavar="case", help="cases to play; without a name all, and the mixes"
    )
    parser.add_argument("--list", action="store_true", help="name the cases and end")
    parser.add_argument("--show", action="store_true", help="print the transcripts too")
    parser.add_argument("--update", action="store_true", help="rewrite the golden transcripts")
    parser.add_argument(
        "--all",
        action="store_true",
        help="play every mix of three, also of probes that mean the same to the table",
    )
    parser.add_argument("--jobs", type=_jobs, metavar="N", help="processes for the mixes")
    parser.add_argument("--tools", metavar="MODULE:NAME", help="report on these tools instead")
    parser.add_argument(
        "--examples",
        metavar="MODULE:NAME",
        help="example calls that are executed: a mapping of tool name to a list of arguments",
    )
    parser.add_argument(
        "--context",
        metavar="MODULE:NAME",
        help="a function that returns the RunContext to call them in; else one with their right",
    )
    return parser


def _jobs(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 64:
        raise argparse.ArgumentTypeError(f"{text!r} is no number from 1 to 64")
    return int(text)


def _cases(chosen: argparse.Namespace, folder: Path) -> int:
    unknown = sorted(set(chosen.names) - {case.name for case in CASES})
    if unknown:
        sys.stderr.write(f"There is no case called {', '.join(unknown)}. --list names them all.\n")
        return UNKNOWN
    cases = [case for case in CASES if not chosen.names or case.name in chosen.names]
    differing = [case.name for case in cases if not _as_kept(case, chosen, folder)]
    sys.stdout.write(_summary(len(cases), differing, updated=chosen.update))
    wrong = bool(differing) and not chosen.update
    if not chosen.names and (left := goldens_left_over([case.name for case in CASES], folder)):
        sys.stdout.write(f"No case is compared with {', '.join(left)}. Delete what is left over.\n")
        wrong = True
    if not chosen.names and not chosen.update:
        every = mixes(every_triple=chosen.all)
        wrong = not _mixes_right(every, chosen.jobs) or wrong
    return FAILED if wrong else PASSED


def _as_kept(case: Case, chosen: argparse.Namespace, folder: Path) -> bool:
    now = {name: played(case, play) for name, play in ORCHESTRATIONS.items()}
    difference = golden_diff(case.name, now, folder)
    if chosen.show:
        sys.stdout.write(f"# {case.name}\n{golden_text(now)}\n")
    if difference:
        sys.stdout.write(f"{difference}\n\n")
    if difference and chosen.update:
        golden_update(case.name, now, folder)
    return not difference


def _summary(total: int, differing: list[str], *, updated: bool) -> str:
    played_on = f"{_counted(total, 'case')} on {' and '.join(ORCHESTRATIONS)}"
    if not differing:
        return f"{played_on}: all as kept.\n"
    verb = "rewritten" if updated else "not as kept"
    return f"{played_on}: {len(differing)} {verb}: {', '.join(differing)}.\n"


def _mixes_right(every: Sequence[Mix], jobs: int | None) -> bool:
    sys.stdout.write(f"{len(every)} mixes on {' and '.join(ORCHESTRATIONS)}: ")
    sys.stdout.flush()
    problems = all_problems(every, jobs)
    if not problems:
        sys.stdout.write("all as the table says.\n")
        return True
    sys.stdout.write(f"{_counted(len(problems), 'difference')}.\n")
    sys.stdout.write("".join(f"  {problem}\n" for problem in problems[:_SHOWN]))
    if len(problems) > _SHOWN:
        sys.stdout.write(f"  and {len(problems) - _SHOWN} more.\n")
    return False


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def _tools(chosen: argparse.Namespace) -> int:
    report = tools_report(chosen.tools, chosen.examples, chosen.context)
    sys.stdout.write(report.written())
    if report.kept:
        return PASSED
    return FAILED if report.broken else UNPROVED


if __name__ == "__main__":
    sys.exit(main())
