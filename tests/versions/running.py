"""Build one environment, run the tests and the harness in it, and say what came of it."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import time
import xml.etree.ElementTree as ET
from collections import Counter
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from tests.versions.sets import ROOT, SHOWN, TOOLS, VersionSet

INSTALL_SECONDS: Final = 400
TESTS_SECONDS: Final = 900
GRACE_SECONDS: Final = 5
# What would let a test of the core find a database, a key, another plugin or another package.
_KEPT_OUT: Final = re.compile(
    r"^(COUNTERSIGN_|DATABASE_|DJANGO_|GROQ_|LANG(CHAIN|GRAPH|SMITH)_|PYTEST_|PYTHON|REDIS_|VIRTUAL_)"
)
HARNESS: Final = ("-m", "agent_core.harness")
_PLAYED: Final = re.compile(r"(?m)^(\d+) (cases|mixes) on .*: all as ")
_FACTS: Final = """
import json, platform, sys
from importlib.metadata import PackageNotFoundError, version
def found(name):
    try:
        return version(name)
    except PackageNotFoundError:
        return None
names = {name: found(name) for name in sys.argv[1:]}
print(json.dumps({"python": platform.python_version(), **names}))
"""


class NotBuilt(Exception):
    """The environment could not be built; the message is the end of what pip said."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What came of one set. `problems` is empty when all is well; `seconds` are rounded."""

    name: str
    versions: Mapping[str, str | None]
    passed: int
    failed: int
    skipped: int
    harness_cases: int
    harness_mixes: int
    install_seconds: int
    tests_seconds: int
    problems: tuple[str, ...]


def set_run(wanted: VersionSet, folder: Path, *, short: bool = False) -> Report:
    """Install the set into a fresh environment under `folder` and run everything it names.

    The short form leaves out the mixes of the harness: they take longer than all the rest.

    Raises:
        NotBuilt: pip could not install it.
    """
    files = list(wanted.files())
    began = time.monotonic()
    python = _built(wanted, folder)
    installed = time.monotonic()
    counts, problems = _tested(python, files, folder / f"{wanted.name}.xml")
    played, trouble = _harness(python, short=short)
    return Report(
        name=wanted.name,
        versions=json.loads(_ran(python, "-c", _FACTS, *SHOWN, seconds=60).stdout),
        passed=counts["passed"],
        failed=counts["failed"],
        skipped=counts["skipped"],
        harness_cases=played["cases"],
        harness_mixes=played["mixes"],
        install_seconds=round(installed - began),
        tests_seconds=round(time.monotonic() - installed),
        problems=(*problems, *trouble),
    )


def _built(wanted: VersionSet, folder: Path) -> Path:
    """Make the environment and return its interpreter. The pip of ours installs into it."""
    home = folder / wanted.name
    own = Path(sys.executable)
    _ran(own, "-m", "venv", "--clear", "--without-pip", str(home), seconds=60)
    python = home / "bin" / "python"
    try:
        done = _ran(
            own,
            *("-m", "pip", "--python", str(python), "install", "--quiet", "--no-input"),
            *("--disable-pip-version-check", "--no-compile"),
            *(*wanted.requirements, *TOOLS),
            seconds=INSTALL_SECONDS,
        )
    except subprocess.TimeoutExpired:
        raise NotBuilt(f"Set {wanted.name}: pip took {INSTALL_SECONDS} seconds.") from None
    if done.returncode:
        raise NotBuilt(f"Set {wanted.name} could not be installed:\n{_end(done.stderr)}")
    return python


def _tested(python: Path, files: list[str], log: Path) -> tuple[Counter[str], list[str]]:
    here = Path(__file__).parent
    done = _ran(
        python,
        *("-m", "pytest", "-c", str(here / "pytest.ini"), "--rootdir", str(ROOT)),
        # Leaves out tests/conftest.py, which needs Django.
        *("--confcutdir", str(here), f"--junitxml={log}"),
        *files,
        seconds=TESTS_SECONDS,
    )
    if not log.is_file():
        return Counter(), [f"pytest ended with {done.returncode}:\n{_end(done.stderr)}"]
    counts, problems = results_read(log.read_text(encoding="utf-8"), files)
    if done.returncode:
        problems.append(f"pytest ended with {done.returncode}:\n{_end(done.stdout)}")
    return counts, problems


def results_read(log: str, files: Iterable[str]) -> tuple[Counter[str], list[str]]:
    """Count what pytest wrote, and name each file of which no test has passed, and each skip."""
    counts: Counter[str] = Counter()
    passed: list[str] = []
    problems: list[str] = []
    for case in ET.fromstring(log).iter("testcase"):  # noqa: S314 - written by our own pytest
        where = f"{case.get('classname')}.{case.get('name')}"
        kinds = {part.tag for part in case}
        if kinds & {"failure", "error"}:
            counts["failed"] += 1
        elif "skipped" in kinds:
            counts["skipped"] += 1
            problems.append(f"{where} was skipped, which hides a gap")
        else:
            counts["passed"] += 1
            passed.append(where)
    for file in files:
        module = file.removesuffix(".py").replace("/", ".")
        if not any(where.startswith(f"{module}.") for where in passed):
            problems.append(f"{file} is named and none of its tests has passed")
    return counts, problems


def _harness(python: Path, *, short: bool) -> tuple[Counter[str], list[str]]:
    named: list[str] = []
    if short:
        named = _ran(python, *HARNESS, "--list", seconds=60).stdout.split()
    done = _ran(python, *HARNESS, *named, seconds=TESTS_SECONDS)
    played = Counter({kind: int(number) for number, kind in _PLAYED.findall(done.stdout)})
    if done.returncode or not played["cases"] or (not short and not played["mixes"]):
        said = _end(done.stdout + done.stderr)
        return played, [f"the harness ended with {done.returncode}:\n{said}"]
    return played, []


def _ran(python: Path, *arguments: str, seconds: int) -> subprocess.CompletedProcess[str]:
    """Run something in the project, in an environment that knows nothing of the product's."""
    clean = {name: value for name, value in os.environ.items() if not _KEPT_OUT.match(name)}
    with subprocess.Popen(
        [str(python), *arguments],
        cwd=ROOT,
        env=clean,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        # A group of its own: pip and pytest begin processes that are to end with them.
        start_new_session=True,
    ) as process:
        try:
            out, said = process.communicate(timeout=seconds)
        except BaseException:
            _group_ended(process)
            raise
    return subprocess.CompletedProcess(process.args, process.returncode, out, said)


def _group_ended(process: subprocess.Popen[str]) -> None:
    """End it with all that it began, politely first: pip clears its own folder away then."""
    for way in (signal.SIGINT, signal.SIGKILL):
        with suppress(ProcessLookupError):  # All of them have ended already.
            os.killpg(process.pid, way)
        with suppress(subprocess.TimeoutExpired):  # The next way is harder.
            # Returns when nothing of the group writes to it any more.
            process.communicate(timeout=GRACE_SECONDS)


def _end(said: str) -> str:
    return "\n".join(said.strip().splitlines()[-30:])
