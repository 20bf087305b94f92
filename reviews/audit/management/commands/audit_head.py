"""Print the head of the audit's chain, to be kept where the database's owner cannot write."""

from typing import Any

from django.core.management.base import BaseCommand

from reviews.audit.chain import chain_head


class Command(BaseCommand):
    """`audit_head`: prints POSITION:HASH TIME."""

    help = "Print the last link of the audit's chain as POSITION:HASH TIME."

    def handle(self, *args: Any, **options: Any) -> None:
        """Print one line."""
        head = chain_head()
        self.stdout.write(f"{head} {head.at.isoformat()}" if head.at else str(head))
