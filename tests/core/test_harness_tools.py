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
        "It raises KeyError ('A-1'). The boundary can only say that something broke: return "
        "transient(...) or fatal(...) with a text that helps. Called with {'order': 'A-1'}."
    )


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
    given = ["--tools", tools, *(["--examples", examples] if examples else [])]
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
