"""The core on other generations of its frameworks, and the page that tells of them."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from collections.abc import Mapping
from datetime import date
from pathlib import Path

import pytest

from tests.conftest import FULL
from tests.house.pages import page, table
from tests.house.tree import ROOT
from tests.versions import __main__ as command
from tests.versions.running import NotBuilt, Report, results_read
from tests.versions.sets import SETS, SHOWN, VersionSet
from tests.versions.table import page_written, table_text

PAGE = "docs/versions.md"


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_the_core_is_green_on_the_other_generations() -> None:
    """In full in `make test-full`; else the sets that the lock does not hold, in short form."""
    asked = [*SETS] if FULL else ["a", "c", "--short"]
    done = subprocess.run(
        [sys.executable, "-m", "tests.versions", *asked],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    # A checkout without a network still runs all the rest and says so; in CI there is one.
    if done.returncode == command.NOT_BUILT and not os.environ.get("CI"):
        pytest.skip(f"the other generations cannot be installed here: {done.stdout.strip()}")
    assert done.returncode == 0, done.stdout


def test_no_set_names_a_file_that_is_not_there() -> None:
    for wanted in SETS.values():
        assert list(wanted.files())
    lost = VersionSet(name="x", requirements=(), patterns=("tests/core/test_gone*.py",))
    with pytest.raises(LookupError, match=r"Set x names tests/core/test_gone\*\.py"):
        list(lost.files())


def test_every_characterisation_test_runs_where_langchains_agents_are() -> None:
    every = {path.relative_to(ROOT).as_posix() for path in ROOT.glob("tests/frameworks/test_*.py")}
    for name in ("a", "b"):
        assert every <= set(SETS[name].files())


# Reading what a run wrote


LOG = """<testsuites><testsuite>
<testcase classname="tests.core.test_a" name="test_one" />
<testcase classname="tests.core.test_a.Group" name="test_two" />
<testcase classname="tests.core.test_b" name="test_three"><failure message="x" /></testcase>
<testcase classname="tests.core.test_c" name="test_four"><skipped message="y" /></testcase>
</testsuite></testsuites>"""


def test_a_skipped_test_and_a_file_without_a_passed_one_are_problems() -> None:
    counts, problems = results_read(LOG, [f"tests/core/test_{letter}.py" for letter in "abcd"])
    assert counts == {"passed": 2, "failed": 1, "skipped": 1}
    assert problems == [
        "tests.core.test_c.test_four was skipped, which hides a gap",
        "tests/core/test_b.py is named and none of its tests has passed",
        "tests/core/test_c.py is named and none of its tests has passed",
        "tests/core/test_d.py is named and none of its tests has passed",
    ]


def _report(name: str, *problems: str, **versions: str | None) -> Report:
    found: Mapping[str, str | None] = {"python": "3.11.7", **dict.fromkeys(SHOWN), **versions}
    return Report(
        name=name,
        versions=found,
        passed=7,
        failed=0,
        skipped=0,
        harness_cases=3,
        harness_mixes=4,
        install_seconds=11,
        tests_seconds=12,
        problems=problems,
    )


def test_the_command_is_red_when_one_set_is_and_says_why(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    told = {"a": _report("a"), "c": _report("c", "it broke")}
    monkeypatch.setattr(command, "set_run", lambda wanted, *_, **__: told[wanted.name])
    assert command.main(["a"]) == 0
    assert command.main(["a", "c"]) == command.RED
    assert "Set c: it broke" in capsys.readouterr().out


def test_a_set_that_cannot_be_installed_is_told_apart(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def not_built(*_: object, **options: object) -> Report:
        raise NotBuilt("no way to the packages")

    monkeypatch.setattr(command, "set_run", not_built)
    assert command.main(["a"]) == command.NOT_BUILT
    assert capsys.readouterr().err == "no way to the packages\n"


@pytest.mark.parametrize(("ends", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_end_while_a_set_is_installed_ends_all_that_runs_and_leaves_nothing(
    ends: signal.Signals, status: int, tmp_path: Path
) -> None:
    """As pip does, what is run begins another process, which fills the folder."""
    filling = (
        "import pathlib, signal, sys\n"
        "signal.signal(signal.SIGINT, signal.SIG_IGN)\n"
        "folder, told = map(pathlib.Path, sys.argv[1:])\n"
        "pipe = told.open('w')\n"
        "pipe.write('begun\\n')\n"
        "pipe.flush()\n"
        "for number in range(10**9):\n"
        "    (folder / str(number % 1000)).mkdir(parents=True, exist_ok=True)\n"
    )
    begins = (
        "import subprocess, sys\n"
        f"subprocess.Popen([sys.executable, '-c', {filling!r}, *sys.argv[1:]]).wait()\n"
    )
    told = tmp_path / "told"
    os.mkfifo(told)
    script = (
        "import runpy, sys\n"
        "from pathlib import Path\n"
        "from tests.versions import running\n"
        "def run(wanted, folder, **options):\n"
        f"    given = ('-c', {begins!r}, str(folder), {str(told)!r})\n"
        "    running._ran(Path(sys.executable), *given, seconds=60)\n"
        "running.set_run = run\n"
        "running.GRACE_SECONDS = 0.5\n"
        "sys.argv[1:] = ['a']\n"
        "runpy.run_module('tests.versions', run_name='__main__')\n"
    )
    with (
        subprocess.Popen(
            [sys.executable, "-c", script],
            cwd=ROOT,
            env={**os.environ, "TMPDIR": str(tmp_path)},
            stderr=subprocess.PIPE,
            text=True,
        ) as process,
        told.open() as pipe,
    ):
        assert pipe.readline() == "begun\n"
        process.send_signal(ends)
        _out, said = process.communicate()
        assert (process.returncode, said) == (status, "")
        assert not list(tmp_path.glob("cs-versions-*"))
        # Its end, for nobody is left who could write.
        assert pipe.read() == ""


def test_an_update_needs_every_set(capsys: pytest.CaptureFixture[str]) -> None:
    for wrong in (["a", "--update"], ["--short", "--update"], ["d"]):
        with pytest.raises(SystemExit) as ended:
            command.main(wrong)
        assert ended.value.code == 2
    assert "there is no set called d" in capsys.readouterr().err


def test_the_page_gets_the_results_between_its_marks_and_keeps_the_rest() -> None:
    before = page(PAGE)
    after = page_written(before, [_report("a", langchain="1.4.2")], date(2026, 1, 2))
    assert table(after, "Results") == [
        ["a", "3.11.7", "1.4.2", "–", "–", "–", "–", "–", "7", "0", "0", "3", "4"]
    ]
    assert "Taken on 2026-01-02" in after
    assert "a: 11 s to install, 12 s to run." in after
    assert before.split("## Before")[1] == after.split("## Before")[1]
    with pytest.raises(ValueError, match="no place for the results"):
        page_written("# Versions\n", [], date(2026, 1, 2))


def test_the_terminal_gets_the_seconds_too() -> None:
    head, row = table_text([_report("a")]).splitlines()
    assert head.split()[-4:] == ["install", "s", "tests", "s"]
    assert row.split()[-2:] == ["11", "12"]


# The page


def test_the_page_names_the_sets_and_what_they_install() -> None:
    rows = {row[0]: row[1].split() for row in table(page(PAGE), "Versions")}
    assert rows == {name: list(wanted.requirements) for name, wanted in SETS.items()}


def test_the_lock_holds_what_set_b_came_to_when_the_page_was_written() -> None:
    """What is newest changes outside; the page is where the last run says what it was."""
    lock = dict(re.findall(r"(?m)^([\w-]+)==([\w.]+)", page("requirements.lock")))
    rows = {row[0]: row for row in table(page(PAGE), "Results")}
    assert sorted(rows) == sorted(SETS)
    assert rows["b"][2 : 2 + len(SHOWN)] == [lock[name] for name in SHOWN]


def test_every_set_of_the_page_was_green() -> None:
    for row in table(page(PAGE), "Results"):
        passed, failed, skipped, cases, mixes = (int(cell) for cell in row[-5:])
        assert passed > 100
        assert cases > 40
        assert mixes > 1000
        assert (failed, skipped) == (0, 0)
