"""`make chaos`: conversations on real processes that are killed at random; servers of its own.

It ends with 1 when anything was lost, doubled, stuck, parked, overdue or wrong, and with 500 turns
or more when runs that were hit did not go on in time. `SEED=` repeats a run's conversations and its
faults, though not their timing.
"""

from __future__ import annotations

import argparse
import logging
import os
import secrets
import shutil
import sys
from typing import Final

from tests.chaos.servers import Servers
from tests.rig.servers import folder_make

TURNS: Final = 200


def start() -> int:
    """Start the servers, set Django up, and only then import what needs both."""
    parser = argparse.ArgumentParser(prog="python -m tests.chaos", description=__doc__)
    parser.add_argument("--turns", type=int, default=int(os.environ.get("TURNS") or TURNS))
    parser.add_argument("--seed", default=os.environ.get("SEED") or secrets.token_hex(4))
    parser.add_argument("--talk-turns", type=int, default=8, help="messages a conversation")
    parser.add_argument("--at-once", type=int, default=24, help="conversations at once")
    parser.add_argument("--rate", type=float, default=1.5, help="most messages a second")
    parser.add_argument("--turn-workers", type=int, default=3, help="workers for turns")
    parser.add_argument("--fault-turns", type=int, default=5, help="most turns between faults")
    parser.add_argument("--settle", type=float, default=120.0, help="seconds to come to rest")
    parser.add_argument("--untimed", action="store_true", help="tell recovery times, judge none")
    options = parser.parse_args()
    _environment()
    folder = folder_make("cs-chaos-")
    servers = Servers(folder)
    _say(f"seed {options.seed}: {options.turns} turns; logs in {folder / 'log'}")
    ended = 1
    try:
        servers.start()
        ended = _play(options, servers)
    finally:
        servers.stop()
        if ended == 0:
            shutil.rmtree(folder, ignore_errors=True)
        else:
            _say(f"Something was wrong with seed {options.seed}; the logs stay in {folder / 'log'}")
    return ended


def _environment() -> None:
    os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings.test"
    # Long enough in the model to be hit there.
    os.environ.setdefault("CHAT_MODEL", "offline:planner@50")
    os.environ["REFUND_DAILY_LIMIT"] = "EUR=1000000000"
    os.environ["BROKER_VISIBILITY_TIMEOUT_SECONDS"] = "60"
    for name in ("DATABASE_URL", "REDIS_URL", "SANDBOX_URL"):
        os.environ.pop(name, None)


def _play(options: argparse.Namespace, servers: Servers) -> int:
    import django

    django.setup()
    # What this process logs would hide the report; the parts keep logs of their own.
    logging.disable(logging.WARNING)

    from tests.chaos.play import Chaos, Plan

    plan = Plan(
        seed=options.seed,
        turns=options.turns,
        talk_turns=options.talk_turns,
        at_once=options.at_once,
        rate=options.rate,
        turn_workers=options.turn_workers,
        fault_turns=options.fault_turns,
        settle_seconds=options.settle,
        untimed=options.untimed,
    )
    return Chaos(plan, servers, _say).run()


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(start())
