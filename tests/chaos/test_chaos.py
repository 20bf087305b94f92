"""Chaos as a test: short by default, in full length in `make test-full`."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Final

import pytest

ROOT: Final = Path(__file__).parents[2]
WRONG: Final = (
    "lost",
    "doubled",
    "stuck",
    "parked",
    "wrong ledger rows",
    "wrong transcripts",
    "overdue",
)


def _chaos(seconds: float, *arguments: str) -> str:
    """Run it as `make chaos` does, on servers of its own; return what it printed."""
    variables = {key: value for key, value in os.environ.items() if key not in ("TURNS", "SEED")}
    # In a group of its own: whatever happens here, nothing of it is left behind.
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.chaos", *arguments],
        cwd=ROOT,
        env=variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        printed, _ = process.communicate(timeout=seconds)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGINT)
        printed, _ = process.communicate(timeout=60)
        pytest.fail(f"chaos did not come to its end:\n{printed}")
    assert process.returncode == 0, printed
    for name in WRONG:
        assert re.search(rf"^{name} 0$", printed, re.MULTILINE), printed
    return printed


def _kills(printed: str) -> dict[str, int]:
    found = re.search(r"^kills: (.*)$", printed, re.MULTILINE)
    assert found is not None, printed
    pairs = (pair.rpartition(" ") for pair in found[1].split(", "))
    return {kind: int(count) for kind, _, count in pairs}


@pytest.mark.timeout(300)
def test_forty_turns_survive_kills_of_several_kinds() -> None:
    # Short conversations, many at once: nobody waits long for one that is hit.
    size = ("--turns", "40", "--talk-turns", "2", "--at-once", "20", "--rate", "4")
    force = ("--turn-workers", "2", "--fault-turns", "2", "--seed", "short90")
    kills = _kills(_chaos(280, *size, *force))
    assert sum(kills.values()) >= 6, kills
    assert len(kills) >= 4, kills


@pytest.mark.full
@pytest.mark.timeout(1800)
def test_five_hundred_turns_survive_a_kill_in_every_seven() -> None:
    # How soon runs go on says how busy the machine is: no matter of the tests.
    kills = _kills(_chaos(1700, "--turns", "500", "--untimed"))
    assert sum(kills.values()) >= 70, kills
    assert len(kills) >= 9, kills
