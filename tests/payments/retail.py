"""Where the public retail data set lies: COUNTERSIGN_RETAIL_DIR, else beside the project."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

import pytest

_NAMED: Final = os.environ.get("COUNTERSIGN_RETAIL_DIR")
_BESIDE: Final = Path(__file__).resolve().parents[3] / "shared" / "data" / "tau2-retail"
FOLDER: Final = Path(_NAMED) if _NAMED else _BESIDE

# The data set is not part of the project, so a checkout without it skips and says so.
needs_data = pytest.mark.skipif(
    not (FOLDER / "db.json").is_file(),
    reason="the retail data set (db.json) is not here; COUNTERSIGN_RETAIL_DIR names its folder",
)
