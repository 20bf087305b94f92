"""Compare our books with the processor's: a line for each finding, and whether to look."""

from __future__ import annotations

import argparse
import json
import sys
from datetime import date, datetime, time, timedelta
from typing import Any, Final

from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone
from django.utils.translation import gettext as _

from payments.processor.comparing import Finding
from payments.processor.models import Reconciliation
from payments.processor.services_reconcile import reconcile
from payments.processor.states import Result
from payments.processor.wording import finding_sentence, total_sentence

EXITS: Final = {Result.LOOK: 1, Result.SILENT: 2}
LONGEST_DAYS: Final = 3700


def day_read(text: str) -> date:
    """Read a day like 2026-04-01.

    Raises: argparse.ArgumentTypeError when it is none.
    """
    try:
        return date.fromisoformat(text)
    except ValueError:
        raise argparse.ArgumentTypeError("A day looks like 2026-04-01.") from None


class Command(BaseCommand):
    """`reconcile`: 0 when both sides agree, 1 when somebody must look, 2 when nobody can say."""

    help = "Compare our books with the processor's; exit 1 where a person must look."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take whole days in the desk's time zone, both included."""
        parser.add_argument("--from", dest="first", type=day_read, metavar="DATE")
        parser.add_argument("--to", dest="last", type=day_read, metavar="DATE")
        parser.add_argument("--apply", action="store_true", help="put right what is safe")
        parser.add_argument("--json", action="store_true", help="one JSON object a line")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print each finding as it comes, the totals, and a line that sums up.

        Raises: CommandError when the days are no period.
        """
        since, until = _period(options["first"], options["last"])
        say = self._data if options["json"] else self._sentence
        row = reconcile(since=since, until=until, apply=options["apply"], tell=say)
        if options["json"]:
            self.stdout.write(json.dumps(_summary(row)))
        else:
            for total in row.totals:
                self.stdout.write(total_sentence(total))
            self.stdout.write(_summing(row))
        code = EXITS.get(Result(row.result), 0)
        if code:
            sys.exit(code)

    def _sentence(self, finding: Finding) -> None:
        self.stdout.write(finding_sentence(finding.as_data()))

    def _data(self, finding: Finding) -> None:
        said = {"event": "finding", **finding.as_data()}
        self.stdout.write(json.dumps(said | {"sentence": finding_sentence(finding.as_data())}))


def _period(first: date | None, last: date | None) -> tuple[datetime, datetime]:
    today = timezone.localdate()
    end = last or today - timedelta(days=1)
    begin = first or last or end - timedelta(days=1)
    if not begin <= end <= today or (end - begin).days > LONGEST_DAYS:
        raise CommandError(_("--from and --to name days, the earlier first and none to come."))
    return _midnight(begin), _midnight(end + timedelta(days=1))


def _midnight(day: date) -> datetime:
    return timezone.make_aware(datetime.combine(day, time.min))


def _summary(row: Reconciliation) -> dict[str, Any]:
    return {
        "event": "end",
        "result": row.result,
        "since": row.since.isoformat(),
        "until": row.until.isoformat(),
        "compared": row.compared,
        "counts": row.counts,
        "totals": row.totals,
        "open": row.open_findings,
        "repaired": row.repaired,
        "id": row.pk,
    }


def _summing(row: Reconciliation) -> str:
    if row.result == Result.SILENT:
        return _("The processor gave no certain answer, so nothing can be said of the rest.")
    return _(
        "{compared} lines compared, {repaired} put right, {open} for somebody to look at: {result}."
    ).format(
        compared=row.compared,
        repaired=row.repaired,
        open=row.open_findings,
        result=row.get_result_display(),
    )
