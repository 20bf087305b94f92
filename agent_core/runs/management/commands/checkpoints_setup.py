"""Create or migrate the checkpoint tables; a step of every deployment, next to `migrate`."""

from typing import Any

from django.core.management.base import BaseCommand

from agent_core.checkpoints import setup
from agent_core.runs.work import conninfo


class Command(BaseCommand):
    """Set the checkpoint tables up."""

    help = "Create or migrate the tables that hold the runs' checkpoints."

    def handle(self, *args: Any, **options: Any) -> None:
        """Create what is missing; a second run changes nothing."""
        setup(conninfo())
        self.stdout.write("The checkpoint tables are ready.")
