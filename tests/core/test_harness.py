"""The harness: the orchestrations do as the goldens say, and agree with each other."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from agent_core.budget import Limits
from agent_core.chat_models.scripted import fails
from agent_core.contract import RunContext
from agent_core.harness import __main__ as command
from agent_core.harness.__main__ import main
from agent_core.harness.cases import AFTERWARDS, CASES, AskedOf, Case, batch
from agent_core.harness.golden import (
    FOLDER,
    GoldenBroken,
    golden_diff,
    golden_kept,
    golden_path,
    golden_update,
)
from agent_core.harness.memory import context_make
from agent_core.harness.mixes import mixes
from agent_core.harness.play import ORCHESTRATIONS, played
from agent_core.harness.play_graph import play_graph
from agent_core.harness.probes import NAMES, PROBES, RIGHT
from agent_core.harness.transcript import Play, Transcript

ROOT = Path(__file__).resolve().parents[2]
NAMED = {case.name: case for case in CASES}

pytestmark = pytest.mark.usefixtures("quiet")


# The goldens


@pytest.mark.parametrize("case", CASES, ids=list(NAMED))
def test_every_case_is_as_its_golden_says(case: Case) -> None:
    now = {name: played(case, play) for name, play in ORCHESTRATIONS.items()}
    assert golden_diff(case.name, now) == ""


@pytest.mark.parametrize("case", CASES, ids=list(NAMED))
def test_both_orchestrations_are_kept_and_come_to_the_same_end(case: Case) -> None:
    """What is kept is compared, so this holds on an installation that has only one of them."""
    kept = golden_kept(case.name)
    assert list(kept) == ["graph", "middleware"]
    assert _pathless(kept["graph"]) == _pathless(kept["middleware"])


def _pathless(written: str) -> list[str]:
    """Leave the path out: each has nodes of its own."""
    return [line for line in written.splitlines() if not line.startswith("path:")]


def test_there_is_one_golden_for_each_case_and_none_besides() -> None:
    assert sorted(path.stem for path in FOLDER.glob("*.txt")) == sorted(NAMED)
    assert len(CASES) == len(NAMED) >= 40


def test_every_probe_has_a_case() -> None:
    used = {call.tool for case in CASES for step in case.steps for call in step.calls}
    assert used - {"receipts"} == set(NAMES)


def test_every_kind_of_limit_has_a_case() -> None:
    kept = "".join(golden_path(name).read_text() for name in NAMED)
    for limit in ("model_calls", "tool_calls", "tokens", "seconds", "tries"):
        assert f"budget ({limit} " in kept


def test_a_difference_is_shown_line_by_line_under_its_orchestration(tmp_path: Path) -> None:
    right, wrong = _transcript(), _transcript(rule="fatal")
    golden_update("receipt", {"graph": right, "middleware": right}, tmp_path)
    now = {"graph": right, "middleware": wrong}
    assert golden_diff("receipt", now, tmp_path).splitlines() == [
        "--- receipt, golden",
        "+++ receipt, now",
        "@@ -10,6 +10,6 @@",
        " path: model",
        " model calls: 1",
        " calls:",
        "-rule: completed",
        "+rule: fatal",
        " text:",
        "   Paid.",
    ]


def _transcript(**changed: Any) -> Transcript:
    plain = Transcript(
        path=("model",),
        model_calls=1,
        decisions=(),
        calls=(),
        replies=(),
        rule="completed",
        text="Paid.",
    )
    return replace(plain, **changed)


def test_an_installation_with_one_orchestration_compares_and_rewrites_its_own_section_only(
    tmp_path: Path,
) -> None:
    golden_update("receipt", {"graph": _transcript(), "middleware": _transcript()}, tmp_path)
    alone = {"graph": _transcript(rule="fatal")}
    assert "-rule: completed\n+rule: fatal" in golden_diff("receipt", alone, tmp_path)
    golden_update("receipt", alone, tmp_path)
    assert golden_diff("receipt", alone, tmp_path) == ""
    both = {**alone, "middleware": _transcript()}
    assert golden_diff("receipt", both, tmp_path) == ""


def test_a_section_that_is_missing_is_a_difference(tmp_path: Path) -> None:
    golden_update("receipt", {"graph": _transcript()}, tmp_path)
    both = {"graph": _transcript(), "middleware": _transcript()}
    assert "+== middleware" in golden_diff("receipt", both, tmp_path)


@pytest.mark.parametrize("text", ["== grpah\nrule: x\n", "== graph\n== graph\n"])
def test_an_unknown_section_is_an_error_and_is_not_written_over(
    tmp_path: Path, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    golden_path("receipt", tmp_path).write_text(text)
    with pytest.raises(GoldenBroken):
        golden_diff("receipt", {"graph": _transcript()}, tmp_path)
    assert main(["receipt", "--update"], tmp_path) == 2
    assert capsys.readouterr().err.startswith("receipt.txt has an unknown section or one twice")
    assert golden_path("receipt", tmp_path).read_text() == text


# The command


def test_the_command_fails_on_a_difference_and_update_settles_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    names = " and ".join(ORCHESTRATIONS)
    assert main(["receipt", "decline"], tmp_path) == 1
    assert f"2 cases on {names}: 2 not as kept: receipt, decline." in capsys.readouterr().out
    assert not list(tmp_path.iterdir())
    assert main(["receipt", "--update"], tmp_path) == 0
    assert f"1 case on {names}: 1 rewritten: receipt." in capsys.readouterr().out
    assert main(["receipt"], tmp_path) == 0
    assert capsys.readouterr().out == f"1 case on {names}: all as kept.\n"


def test_a_case_that_is_not_there_is_said_in_a_sentence(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["rumour"]) == 2
    assert capsys.readouterr().err == "There is no case called rumour. --list names them all.\n"


def test_list_names_the_cases_and_show_prints_what_was_played(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--list"]) == 0
    assert capsys.readouterr().out.split() == list(NAMED)
    assert main(["receipt", "--show"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("# receipt\n== graph\npath: prepare model gate act_allowed review")


def _only_a_receipt(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Leave one case, kept in this folder."""
    monkeypatch.setattr(command, "CASES", [NAMED["receipt"]])
    assert main(["receipt", "--update"], folder) == 0
    capsys.readouterr()


def test_without_a_name_the_mixes_are_played_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    names = " and ".join(ORCHESTRATIONS)
    _only_a_receipt(tmp_path, monkeypatch, capsys)
    monkeypatch.setattr(command, "all_problems", lambda _mixes, _jobs: [])
    assert main([], tmp_path) == 0
    out = capsys.readouterr().out.splitlines()
    assert out[0] == f"1 case on {names}: all as kept."
    assert out[1].endswith(f" mixes on {names}: all as the table says.")
    monkeypatch.setattr(command, "all_problems", lambda _mixes, _jobs: ["a: wrong", "b: wrong"])
    assert main([], tmp_path) == 1
    assert capsys.readouterr().out.endswith(": 2 differences.\n  a: wrong\n  b: wrong\n")
    monkeypatch.setattr(command, "all_problems", lambda _mixes, _jobs: ["a: wrong"] * 30)
    assert main([], tmp_path) == 1
    assert capsys.readouterr().out.endswith("  a: wrong\n  and 10 more.\n")


def test_all_plays_every_triple_of_the_mixes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _only_a_receipt(tmp_path, monkeypatch, capsys)
    monkeypatch.setattr(command, "all_problems", lambda _mixes, _jobs: [])
    for arguments, every in (([], mixes()), (["--all"], mixes(every_triple=True))):
        assert main(arguments, tmp_path) == 0
        assert f"\n{len(every)} mixes on " in capsys.readouterr().out


def test_a_golden_without_a_case_is_told_as_wrong(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    _only_a_receipt(tmp_path, monkeypatch, capsys)
    monkeypatch.setattr(command, "all_problems", lambda _mixes, _jobs: [])
    for name in ("rumour", "gossip"):
        golden_path(name, tmp_path).write_text("== graph\n")
    assert main([], tmp_path) == 1
    said = "No case is compared with gossip.txt, rumour.txt. Delete what is left over.\n"
    assert said in capsys.readouterr().out
    assert main(["--update"], tmp_path) == 1
    assert said in capsys.readouterr().out
    assert main(["receipt"], tmp_path) == 0


def test_a_golden_that_is_no_text_is_a_difference_and_update_settles_it(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    golden_path("receipt", tmp_path).write_bytes(b"== graph\nrule: \xff\n")
    assert main(["receipt", "decline"], tmp_path) == 1
    said = capsys.readouterr().out
    assert "receipt.txt is no UTF-8 text from byte 15 on; --update writes it anew." in said
    assert "2 not as kept: receipt, decline." in said
    assert main(["receipt", "--update"], tmp_path) == 0
    assert main(["receipt"], tmp_path) == 0


@pytest.mark.parametrize("option", ["--examples", "--context"])
def test_what_is_said_of_tools_without_tools_is_refused(
    option: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([option, "shop:THINGS"])
    assert ended.value.code == 2
    assert "say how to call the tools of --tools" in capsys.readouterr().err


def test_an_interrupt_ends_it_quietly(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> list[str]:
        raise KeyboardInterrupt

    _only_a_receipt(tmp_path, monkeypatch, capsys)
    monkeypatch.setattr(command, "all_problems", interrupted)
    assert main([], tmp_path) == 130
    assert capsys.readouterr().err == ""
    assert not logging.root.manager.disable


def test_an_interrupt_from_the_terminal_while_its_processes_begin_ends_it_quietly(
    tmp_path: Path,
) -> None:
    script = tmp_path / "command.py"
    script.write_text(
        "import sys\n"
        "if __name__ != '__main__':\n"
        "    print('begun', flush=True)\n"
        "from pathlib import Path\n"
        "from agent_core.harness import __main__ as command\n"
        "if __name__ == '__main__':\n"
        "    command.CASES = []\n"
        "    sys.exit(command.main(['--jobs', '2'], Path(sys.argv[1])))\n"
    )
    with subprocess.Popen(
        [sys.executable, str(script), str(tmp_path)],
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        cwd=ROOT,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout
        assert any("begun" in line for line in process.stdout)
        os.killpg(process.pid, signal.SIGINT)
        _out, said = process.communicate()
    assert process.returncode == 130
    # A framework may warn of itself on this stream.
    assert "Traceback" not in said


def test_it_runs_alone_without_django_and_without_a_database() -> None:
    """A fresh interpreter in which Django cannot be imported at all, nor psycopg."""
    script = (
        "import sys\n"
        "sys.modules['django'] = sys.modules['psycopg'] = None\n"
        "from agent_core.harness.__main__ import main\n"
        "sys.exit(main(['receipt', 'reviewed-approved']))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        cwd=ROOT,
        env={**os.environ, "PYTHONWARNINGS": "ignore"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == f"2 cases on {' and '.join(ORCHESTRATIONS)}: all as kept.\n"


# For tools, people and decisions of one's own


def test_a_caller_plays_own_tools_in_a_context_of_its_own_that_is_read_anew(play: Play) -> None:
    acting = replace(context_make(RIGHT), requester_name="Somebody else")
    read: list[RunContext] = []

    def context() -> RunContext:
        read.append(acting)
        return acting

    case = Case(name="own", steps=(batch("receipt"), AFTERWARDS))
    assert play(case, PROBES, context=context).rule == "completed"
    assert len(read) > 1
    without = replace(acting, rights=frozenset())
    assert play(case, PROBES, context=lambda: without).rule == "policy_block"


def test_a_decision_is_made_when_it_is_asked_for_and_may_name_its_review(play: Play) -> None:
    asked: list[AskedOf] = []
    seen: list[object] = []
    review = uuid4()
    probe = next(tool for tool in PROBES if tool.name == "adjustable")

    def run(context: RunContext, **arguments: Any) -> Any:
        seen.append((context.review_id, arguments))
        return probe.run(context, **arguments)

    def decide(asked_of: AskedOf) -> dict[str, Any]:
        asked.append(asked_of)
        return {"state": "approved", "review": str(review), "changes": {"thing": "T-7"}}

    run.__wrapped__ = probe.run  # type: ignore[attr-defined]
    run.__annotations__ = dict(probe.run.__annotations__)
    case = Case(
        name="own", steps=(batch("adjustable"), AFTERWARDS), decisions={"adjustable": decide}
    )
    assert play(case, [replace(probe, run=run)]).text == "Receipt for T-7: 5.00 EUR."
    assert [(each.tool, each.arguments) for each in asked] == [("adjustable", {"thing": "T-1"})]
    assert seen == [(review, {"thing": "T-7"})]


def test_what_breaks_the_play_itself_is_raised_and_never_a_transcript(
    play: Play, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = Case(name="short", steps=(batch("lookup"),))
    with pytest.raises(Exception, match=r"ScriptEnded|asked for another"):
        play(case, PROBES)


def test_a_model_that_breaks_has_failed_and_nothing_of_its_error_is_told(play: Play) -> None:
    case = Case(name="own", steps=(fails(RuntimeError("key=secret"), text="Half a sen"),))
    failed = play(case, PROBES)
    assert (failed.rule, failed.model_calls, failed.record) == ("failed", 1, None)
    assert failed.text == "The model gave no usable answer."


def test_an_error_that_is_not_the_models_is_raised_although_the_model_raises_its_like(
    play: Play,
) -> None:
    def context() -> RunContext:
        raise RuntimeError("no rights to be had")

    case = Case(name="own", steps=(batch("lookup"), fails(RuntimeError("no model"))))
    with pytest.raises(RuntimeError, match="no rights"):
        play(case, PROBES, context=context)


@pytest.mark.parametrize("limits", [Limits(), Limits(model_calls=40, tool_calls=41)])
def test_a_case_ends_by_its_own_limits_and_never_by_the_frameworks(
    play: Play, limits: Limits
) -> None:
    steps = (batch("reviewed*", "lookup"), *[batch("lookup")] * limits.model_calls)
    approved = {"reviewed": {"state": "approved"}}
    case = Case(name="own", steps=steps, limits=limits, decisions=approved)
    ended = play(case, PROBES)
    assert (ended.rule, ended.model_calls) == ("budget", limits.model_calls)


def test_the_graphs_play_leaves_nothing_behind_for_the_next_one() -> None:
    first = play_graph(NAMED["receipt"], PROBES)
    play_graph(NAMED["decline"], PROBES)
    assert play_graph(NAMED["receipt"], PROBES) == first
