"""The stack for `create_agent`: same router, same gate, and nothing gets past it unjudged."""

from __future__ import annotations

from dataclasses import replace

import pytest
from langchain_core.messages import AIMessage

from agent_core.answer import STUB
from agent_core.budget import Limits
from agent_core.chat_models.scripted import ScriptedCall, ScriptedStep, calls, says
from agent_core.errors import ContractBroken, ModelEmpty
from agent_core.harness.memory import context_make
from agent_core.harness.probes import PROBES, RIGHT
from agent_core.middleware import countersign_stack
from tests.core.turns import DONE, Turn, noted, one, replied_once

pytestmark = pytest.mark.usefixtures("quiet")


@pytest.mark.parametrize(
    ("tool", "rule", "text"),
    [
        ("receipt", "completed", "Receipt for T-1: 5.00 EUR."),
        ("decline", "fatal", "T-1 was declined. Nothing was charged."),
        ("forbid", "policy_block", "T-1 may not be touched."),
        ("gated", "policy_block", "T-1 is barred by a rule."),
    ],
)
def test_a_finished_outcome_ends_the_turn_with_the_tools_own_text(
    tool: str, rule: str, text: str
) -> None:
    turn = Turn(one(tool)).ask()
    assert turn.decision == (True, rule)
    assert turn.said == text
    assert len(turn.model.requests) == 1


@pytest.mark.parametrize("tool", ["timeout", "lookup", "silent", "odd"])
def test_an_outcome_that_is_not_final_goes_back_to_the_model(tool: str) -> None:
    turn = Turn(one(tool), DONE).ask()
    assert turn.decision == (True, "answered")
    assert turn.said == "Done talking."
    assert len(turn.model.requests) == 2


def test_a_mixed_batch_goes_back_though_its_last_message_would_have_stopped() -> None:
    step = calls(("decline", {"thing": "A"}), ("receipt", {"thing": "B"}))
    turn = Turn(step, DONE).ask()
    assert turn.told == ["A was declined. Nothing was charged.", "Receipt for B: 5.00 EUR."]
    assert turn.said == "Done talking."


def test_a_block_anywhere_in_the_batch_ends_it_and_names_both_sides() -> None:
    step = calls(("forbid", {"thing": "A"}), ("receipt", {"thing": "B"}))
    turn = Turn(step).ask()
    assert turn.decision == (True, "policy_block")
    assert turn.said == (
        "1 of 2 done: 5.00 EUR for B; 1 not: trying forbid.\n\n"
        "A may not be touched.\n\nReceipt for B: 5.00 EUR."
    )


def test_a_gate_that_blocks_one_call_holds_every_effect_of_the_batch() -> None:
    made: list[str] = []
    step = calls(("noted", {"thing": "A"}), ("gated", {"thing": "B"}), ("lookup", {"thing": "C"}))
    turn = Turn(step, tools=[*PROBES, noted(made)]).ask()
    assert made == []
    assert turn.told == [
        "Not done, because another part of this request was refused.",
        "B is barred by a rule.",
        "C is known.",
    ]


def test_something_remaining_turns_a_receipt_into_going_on() -> None:
    turn = Turn(one("receipt", remaining="open a ticket"), one("lookup"), DONE).ask()
    assert len(turn.model.requests) == 3
    assert turn.said == "Done talking."


def test_never_goes_back_after_a_receipt_but_not_after_a_block() -> None:
    assert len(Turn(one("receipt"), DONE, stop_mode="never").ask().model.requests) == 2
    assert len(Turn(one("forbid"), DONE, stop_mode="never").ask().model.requests) == 1


def test_a_used_up_budget_ends_the_turn_and_says_which() -> None:
    turn = Turn(one("lookup"), one("lookup"), DONE, limits=Limits(tokens=30)).ask()
    assert turn.decision == (True, "budget")
    limit = "the limit for tokens was reached (used 30, allowed 30)"
    assert turn.said == f"I stopped here because {limit}."
    assert len(turn.model.requests) == 2


def test_the_next_turn_starts_with_a_budget_of_its_own_and_sees_a_stub() -> None:
    """Tool text must not be replayed to the model as the assistant's own words."""
    steps = (one("receipt"), one("lookup"), says("Hello again."))
    turn = Turn(*steps, limits=Limits(model_calls=2)).ask()
    turn.ask("And now?")
    assert turn.said == "Hello again."
    sent = turn.model.requests[1]
    assert [str(m.text) for m in sent if isinstance(m, AIMessage) and not m.tool_calls] == [STUB]


def test_every_call_has_exactly_one_reply_in_what_the_model_is_sent() -> None:
    step = ScriptedStep(
        calls=(
            ScriptedCall("receipt", "{broken", id="same"),
            ScriptedCall("receipts", {"thing": "A"}, id="same"),
            ScriptedCall("lookup", {"thing": "B"}, id="same"),
        )
    )
    turn = Turn(step, DONE).ask()
    sent = turn.model.requests[1]
    asked = [call["id"] for m in sent if isinstance(m, AIMessage) for call in m.tool_calls]
    assert replied_once(sent)
    assert len(set(asked)) == 3
    assert "same" not in asked


def test_an_empty_answer_fails_the_turn() -> None:
    with pytest.raises(ModelEmpty):
        Turn(ScriptedStep()).ask()


def test_a_crash_ends_the_turn_in_plain_words() -> None:
    turn = Turn(one("crash")).ask()
    assert turn.decision == (True, "fatal")
    assert turn.said.startswith("This could not be completed because of a fault on our side")
    assert "RuntimeError" not in turn.said


def test_an_unknown_stop_mode_is_refused() -> None:
    with pytest.raises(ContractBroken, match="There is no stop mode 'perhaps'"):
        countersign_stack(PROBES, lambda: context_make(RIGHT), stop_mode="perhaps")


def test_a_tool_without_the_right_is_neither_offered_nor_run() -> None:
    made: list[str] = []
    acting = replace(context_make(RIGHT), rights=frozenset())
    turn = Turn(one("noted"), tools=[noted(made)], context=lambda: acting).ask()
    assert turn.model.offered == [[]]
    assert made == []
    assert turn.decision == (True, "policy_block")


def test_the_same_effect_asked_again_is_not_executed_again() -> None:
    made: list[str] = []
    turn = Turn(one("noted", remaining="more"), one("noted"), tools=[noted(made)]).ask()
    assert made == ["T-1"]
    assert turn.decision == (True, "completed")
    assert turn.said == "Noted T-1."
