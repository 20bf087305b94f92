"""The report on an adopter's tools: the good ones pass, and every check finds what it is for."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from agent_core.harness import check_calls, check_shape, tools_report
from agent_core.harness.__main__ import main
from agent_core.harness.tools_report import PlaceUnknown
from agent_core.harness.tools_report import tools_report as report_on
from tests.core import adopted_tools
from tests.core.adopted_tools import BAD, bad_tool

HERE = "tests.core.adopted_tools"
CASES = [(check, at) for check in BAD for at in range(1 if check == "twice" else len(BAD[check]))]


@pytest.mark.parametrize(("check", "at"), CASES, ids=[f"{check}-{at}" for check, at in CASES])
def test_each_way_to_break_the_contract_is_found_and_nothing_else_is(
    check: str, at: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    tools = bad_tool(check, at)
    example = {"things": 1} if check == "example" else {"order": "A-1"}
    called = {getattr(tools[0], "name", ""): [example]} if check != "kind" else {}
    monkeypatch.setattr(adopted_tools, "TOOLS", tools)
    monkeypatch.setattr(adopted_tools, "EXAMPLES", called)
    report = report_on(f"{HERE}:TOOLS", f"{HERE}:EXAMPLES")
    assert not report.kept
    for tool in report.tools:
        assert [finding.check for finding in tool.findings] == [check]


def test_every_check_there_is_has_a_bad_tool() -> None:
    sources = [Path(str(module.__file__)) for module in (check_shape, check_calls, tools_report)]
    named = re.findall(
        r'Finding\(\s*"(\w+)"', "".join(path.read_text(encoding="utf-8") for path in sources)
    )
    assert set(named) == set(BAD)


def test_what_is_broken_is_said_with_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    tools = [*adopted_tools.TOOLS, *BAD["direct"], *BAD["kind"]]
    monkeypatch.setattr(adopted_tools, "TOOLS", tools)
    assert main(["--tools", f"{HERE}:TOOLS", "--examples", f"{HERE}:EXAMPLES"]) == 1
    assert capsys.readouterr().out == (
        "The tools of tests.core.adopted_tools:TOOLS\n"
        "\n"
        "  cancel_order  ok, called 2 times\n"
        "  status_of     ok, called 1 time\n"
        "  status        broken\n"
        "    direct: It is registered with return_direct, which ends the turn even when the call "
        "failed. Take it away; the artifact of each call says whether it may stop.\n"
        "  cancel        broken\n"
        "    kind: It is no tool. Make it a Tool of agent_core.contract, or a LangChain tool.\n"
        "\n"
        "4 tools, 2 of them broken.\n"
    )


def test_the_example_that_breaks_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adopted_tools, "TOOLS", [BAD["raises"][0]])
    report = report_on(f"{HERE}:TOOLS", f"{HERE}:ONE")
    (finding,) = report.tools[0].findings
    assert finding.text == (
        "It raises KeyError ('A-1'). The boundary makes that fatal and can only say that something "
        "broke: return transient(...) or fatal(...) where more can be said. Called with "
        "{'order': 'A-1'}."
    )


def test_a_tool_that_raises_where_nobody_thought_of_it_keeps_the_contract_and_that_is_noted(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--tools", f"{HERE}:SOME_RAISE", "--examples", f"{HERE}:LOST"]) == 0
    first, note, *rest = capsys.readouterr().out.splitlines()[2:]
    assert first == "  cancel_order  ok, called 2 times"
    assert note.startswith("    note, raises: It raises OSError (socket). The boundary makes that")
    assert rest == ["", "1 tool, all keep the contract."]


def test_a_tool_that_raises_in_every_example_is_not_proved(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--tools", f"{HERE}:SOME_RAISE", "--examples", f"{HERE}:LOST_ONLY"]) == 3
    said = capsys.readouterr().out
    assert "  cancel_order  not proved: every example raised\n" in said
    assert said.endswith("1 tool, 1 of them not proved.\n")


def test_a_schema_that_raises_is_a_finding() -> None:
    (finding,) = report_on(f"{HERE}:CHECKED_BADLY", f"{HERE}:ONE").tools[0].findings
    assert finding.text.startswith(
        "The example does not fit its arguments: checking it raises RuntimeError (no check of A-1)."
    )


@pytest.mark.parametrize("examples", [None, f"{HERE}:ONE"])
def test_a_module_or_a_tool_that_exits_does_not_end_the_report(
    examples: str | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    if examples:
        monkeypatch.setattr(adopted_tools, "TOOLS", [BAD["ends"][0]])
        assert main(["--tools", f"{HERE}:TOOLS", "--examples", examples]) == 1
        assert "    ends: It raises SystemExit (0), which no boundary" in capsys.readouterr().out
        return
    (tmp_path / "shop_that_exits.py").write_text("import sys\nsys.exit(0)\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert main(["--tools", "shop_that_exits:TOOLS"]) == 2
    assert capsys.readouterr().err == (
        "The module shop_that_exits cannot be imported: SystemExit (0).\n"
    )


@pytest.mark.parametrize(
    ("made", "told"),
    [
        ({"reason": "transient", "stop": True}, "transient with stop true"),
        ({"reason": "fatal", "stop": False}, "fatal with stop false"),
        ({"status": "ok"}, "status is missing or too much"),
        ({"v": True}, "its v would be another"),
        ({"data": {"name": "a\x00b"}}, "its data would be another"),
    ],
)
def test_what_no_constructor_makes_is_told(
    made: dict[str, object], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(adopted_tools, "TOOLS", [adopted_tools.spoiled(**made)])
    (finding,) = report_on(f"{HERE}:TOOLS", f"{HERE}:ONE").tools[0].findings
    assert finding.text.startswith(f"No constructor makes its artifact: {told}. Make it with")


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("TEXT", "is a str and no function."),
        ("context_that_raises", "raises KeyError ('tenant')."),
        ("context_of_nothing", "returns a NoneType and no RunContext."),
    ],
)
def test_a_context_that_cannot_be_had_is_said_in_a_sentence(
    name: str, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    places = ["--tools", f"{HERE}:TOOLS", "--examples", f"{HERE}:ONE"]
    assert main([*places, "--context", f"{HERE}:{name}"]) == 2
    assert capsys.readouterr().err == f"{HERE}:{name} {told}\n"


def test_without_examples_nothing_is_executed_and_nothing_is_proved(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--tools", f"{HERE}:ALONE"]) == 3
    assert capsys.readouterr().out == (
        "The tools of tests.core.adopted_tools:ALONE\n"
        "\n"
        "  cancel_order  not proved: no examples\n"
        "\n"
        "1 tool, 1 of them not proved.\n"
    )


def test_one_tool_without_examples_keeps_the_others_from_a_verdict_of_all_right(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--tools", f"{HERE}:TOOLS", "--examples", f"{HERE}:ONE"]) == 3
    assert capsys.readouterr().out == (
        "The tools of tests.core.adopted_tools:TOOLS\n"
        "\n"
        "  cancel_order  ok, called 1 time\n"
        "  status_of     not proved: no examples\n"
        "\n"
        "2 tools, 1 of them not proved.\n"
    )


def test_when_every_tool_was_called_and_is_right_all_keep_the_contract(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["--tools", f"{HERE}:TOOLS", "--examples", f"{HERE}:EXAMPLES"]) == 0
    assert capsys.readouterr().out.endswith("\n\n2 tools, all keep the contract.\n")


def test_what_is_broken_is_worse_than_what_is_not_proved_and_both_are_counted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(adopted_tools, "TOOLS", [adopted_tools.ALONE, *BAD["direct"]])
    assert main(["--tools", f"{HERE}:TOOLS"]) == 1
    assert capsys.readouterr().out.endswith(
        "\n\n2 tools, 1 of them broken, 1 of them not proved.\n"
    )


def test_the_exit_status_of_what_is_not_proved_stands_in_the_help(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with pytest.raises(SystemExit):
        main(["--help"])
    assert "3 a tool that no example has called" in capsys.readouterr().out


def test_a_tool_that_is_registered_wrongly_is_not_called(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adopted_tools, "TOOLS", [BAD["right"][0]])
    report = report_on(f"{HERE}:TOOLS", f"{HERE}:ONE")
    assert report.tools[0].called == 0


def test_examples_are_given_in_one_way_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a tool carries for something else is not executed."""
    monkeypatch.setattr(adopted_tools.cancel, "examples", [{"order": "A-1"}], raising=False)
    brought = adopted_tools.LOOK_UP.model_copy(update={"metadata": {"examples": [{"order": "B"}]}})
    monkeypatch.setattr(adopted_tools, "TOOLS", [adopted_tools.ALONE, brought])
    assert [tool.called for tool in report_on(f"{HERE}:TOOLS").tools] == [0, 0]


def test_the_examples_run_in_a_context_of_the_adopters_own() -> None:
    places = (f"{HERE}:GERMAN", f"{HERE}:ONE")
    assert not report_on(*places).kept
    assert report_on(*places, f"{HERE}:context_of_their_own").kept


@pytest.mark.parametrize(
    ("tools", "examples", "told"),
    [
        ("nowhere.at.all:TOOLS", None, "The module nowhere.at.all cannot be imported: "),
        (f"{HERE}:NOTHING", None, f"The module {HERE} has no NOTHING."),
        ("", None, "'' is no place. Write it as my.module:TOOLS."),
        (f"{HERE}:TOOLS", "", "'' is no place. Write it as my.module:TOOLS."),
        (f"{HERE}:BROKEN_OFF", None, "raises LookupError (half a list) when it is listed."),
        (HERE, None, f"{HERE!r} is no place. Write it as my.module:TOOLS."),
        (f"{HERE}:TEXT", None, f"{HERE}:TEXT is a str and no list of tools."),
        (f"{HERE}:NO_TOOLS", None, f"{HERE}:NO_TOOLS holds no tools."),
        (f"{HERE}:TOOLS", f"{HERE}:STRANGERS", "has examples for refund: no such tool."),
        (f"{HERE}:TOOLS", f"{HERE}:ODD_EXAMPLES", "is no mapping of tool names to lists of"),
        (f"{HERE}:TOOLS", f"{HERE}:TEXT", "is no mapping of tool names to lists of"),
    ],
)
def test_what_is_not_there_is_said_in_a_sentence_and_ends_with_2(
    tools: str, examples: str | None, told: str, capsys: pytest.CaptureFixture[str]
) -> None:
    given = ["--tools", tools, *(["--examples", examples] if examples is not None else [])]
    assert main(given) == 2
    said = capsys.readouterr()
    assert told in said.err
    assert said.err.count("\n") == 1
    assert said.out == ""


def test_a_tool_that_the_contract_refuses_to_make_is_told_as_broken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its module cannot even be imported."""
    (tmp_path / "shop_without_identity.py").write_text(
        "from agent_core.contract import Tool\n"
        "TOOLS = [Tool(name='pay', run=print, doing='Paying', done='Paid', right='shop.pay',\n"
        "              effect=True, may_stop=True)]\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert main(["--tools", "shop_without_identity:TOOLS"]) == 1
    assert capsys.readouterr().err == (
        "A tool breaks the contract: pay has a side effect and must define its identity.\n"
    )


def test_a_place_that_holds_something_else_raises() -> None:
    with pytest.raises(PlaceUnknown):
        report_on(f"{HERE}:TEXT")
