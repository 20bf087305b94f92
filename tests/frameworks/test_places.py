"""Every characterisation test names a place of ours that stands on it, and the place is there."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TOLD_OF = re.compile(r"`([\w/]+\.py):([\w.]+)`")
OURS = {"test_places.py", "test_returning_directly.py"}
PAGES = sorted(path for path in Path(__file__).parent.glob("test_*.py") if path.name not in OURS)


def places_named(source: str) -> Iterator[tuple[str, list[tuple[str, str]]]]:
    """Yield each test of a module with the places (file, name) that its docstring names."""
    for item in ast.parse(source).body:
        if isinstance(item, ast.FunctionDef) and item.name.startswith("test_"):
            yield item.name, TOLD_OF.findall(ast.get_docstring(item) or "")


def defines(source: str, name: str) -> bool:
    """Tell whether a module defines this function, class, method or constant."""
    body: list[ast.stmt] = ast.parse(source).body
    for part in name.split("."):
        found = [item for item in body if part in _names(item)]
        if not found:
            return False
        body = list(getattr(found[0], "body", []))
    return True


def _names(item: ast.stmt) -> set[str]:
    if isinstance(item, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return {item.name}
    if isinstance(item, ast.Assign):
        return {each.id for each in item.targets if isinstance(each, ast.Name)}
    if isinstance(item, ast.AnnAssign) and isinstance(item.target, ast.Name):
        return {item.target.id}
    return set()


@pytest.mark.parametrize("path", PAGES, ids=[path.stem for path in PAGES])
def test_every_test_of_a_framework_names_a_place_of_ours_that_is_there(path: Path) -> None:
    named = dict(places_named(path.read_text(encoding="utf-8")))
    assert named
    assert [test for test, places in named.items() if not places] == []
    missing = [
        f"{test}: {file}:{name}"
        for test, places in named.items()
        for file, name in places
        if not (ROOT / file).is_file()
        or not defines((ROOT / file).read_text(encoding="utf-8"), name)
    ]
    assert missing == []


def test_a_place_is_found_by_its_full_name_only() -> None:
    source = "A = 1\n\nclass B:\n    def c(self):\n        pass\n"
    assert [defines(source, name) for name in ("A", "B", "B.c")] == [True] * 3
    assert [defines(source, name) for name in ("c", "B.d", "A.b", "C")] == [False] * 4
