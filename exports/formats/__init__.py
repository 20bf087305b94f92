"""The formats, one file each. A new one is registered in FORMATS; the tests pick it up."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from exports.cells import Format
from exports.formats.csv import CSV, CSV_PLAIN

_ALL: Final[tuple[Format, ...]] = (CSV, CSV_PLAIN)

FORMATS: Final[Mapping[str, Format]] = {one.name: one for one in _ALL}
