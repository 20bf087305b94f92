"""`make savings`: the whole collection in every stop mode, on servers of its own.

It ends with 1 when a target is missed. With `--update` the results are kept and the page written.
"""

from __future__ import annotations

import os
import sys


def start() -> int:
    """Start the servers, set Django up, and only then import what needs both."""
    # What a run logs would hide the report.
    os.environ.setdefault("LOG_LEVEL", "ERROR")

    import django

    import tests.services  # noqa: F401 - starts the servers

    django.setup()

    from tests.savings.command import main

    return main()


if __name__ == "__main__":
    sys.exit(start())
