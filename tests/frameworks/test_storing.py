"""What a checkpoint makes of the kinds of values that an artifact could hold.

Each test names the place of ours that stands on what it shows. A red test is no defect of ours: it
says that the named place must be looked at before the new version is taken.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.frameworks.bare import GENERATION

ROOT = Path(__file__).parents[2]

# A process of its own: the setting is read when the module is imported.
SCRIPT = """
import dataclasses, enum, json, sys, warnings
warnings.simplefilter("ignore")
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

class Reason(str, enum.Enum):
    FATAL = "fatal"

@dataclasses.dataclass
class Outcome:
    reason: str

class Other:
    pass

kinds = {
    "plain": {"reason": "fatal", "amounts": [500], "none": None},
    "enum": Reason.FATAL,
    "dataclass": Outcome("fatal"),
    "other": Other(),
}
serde, back = JsonPlusSerializer(), {}
for kind, value in kinds.items():
    try:
        found = serde.loads_typed(serde.dumps_typed(value))
    except TypeError:
        back[kind] = "refused"
    else:
        back[kind] = type(found).__name__ if found == value or kind != "plain" else "changed"
print(json.dumps(back))
"""


def _came_back(strict: bool) -> dict[str, Any]:
    environment = {**os.environ, "LANGGRAPH_STRICT_MSGPACK": "true" if strict else "false"}
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


@pytest.mark.parametrize("strict", [False, True], ids=["as it comes", "strict"])
def test_only_an_artifact_of_primitives_comes_back_as_it_was(strict: bool) -> None:
    """Relies: `agent_core/contract.py:Artifact`, a plain dict whose reason is a string.

    LangGraph 0.6 knows no strict reading.
    """
    back = _came_back(strict)
    tight = strict and GENERATION >= 1
    assert back["plain"] == "dict"
    assert back["enum"] == ("str" if tight else "Reason")
    assert back["dataclass"] == ("dict" if tight else "Outcome")
    assert back["other"] == "refused"
