"""docs/adopting.md says what is so: its examples run, and its tables are those of the code."""

from __future__ import annotations

import doctest
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from agent_core.contract import REASONS, Artifact, completed
from agent_core.router import BATCH_RULES, STOP_RULES

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "adopting.md").read_text(encoding="utf-8")
FRAMEWORKS = {"django", "langchain", "langchain_core", "langgraph", "pydantic"}
BLOCKS = re.findall(r"^```(python|pycon)\n(.*?)^```$", PAGE, re.MULTILINE | re.DOTALL)

pytestmark = pytest.mark.usefixtures("quiet")


def _table(first: str) -> list[list[str]]:
    """Return the rows of the table whose header begins with this column."""
    found = re.search(rf"^\| {first} \|.*\n\|[ |-]+\n((?:\|.*\n)+)", PAGE, re.MULTILINE)
    assert found, first
    return [
        [cell.strip().strip("`") for cell in row.strip("|").split(" | ")]
        for row in found[1].splitlines()
    ]


def test_every_example_runs_and_gives_what_it_shows() -> None:
    names: dict[str, Any] = {"__name__": "adopting"}
    parser = doctest.DocTestParser()
    shown: list[str] = []
    for number, (kind, source) in enumerate(BLOCKS):
        if kind == "python":
            exec(compile(source, f"block {number}", "exec"), names)  # noqa: S102
            continue
        example = parser.get_doctest(source, names, f"block {number}", "docs/adopting.md", 0)
        runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS, verbose=False)
        runner.run(example, out=shown.append, clear_globs=False)
        names.update(example.globs)
    assert "".join(shown) == ""
    assert sum(kind == "pycon" for kind, _source in BLOCKS) == 8
    assert sum(kind == "python" for kind, _source in BLOCKS) == 4


def test_the_artifact_has_exactly_the_keys_and_types_of_the_page() -> None:
    shown = {key: kind for key, kind, _meaning in _table("key")}
    assert list(shown) == list(get_type_hints(Artifact))
    made = completed("parcel.recalled", stop=True)
    assert {key: type(value).__name__ for key, value in made.items()} == shown


def test_the_table_has_the_rules_in_order_and_says_which_stop() -> None:
    rows = _table("rule")
    assert tuple(rule for rule, _when, _then in rows) == BATCH_RULES
    assert {rule for rule, _when, then in rows if then == "stop"} == set(STOP_RULES)


def test_each_row_of_the_mapping_names_a_reason() -> None:
    reasons = {reason for _what, reason, _why in _table("what happened")}
    assert reasons == set(REASONS) - {"completed"}


def test_the_modes_are_those_that_can_be_set() -> None:
    source = (ROOT / "config" / "settings" / "agent.py").read_text(encoding="utf-8")
    setting = re.search(r'"STOP_MODE", "hard", \(([^)]*)\)', source)
    assert setting
    assert [mode for mode, *_rest in _table("mode")] == re.findall(r'"(\w+)"', setting[1])


def test_each_row_of_what_to_take_can_be_imported_with_the_rows_above_it(tmp_path: Path) -> None:
    for part, files, needs in _table("part"):
        for pattern in re.findall(r"agent_core/[\w/.*]+", files):
            found = list(ROOT.glob(pattern.rstrip("/")))
            assert found, pattern
            for source in found:
                _taken(source, tmp_path / source.relative_to(ROOT))
        names = [
            str(path.relative_to(tmp_path).with_suffix("")).replace("/", ".")
            for path in sorted(tmp_path.rglob("*.py"))
            if path.name != "__main__.py"
        ]
        script = f"import sys\nfor name in {names}: __import__(name)\n"
        if needs == "the standard library":
            script += "assert not {name.partition('.')[0] for name in sys.modules} & {FOREIGN}\n"
        script = script.replace(
            "{FOREIGN}", "{'langchain_core', 'langgraph', 'django', 'pydantic'}"
        )
        done = subprocess.run(
            [sys.executable, "-c", script],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, f"{part}: {done.stderr}"


def _taken(source: Path, target: Path) -> None:
    if source.is_dir():
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(source, target, dirs_exist_ok=True, ignore=ignored)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, target)


@pytest.mark.parametrize(
    "path", sorted(set(re.findall(r"`((?:agent_core|tests|docs)/[\w/.]*)`", PAGE)))
)
def test_what_the_page_names_exists(path: str) -> None:
    assert (ROOT / path).exists()


def test_the_links_lead_somewhere() -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", PAGE):
        assert (ROOT / "docs" / target).exists(), target
