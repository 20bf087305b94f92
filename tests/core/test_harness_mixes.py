"""Every mix of parallel calls comes out as an independent reading of the table says."""

from __future__ import annotations

import ast
import itertools
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent_core import answer, ending, graph, router
from agent_core.contract import Tool, outcome_read
from agent_core.harness import mixes as mixing
from agent_core.harness import oracle
from agent_core.harness.mixes import Mix, all_problems, mix_problems, mixes
from agent_core.harness.oracle import MEANINGS, expected
from agent_core.harness.play_graph import play_graph
from agent_core.harness.transcript import Transcript
from agent_core.router import Decision
from agent_core.toolset import Toolset

pytestmark = pytest.mark.usefixtures("quiet")


@pytest.mark.slow
@pytest.mark.timeout(400)
def test_every_mix_on_every_orchestration_is_as_the_table_says() -> None:
    assert all_problems(mixes()) == []


@pytest.mark.full
@pytest.mark.timeout(900)
def test_every_triple_that_the_usual_mixes_leave_out_is_as_the_table_says_too() -> None:
    usual = set(mixes())
    assert all_problems([mix for mix in mixes(every_triple=True) if mix not in usual]) == []


def test_the_whole_of_the_mixes_leaves_out_no_triple() -> None:
    usual, whole = mixes(), mixes(every_triple=True)
    together = set(itertools.product(MEANINGS, repeat=3))
    plain = [mix for mix in whole if len(mix.tools) == 3]
    assert sorted((mix.tools, mix.backwards) for mix in plain) == sorted(
        itertools.product(together, (False, True))
    )
    assert [mix for mix in whole if len(mix.tools) < 3] == [
        mix for mix in usual if len(mix.tools) < 3
    ]
    assert set(usual) < set(whole)
    assert len(whole) == len(set(whole))


def test_only_what_is_played_in_mode_hard_without_a_limit_finishes_in_both_orders() -> None:
    assert {(mix.mode, mix.spent) for mix in mixes(every_triple=True) if mix.backwards} == {
        ("hard", False)
    }


def test_the_mixes_are_all_there_are_and_each_finishes_in_both_orders() -> None:
    plain = [mix for mix in mixes() if mix.mode == "hard" and not mix.spent]
    played = sorted((mix.tools, mix.backwards) for mix in plain)
    letters = tuple(MEANINGS)
    # Of two probes that mean the same to the table one is left out of the threes.
    of_three = [name for name in letters if name not in ("crash", "receipt!", "receipts")]
    assert {_meaning(name) for name in of_three} == {_meaning(name) for name in letters}
    together = [
        *itertools.product(letters, repeat=2),
        *itertools.product(of_three, repeat=3),
    ]
    alone = [((name,), False) for name in letters]
    assert played == sorted([*alone, *itertools.product(together, (False, True))])
    fitting = [name for name in letters if name not in ("receipt!", "receipts")]
    others = Counter((mix.mode, mix.spent) for mix in mixes() if mix not in plain)
    assert others == dict.fromkeys(
        [("hard", True), ("polish", False), ("polish", True), ("never", False), ("never", True)],
        len(fitting) + len(fitting) * (len(fitting) + 1) // 2,
    )


def _meaning(name: str) -> tuple[object, ...]:
    means = MEANINGS[name]
    return means.reason, means.stop, means.remaining


def test_the_oracle_imports_nothing_of_the_core() -> None:
    tree = ast.parse(Path(str(oracle.__file__)).read_text(encoding="utf-8"))
    imported = {
        name
        for node in ast.walk(tree)
        for name in (
            [node.module or ""]
            if isinstance(node, ast.ImportFrom)
            else [each.name for each in node.names]
            if isinstance(node, ast.Import)
            else []
        )
    }
    assert imported == {"__future__", "collections.abc", "dataclasses", "typing"}


@pytest.mark.parametrize(
    ("tools", "decision"),
    [
        # The rows of the table, one example by hand for each, and where two rows meet.
        (("forbid", "silent", "crash"), "policy_block"),
        (("receipt", "receipt", "receipt"), "completed"),
        (("decline", "crash"), "fatal"),
        (("silent", "timeout", "decline"), "unclear"),
        (("timeout", "decline", "receipt"), "transient"),
        (("receipt", "decline"), "mixed"),
        (("lookup", "decline"), "mixed"),
        (("receipt", "lookup"), "mixed"),
        (("receipt*", "lookup"), "mixed"),
        (("receipt", "receipt*"), "continue"),
        (("lookup", "lookup"), "continue"),
        (("receipt*",), "continue"),
        (("receipt!", "receipt"), "transient"),
        (("receipts", "decline"), "transient"),
        (("receipts", "forbid"), "policy_block"),
    ],
)
def test_the_oracle_reads_the_table_as_a_person_does(tools: tuple[str, ...], decision: str) -> None:
    assert expected(tools).decision == decision


# The proof has teeth: break the code, and mixes come out wrong


Broken = Callable[[pytest.MonkeyPatch], None]


def _last_outcome_only(patch: pytest.MonkeyPatch) -> None:
    whole = router.decide
    _decides(patch, lambda batch, budget: whole(batch[-1:], budget))


def _remaining_ignored(patch: pytest.MonkeyPatch) -> None:
    whole = router.decide
    _decides(
        patch,
        lambda batch, budget: whole([replace(call, remaining=False) for call in batch], budget),
    )


def _block_goes_on(patch: pytest.MonkeyPatch) -> None:
    whole = router.decide

    def decide(batch: Any, budget: Any) -> Decision:
        decision = whole(batch, budget)
        return replace(decision, stop=decision.stop and decision.rule != "policy_block")

    _decides(patch, decide)


def _decides(patch: pytest.MonkeyPatch, decide: Callable[..., Decision]) -> None:
    patch.setattr(ending, "decide", decide)


def _unclear_is_completed(patch: pytest.MonkeyPatch) -> None:
    read = outcome_read
    good = {"v": 1, "reason": "completed", "stop": True, "code": "x"}
    patch.setattr(graph, "outcome_read", lambda artifact: read(artifact or good))


def _rules_swapped(patch: pytest.MonkeyPatch) -> None:
    names = list(router._RULES)
    at, to = names.index("unclear"), names.index("transient")
    names[at], names[to] = names[to], names[at]
    patch.setattr(router, "_RULES", {name: router._RULES[name] for name in names})


def _first_reply_lost(patch: pytest.MonkeyPatch) -> None:
    answers = graph._answers
    patch.setattr(graph, "_answers", lambda batch, results: answers(batch[1:], results))


def _run_twice(patch: pytest.MonkeyPatch) -> None:
    executed = Toolset.executed

    def twice(self: Any, *given: Any) -> Any:
        executed(self, *given)
        return executed(self, *given)

    patch.setattr(Toolset, "executed", twice)


def _answer_in_call_order(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(answer, "_group", lambda _call: "done")


@pytest.mark.parametrize(
    ("broken", "caught_by", "told"),
    [
        (_last_outcome_only, ("forbid", "lookup"), "decisions: ['continue']"),
        (_remaining_ignored, ("receipt*", "receipt"), "decisions: ['completed']"),
        (_block_goes_on, ("forbid",), "model calls: 2; the table says 1"),
        (_unclear_is_completed, ("silent", "receipt"), "the table says ['unclear']"),
        (_rules_swapped, ("silent", "timeout"), "the table says ['unclear']"),
        (_first_reply_lost, ("timeout", "lookup"), "replies to each call: [0, 1]"),
        (_run_twice, ("receipt",), "ran, as they finished: ['receipt T-1', 'receipt T-1']"),
        (_answer_in_call_order, ("receipt", "forbid"), "text: "),
    ],
)
def test_a_broken_router_or_graph_does_not_get_past_the_mixes(
    broken: Broken, caught_by: tuple[str, ...], told: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    mix = Mix(tools=caught_by)
    assert mix_problems(mix, ["graph"]) == []
    broken(monkeypatch)
    assert told in "\n".join(mix_problems(mix, ["graph"]))


def test_a_problem_names_the_mix_the_orchestration_and_both_readings(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def wrong(case: Any, tools: Sequence[Tool], **more: Any) -> Transcript:
        return replace(play_graph(case, tools, **more), model_calls=7)

    monkeypatch.setattr(mixing, "ORCHESTRATIONS", {"graph": wrong})
    mix = Mix(tools=("receipt", "lookup"), backwards=True, mode="never")
    assert mix_problems(mix, ["graph"]) == [
        "receipt + lookup (last to first, never), graph: model calls: 7; the table says 2"
    ]
