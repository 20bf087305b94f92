"""The harness: both orchestrations do as the goldens say, agree, and follow the table."""

from __future__ import annotations

import itertools
import logging
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_core.harness import __main__ as command
from agent_core.harness.cases import AFTERWARDS, CASES, Case, batch
from agent_core.harness.golden import golden_diff, golden_path, golden_text
from agent_core.harness.play import ORCHESTRATIONS, played

ROOT = Path(__file__).resolve().parents[2]
# What each probe means for the table, by the design's words and not by its code.
LETTERS = {
    "receipt": "C",
    "receipt*": "R",
    "lookup": "L",
    "timeout": "T",
    "decline": "F",
    "forbid": "P",
    "crash": "F",
    "silent": "U",
}


@pytest.fixture(autouse=True)
def quiet() -> Iterator[None]:
    """Keep the tracebacks of probes that break on purpose out of the report."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_every_case_is_as_its_golden_says(case: Case) -> None:
    text = golden_text({name: played(case, play) for name, play in ORCHESTRATIONS.items()})
    assert golden_diff(case.name, text) == ""


@pytest.mark.parametrize("case", CASES, ids=[case.name for case in CASES])
def test_both_orchestrations_come_to_the_same_end(case: Case) -> None:
    told = [_plain(played(case, play).written()) for play in ORCHESTRATIONS.values()]
    assert all(each == told[0] for each in told)


def _plain(written: str) -> list[str]:
    """Leave out the path, as the two have nodes of their own, and the record that one alone has."""
    left_out = ("path:", "done:", "not done:", "model calls saved:")
    return [line for line in written.splitlines() if not line.startswith(left_out)]


def _oracle(letters: set[str]) -> str:
    if "P" in letters:
        return "policy_block"
    if letters == {"C"}:
        return "completed"
    if letters == {"F"}:
        return "fatal"
    # The turn goes on, and the next message of the script is a text.
    return "answered"


PAIRS = list(itertools.product(LETTERS, repeat=2))


@pytest.mark.parametrize("tools", PAIRS, ids=["-".join(pair) for pair in PAIRS])
def test_every_mix_of_two_ends_as_the_table_says(tools: tuple[str, str]) -> None:
    case = Case(name="mix", steps=(batch(*tools), AFTERWARDS))
    expected = _oracle({LETTERS[tool] for tool in tools})
    for name, play in ORCHESTRATIONS.items():
        transcript = played(case, play)
        assert transcript.rule == expected, name
        assert transcript.model_calls == (2 if expected == "answered" else 1), name
        assert len(transcript.calls) == 2, name


def test_there_is_one_golden_for_each_case_and_none_besides() -> None:
    kept = sorted(path.stem for path in golden_path("any").parent.glob("*.txt"))
    assert kept == sorted(case.name for case in CASES)
    assert len(CASES) >= 12


def test_a_difference_is_shown_line_by_line(tmp_path: Path) -> None:
    golden_path("receipt", tmp_path).write_text("rule: completed\ntext:\n  Paid.\n")
    assert golden_diff("receipt", "rule: fatal\ntext:\n  Paid.\n", tmp_path).splitlines() == [
        "--- receipt, golden",
        "+++ receipt, now",
        "@@ -1,3 +1,3 @@",
        "-rule: completed",
        "+rule: fatal",
        " text:",
        "   Paid.",
    ]


def test_the_command_fails_on_a_difference_and_update_settles_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("golden_path", "golden_diff"):
        original = getattr(command, name)
        monkeypatch.setattr(
            command, name, lambda *given, original=original: original(*given, folder=tmp_path)
        )
    assert command.main(["receipt", "decline"]) == 1
    assert "2 cases, 2 not as kept: receipt, decline." in capsys.readouterr().out
    assert not list(tmp_path.iterdir())
    assert command.main(["receipt", "--update"]) == 0
    assert "1 cases, 1 rewritten: receipt." in capsys.readouterr().out
    assert command.main(["receipt"]) == 0
    assert capsys.readouterr().out == "1 cases, all as kept.\n"
    assert command.main(["rumour"]) == 2
    assert capsys.readouterr().err == "There is no case called rumour.\n"


def test_it_runs_alone_without_django_and_without_a_database() -> None:
    """A fresh interpreter in which Django cannot be imported at all, nor psycopg."""
    script = (
        "import sys\n"
        "sys.modules['django'] = sys.modules['psycopg'] = None\n"
        "from agent_core.harness.__main__ import main\n"
        "sys.exit(main(['receipt', 'reviewed-approved']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "2 cases, all as kept.\n"), done.stderr
