"""Check the whole audit against its chain; one line per finding, exit code 1 when there is one."""

import argparse
import re
import sys
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from reviews.audit.chain import Head
from reviews.audit.verifying import Report, chain_verify

_HEAD = re.compile(r"(?P<position>[0-9]{1,18}):(?P<digest>[0-9a-f]{64})")


def head_read(text: str) -> Head:
    """Read what `audit_head` prints, with or without its time.

    Raises: argparse.ArgumentTypeError when it is no such line.
    """
    match = _HEAD.fullmatch(text.split(maxsplit=1)[0] if text.split() else "")
    if match is None:
        raise argparse.ArgumentTypeError("A head looks like POSITION:HASH, as audit_head prints.")
    return Head(int(match["position"]), match["digest"])


class Command(BaseCommand):
    """`verify_audit`: finds a changed, missing, inserted or reordered row, and a cut end."""

    help = "Check every audit entry against the chain; exit 1 when something was changed."

    def add_arguments(self, parser: CommandParser) -> None:
        """Take a head that was kept elsewhere; without one the file of the settings is asked."""
        parser.add_argument("--head", type=head_read, metavar="POSITION:HASH")

    def handle(self, *args: Any, **options: Any) -> None:
        """Print the findings as they come, then what was seen.

        Raises: CommandError when the file of the head cannot be read.
        """
        expected: Head | None = options["head"] or _head_kept()
        report, found = Report(), 0
        for sentence in chain_verify(report, expected):
            found += 1
            self.stdout.write(sentence)
        if report.waiting:
            self.stdout.write(f"{report.waiting} not chained yet: younger than a minute.")
        self.stdout.write(
            f"{report.head.position} links checked, {found} findings. Head: {report.head}"
        )
        if expected is None:
            self.stdout.write("No head was given, so an end that was cut off cannot be seen.")
        if found:
            sys.exit(1)


def _head_kept() -> Head | None:
    """Read the file before the database, which may only grow meanwhile."""
    path = settings.AUDIT_HEAD_FILE
    if not path or not Path(path).exists():
        return None
    try:
        return head_read(Path(path).read_text("ascii"))
    except (OSError, ValueError, argparse.ArgumentTypeError) as error:
        raise CommandError(f"The head in {path} cannot be read: {error}") from None
