"""The no-repeat rule on the product's host: what has its outcome is not executed again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import User

from agent_core.contract import Artifact, RunContext, completed, fatal
from agent_core.errors import ModelUnavailable
from agent_core.policy import ReviewProposal
from agent_core.runs import services, work
from agent_core.runs.models import Call, Run
from agent_core.runs.states import CallState, RunState
from agent_core.toolset import Toolset
from reviews.models import Review
from reviews.services import review_approve
from tests.runs.conftest import PROBES, _reviewed, _tool
from tests.runs.scripting import ScriptedModel

Play = Callable[..., ScriptedModel]
Say = Callable[[str], Run]

MADE: list[str] = []


def probe_count(context: RunContext, *, key: str) -> tuple[str, Artifact]:
    """Look something up, and note it."""
    MADE.append(f"look {key}")
    return f"Found {key}.", completed("look.completed", stop=False)


def probe_card(context: RunContext, *, amount: str) -> tuple[str, Artifact]:
    """Fail for good, and note it."""
    MADE.append(f"card {amount}")
    return f"The card was declined for {amount}.", fatal("card.declined")


def probe_lowered(context: RunContext, *, amount: str) -> tuple[str, Artifact]:
    """Refund what a reviewer may lower, and note it; the processor refuses 13."""
    MADE.append(f"refund {amount}")
    if amount == "13":
        return "The processor refused 13.", fatal("refund.refused")
    return f"Refunded {amount}.", completed("refund.completed", stop=True)


def _ask(context: RunContext, arguments: Any, facts: Any) -> ReviewProposal:
    amount = arguments["amount"]
    return ReviewProposal(
        kind="probe",
        subject_id=None,
        subject_hash=f"hash {amount}",
        title=f"Refund {amount}",
        button=f"Approve {amount}",
        fields={"amount": amount},
    )


TOOLS = (
    *PROBES,
    _tool("probe_count", probe_count, effect=False, may_stop=False),
    _tool("probe_card", probe_card),
    _tool("probe_lowered", probe_lowered, policies=(_reviewed,), propose=_ask),
)


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch, script: Play) -> list[str]:
    """Return what these tools were executed for in this test."""
    MADE.clear()
    return MADE


@pytest.fixture
def play(script: Play, monkeypatch: pytest.MonkeyPatch, made: list[str]) -> Play:
    """Play a script on the tools of this module too."""

    def played(*steps: Any) -> ScriptedModel:
        model = script(*steps)
        monkeypatch.setattr(work, "toolset", lambda: Toolset(TOOLS))
        return model

    return played


def outcomes(run: Run) -> list[tuple[str, bool, str]]:
    """Return of each call, in order, the reason, whether it was applied before, and the rule."""
    return [_outcome(call) for call in run.calls.all()]


def _outcome(call: Call) -> tuple[str, bool, str]:
    outcome = call.outcome or {}
    return outcome["reason"], outcome["already_applied"], call.rule


def lower(run: Run, amount: str, reviewer: User) -> None:
    """Approve what the run waits for with another amount, and let it go on."""
    review = Review.objects.get(run_id=run.pk)
    # What a reviewer may change is the affair of the subject's own tests.
    review_approve(review_id=review.pk, actor=reviewer, channel="desk")
    Review.objects.filter(pk=review.pk).update(changes={"amount": amount})
    work.run_work(run.pk)
    run.refresh_from_db()


def test_the_repeat_of_a_success_gets_its_first_outcome(
    play: Play, say: Say, effects: list[str]
) -> None:
    play(
        [("probe_pay", {"amount": "5", "remaining": "pay 6"})],
        [("probe_pay", {"amount": "5"}), ("probe_pay", {"amount": "6"})],
    )
    run = say("pay 5 and 6")
    assert effects == ["pay 5", "pay 6"]
    assert outcomes(run) == [
        ("completed", False, "read"),
        ("completed", True, "repeat"),
        ("completed", False, "read"),
    ]
    assert run.answers.get().text == "Paid 5.\n\nPaid 6."


def test_the_repeat_of_a_failure_for_good_is_not_tried_again_nor_called_applied(
    play: Play, say: Say, made: list[str], effects: list[str]
) -> None:
    play(
        [("probe_card", {"amount": "5"}), ("probe_pay", {"amount": "6"})],
        [("probe_card", {"amount": "5"})],
    )
    run = say("charge 5 and pay 6")
    assert (made, effects) == (["card 5"], ["pay 6"])
    assert outcomes(run)[-1] == ("fatal", False, "repeat")
    assert run.stop.rule == "fatal"


def test_a_twin_of_a_failure_in_one_message_is_not_executed_nor_called_applied(
    play: Play, say: Say, made: list[str]
) -> None:
    play([("probe_card", {"amount": "5"}), ("probe_card", {"amount": "5"})])
    run = say("charge 5")
    assert made == ["card 5"]
    assert outcomes(run) == [("fatal", False, "read"), ("fatal", False, "repeat")]
    assert run.answers.get().text == "The card was declined for 5."


def test_a_look_up_is_made_each_time_it_is_asked(play: Play, say: Say, made: list[str]) -> None:
    look = ("probe_count", {"key": "Ana"})
    play([look, look], [look], "found")
    run = say("find Ana")
    assert made == ["look Ana"] * 3
    assert {applied for _reason, applied, _rule in outcomes(run)} == {False}


def test_what_a_reviewer_has_changed_is_not_asked_for_again(
    play: Play, say: Say, made: list[str], maria: User
) -> None:
    play(
        [("probe_lowered", {"amount": "80"}), ("probe_look", {"key": "Ana"})],
        [("probe_lowered", {"amount": "80"})],
    )
    run = say("refund 80 and find Ana")
    lower(run, "50", maria)
    assert made == ["refund 50"]
    assert outcomes(run)[-1] == ("policy_block", False, "repeat.changed")
    assert run.stop.rule == "policy_block"
    assert Review.objects.count() == 1


def test_the_changed_amount_itself_has_its_outcome_when_it_is_asked_for(
    play: Play, say: Say, made: list[str], maria: User
) -> None:
    play(
        [("probe_lowered", {"amount": "80"}), ("probe_look", {"key": "Ana"})],
        [("probe_lowered", {"amount": "50"})],
    )
    run = say("refund 80 and find Ana")
    lower(run, "50", maria)
    assert made == ["refund 50"]
    assert outcomes(run)[-1] == ("completed", True, "repeat")


@pytest.mark.parametrize("amount", ["50", "13"])
def test_a_retry_does_not_ask_again_for_what_a_reviewer_has_changed(
    play: Play, say: Say, made: list[str], maria: User, amount: str
) -> None:
    """Whatever came of the changed call: 50 went through, 13 was refused by the processor."""
    play(
        [("probe_lowered", {"amount": "80"}), ("probe_look", {"key": "Ana"})],
        ModelUnavailable("down"),
        [("probe_lowered", {"amount": "80"})],
    )
    run = say("refund 80 and find Ana")
    lower(run, amount, maria)
    assert run.state == RunState.FAILED

    again = services.run_retry(run=run, actor=run.requester)
    work.run_work(again.pk)

    again.refresh_from_db()
    assert made == [f"refund {amount}"]
    assert outcomes(again) == [("policy_block", False, "repeat.changed")]
    assert Review.objects.count() == 1


def test_a_retry_gives_a_success_its_first_outcome_and_looks_up_anew(
    play: Play, say: Say, made: list[str], effects: list[str], tom: User
) -> None:
    both = [("probe_pay", {"amount": "5"}), ("probe_count", {"key": "Ana"})]
    play(both, ModelUnavailable("down"), both, "done")
    run = say("pay 5 and find Ana")
    again = services.run_retry(run=run, actor=tom)
    work.run_work(again.pk)
    again.refresh_from_db()
    assert (effects, made) == (["pay 5"], ["look Ana"] * 2)
    assert outcomes(again) == [("completed", True, "repeat"), ("completed", False, "read")]
    assert [call.state for call in again.calls.all()] == [CallState.DONE] * 2
