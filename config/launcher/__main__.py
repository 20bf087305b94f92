"""Entry point of `python -m config.launcher`: one sentence and exit code 1 when it cannot start."""

import sys

from config.launcher.interrupt import Interrupt, Stopped
from config.launcher.problems import CannotStart
from config.launcher.product import run


def main() -> int:
    """Run the product until it is told to stop."""
    interrupt = Interrupt()
    interrupt.listen()
    try:
        return run(interrupt)
    except CannotStart as problem:
        print(f"Countersign cannot start: {problem}", file=sys.stderr, flush=True)
        return 1
    except Stopped:
        return interrupt.exit_code


if __name__ == "__main__":
    sys.exit(main())
