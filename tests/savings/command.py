"""The command behind `make savings`; imported once Django and the servers are up."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence

from django.conf import settings
from django.utils import timezone

from tests.savings.collection import CollectionInvalid, collection_read
from tests.savings.kept import kept_of, kept_write
from tests.savings.measure import BASELINE, MODES, Trio, measure, missed
from tests.savings.play import OFFLINE, Stage
from tests.savings.repeats import Again, again_measure, again_missed
from tests.savings.report import PAGE, page_written, report
from tests.savings.stage import stage_alone


def main() -> int:
    """Measure, print the report, and say what was missed."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.savings", description="Measure what stopping saves."
    )
    parser.add_argument("--short", action="store_true", help="the short form only")
    parser.add_argument("--update", action="store_true", help="keep the results, write the page")
    options = parser.parse_args()
    if complaint := _complaint(update=options.update, short=options.short):
        print(complaint, file=sys.stderr)
        return 2
    try:
        requests = [each for each in collection_read() if each.short or not options.short]
    except CollectionInvalid as error:
        print(error, file=sys.stderr)
        return 2
    print(f"{len(requests)} requests in the modes {', '.join(MODES)}; this takes some minutes.")
    with stage_alone() as stage:
        trios = measure(requests, stage, _told)
        again = _again(trios, stage) if _offline() else []
    text = report(trios, timezone.localdate(), again)
    print(f"\n{text}")
    wrong = [*missed(trios), *again_missed(again)]
    print("".join(f"\n{sentence}" for sentence in wrong), file=sys.stderr)
    if options.update and not wrong:
        kept_write(kept_of(trios))
        PAGE.write_text(page_written(PAGE.read_text("utf-8"), text), encoding="utf-8")
    return 1 if wrong else 0


def _complaint(*, update: bool, short: bool) -> str:
    if not _offline() and not settings.GROQ_API_KEY:
        return f"CHAT_MODEL is {settings.CHAT_MODEL}, and GROQ_API_KEY is not set."
    if update and (short or not _offline()):
        return "Only a whole run with the offline models is kept."
    return ""


def _again(trios: Sequence[Trio], stage: Stage) -> list[Again]:
    print(f"And once more in the mode {BASELINE}, with a model that repeats.", flush=True)
    return again_measure(trios, stage)


def _offline() -> bool:
    """A provider's model repeats or does not; only ours can be made to."""
    return str(settings.CHAT_MODEL).startswith(OFFLINE)


def _told(trio: Trio) -> None:
    calls = ", ".join(f"{mode} {trio[mode].model_calls}" for mode in MODES)
    print(f"  {trio[BASELINE].request.id}: model calls {calls}", flush=True)
