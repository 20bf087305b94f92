"""What one run may use: every limit ends it with a record that names limit, used and allowed."""

from __future__ import annotations

import runpy
from collections.abc import Callable
from datetime import timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.utils import timezone

from agent_core.budget import Limits
from agent_core.chat_models.scripted import ScriptedModel, calls
from agent_core.errors import ModelUnavailable
from agent_core.graph import graph_compile, recursion_limit
from agent_core.harness.memory import MemoryHost, context_make
from agent_core.harness.probes import PROBES, RIGHT
from agent_core.host import Parts
from agent_core.runs import claims, services, work
from agent_core.runs.django_host import DjangoHost
from agent_core.runs.models import Call, ModelCall, Run, StopRecord
from agent_core.runs.states import RunState
from agent_core.runs.wording import explain
from agent_core.toolset import Toolset
from config.env import SettingRefused
from reviews.models import Review
from reviews.services import review_approve
from tests.house.pages import page
from tests.house.tree import ROOT
from tests.runs.scripting import ScriptedModel as Scripted

Play = Callable[..., Scripted]
Say = Callable[[str], Run]
Limit = Callable[..., None]

LOOK = [("probe_look", {"key": "Ana"})]
SLOW = [("probe_slow", {"amount": "5"})]


def pay(amount: str, remaining: str = "") -> list[tuple[str, dict[str, str]]]:
    """Pay an amount, perhaps with something still open."""
    more = {"remaining": remaining} if remaining else {}
    return [("probe_pay", {"amount": amount, **more})]


@pytest.fixture
def limit(settings: Any) -> Limit:
    """Set limits of a run; the others stay."""
    usual = dict(settings.RUN_LIMITS)

    def set_limits(**limits: int) -> None:
        settings.RUN_LIMITS = {**usual, **limits}

    return set_limits


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> Callable[[int], None]:
    """Return a way to let seconds pass for the host without waiting for them."""
    passed = [0]
    now = timezone.now
    stopped = SimpleNamespace(now=lambda: now() + timedelta(seconds=passed[0]))
    monkeypatch.setattr(claims, "timezone", stopped)

    def let_pass(seconds: int) -> None:
        passed[0] += seconds

    return let_pass


def used_up(record: StopRecord) -> tuple[str, str, int, int]:
    """Return the rule of a record with the limit it names, how much was used and allowed."""
    evidence = record.evidence
    return record.rule, evidence["limit"], evidence["used"], evidence["allowed"]


@pytest.mark.parametrize("allowed", [1, 2])
def test_model_calls_end_the_run_at_their_limit(
    script: Play, say: Say, limit: Limit, allowed: int
) -> None:
    limit(model_calls=allowed)
    model = script(*[LOOK] * 3)
    record = say("find Ana").stop
    assert used_up(record) == ("budget", "model_calls", allowed, allowed)
    assert len(model.requests) == record.model_calls_made == allowed
    assert f"model calls: {allowed} of {allowed}" in explain(record)["rule_words"]


@pytest.mark.parametrize("allowed", [1, 2])
def test_tool_calls_end_the_run_at_their_limit(
    script: Play, say: Say, limit: Limit, allowed: int
) -> None:
    limit(tool_calls=allowed)
    model = script(*[LOOK] * 3)
    record = say("find Ana").stop
    assert used_up(record) == ("budget", "tool_calls", allowed, allowed)
    assert record.run.calls.count() == len(model.requests) == allowed


@pytest.mark.parametrize(("allowed", "made"), [(1, 1), (15, 1), (16, 2)])
def test_tokens_are_held_against_their_limit_before_each_model_call(
    script: Play, say: Say, limit: Limit, allowed: int, made: int
) -> None:
    limit(tokens=allowed)
    model = script(*[LOOK] * 3)
    record = say("find Ana").stop
    assert used_up(record) == ("budget", "tokens", 15 * made, allowed)
    assert len(model.requests) == made


@pytest.mark.parametrize("allowed", [1, 2])
def test_tries_of_one_call_end_the_run_at_their_limit(
    script: Play, say: Say, limit: Limit, allowed: int
) -> None:
    limit(tries=allowed)
    script(*[SLOW] * 3)
    record = say("pay slowly").stop
    assert used_up(record) == ("budget", "tries", allowed, allowed)
    assert record.run.calls.count() == allowed
    assert record.not_done == ["Doing slow (outcome unknown, being checked)"]


def test_working_time_ends_the_run_at_its_limit(
    script: Play, say: Say, limit: Limit, clock: Callable[[int], None], monkeypatch: Any
) -> None:
    limit(seconds=30)
    model = script(*[LOOK] * 3)
    after_each_call(monkeypatch, lambda: clock(20))
    record = say("find Ana").stop
    assert used_up(record)[:2] == ("budget", "seconds")
    assert record.evidence["used"] >= 40
    assert len(model.requests) == 2


def test_waiting_for_people_is_not_working_time(
    script: Play, say: Say, limit: Limit, clock: Callable[[int], None], maria: User
) -> None:
    limit(seconds=30)
    script([("probe_refund", {"amount": "5"}), *LOOK], "Refunded, and Ana found.")
    run = say("refund 5 and find Ana")
    assert run.state == RunState.WAITING
    clock(3600)
    review_approve(review_id=Review.objects.get().pk, actor=maria, channel="desk")
    clock(3600)
    work.run_work(run.pk)
    run.refresh_from_db()
    assert (run.stop.rule, run.worked_seconds < 30) == ("answered", True)


def test_work_before_a_pause_counts_after_it(
    script: Play, say: Say, limit: Limit, maria: User
) -> None:
    limit(model_calls=1)
    script([("probe_refund", {"amount": "5"}), *LOOK])
    run = say("refund 5 and find Ana")
    review_approve(review_id=Review.objects.get().pk, actor=maria, channel="desk")
    work.run_work(run.pk)
    run.refresh_from_db()
    assert used_up(run.stop) == ("budget", "model_calls", 1, 1)
    assert run.answers.get().text.endswith("\n\nRefunded 5.")
    assert run.stop.done == ["Did refund"]


def test_money_that_moved_before_the_limit_is_told(
    script: Play, say: Say, limit: Limit, effects: list[str]
) -> None:
    limit(model_calls=2)
    script(pay("5", remaining="pay 6"), [*pay("6"), *SLOW])
    run = say("pay 5, then 6 and slowly 5")
    assert effects == ["pay 5", "pay 6"]
    assert used_up(run.stop) == ("budget", "model_calls", 2, 2)
    assert run.stop.done == ["Paid 5", "Paid 6"]
    assert run.stop.not_done == ["Doing slow (outcome unknown, being checked)"]
    said = run.answers.get().text
    assert said.startswith(
        "I stopped here because the limit for model calls was reached (used 2, allowed 2)."
    )
    assert "Paid 5.\n\nPaid 6.\n\nIt is being checked." in said


def test_a_twin_in_one_message_is_no_further_try(script: Play, say: Say, limit: Limit) -> None:
    limit(tries=2)
    script([*SLOW, *SLOW], "It is being checked.")
    run = say("pay slowly")
    assert (run.stop.rule, run.stop.model_calls_made) == ("answered", 2)


def test_what_succeeded_and_is_asked_again_is_no_try_that_failed(
    script: Play, say: Say, limit: Limit, effects: list[str]
) -> None:
    limit(tries=2)
    script(pay("5", remaining="pay 6"), pay("5", remaining="pay 6"), pay("6"))
    run = say("pay 5 and 6")
    assert effects == ["pay 5", "pay 6"]
    assert (run.stop.rule, run.stop.done) == ("completed", ["Paid 5", "Paid 6"])


def test_several_calls_that_do_not_fit_in_one_message_cost_one_try(
    script: Play, say: Say, limit: Limit, effects: list[str]
) -> None:
    limit(tries=2)
    script([("probe_pay", "{"), ("probe_pay", {"sum": "6"})], pay("5"))
    run = say("pay 5")
    assert (run.stop.rule, effects) == ("completed", ["pay 5"])


def test_calls_that_do_not_fit_end_the_run_when_the_tries_are_used_up(
    script: Play, say: Say, limit: Limit
) -> None:
    limit(tries=2)
    script(*[[("probe_pay", {"sum": "6"})]] * 3)
    assert used_up(say("pay 6").stop) == ("budget", "tries", 2, 2)


def test_a_retry_has_a_budget_of_its_own_and_what_was_done_before_costs_nothing(
    script: Play, say: Say, limit: Limit, effects: list[str], tom: User
) -> None:
    limit(model_calls=2, tool_calls=2, tries=2)
    script(
        pay("5", remaining="pay 6"),
        ModelUnavailable("down"),
        pay("5", remaining="pay 6"),
        pay("6"),
    )
    failed = say("pay 5 and 6")
    again = services.run_retry(run=failed, actor=tom)
    work.run_work(again.pk)
    again.refresh_from_db()
    assert effects == ["pay 5", "pay 6"]
    assert (again.stop.rule, again.stop.done) == ("completed", ["Paid 5", "Paid 6"])


def test_a_polish_beyond_the_limits_is_left_out_and_the_record_says_so(
    script: Play, say: Say, limit: Limit, settings: Any
) -> None:
    settings.STOP_MODE = "polish"
    limit(model_calls=1)
    model = script(pay("5"))
    record = say("pay 5").stop
    assert (record.rule, record.evidence["polish"], len(model.requests)) == (
        "completed",
        "no budget",
        1,
    )


def test_a_measured_run_ends_at_its_limit_and_tells_what_was_done(
    script: Play, say: Say, limit: Limit, settings: Any
) -> None:
    settings.STOP_MODE = "never"
    limit(model_calls=1)
    script(pay("5"))
    record = say("pay 5").stop
    assert used_up(record) == ("budget", "model_calls", 1, 1)
    assert (record.done, record.model_calls_saved) == (["Paid 5"], 0)


def test_a_high_limit_is_reached_before_the_frameworks_own() -> None:
    limits = Limits(model_calls=60, tool_calls=1000, tokens=10**6)
    host = MemoryHost(context_make(RIGHT))
    model = ScriptedModel(steps=[calls(("lookup", {"thing": "T-1"}))], repeat=True)
    parts = Parts(host=host, model=model, toolset=Toolset(PROBES), limits=limits)
    graph_compile(None).invoke({}, {"recursion_limit": recursion_limit(limits)}, context=parts)
    (end,) = host.ends
    assert (end.rule, end.evidence["limit"], end.model_calls_made) == ("budget", "model_calls", 60)


@pytest.mark.parametrize(
    ("value", "sentence"),
    [
        ("tries=0", "In RUN_LIMITS, tries must be at least 1\\."),
        ("model_calls=0", "In RUN_LIMITS, model_calls must be between 1 and 32767\\."),
        ("model_calls=32768", "model_calls must be between 1 and 32767"),
        ("tokens=-1", "must look like"),
        ("tokens=1_000", "must look like"),
        ("tries=\u0663", "must look like"),
        ("steps=3", "knows model_calls"),
        ("tries=3,tries=4", "twice"),
    ],
)
def test_an_odd_limit_is_refused_in_a_sentence(
    monkeypatch: pytest.MonkeyPatch, value: str, sentence: str
) -> None:
    monkeypatch.setenv("RUN_LIMITS", value)
    with pytest.raises(SettingRefused, match=sentence):
        runpy.run_path(str(ROOT / "config/settings/agent.py"))


@pytest.mark.parametrize("name", ["tool_calls", "tokens", "seconds", "tries"])
def test_a_limit_may_be_as_large_as_somebody_wants(
    monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    monkeypatch.setenv("RUN_LIMITS", f"{name}=100000000000")
    limits = runpy.run_path(str(ROOT / "config/settings/agent.py"))["RUN_LIMITS"]
    assert limits[name] == 100_000_000_000


@pytest.mark.django_db
def test_model_calls_are_limited_to_what_a_row_can_count_and_the_documents_say_so(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    columns = (ModelCall._meta.get_field("number"), Call._meta.get_field("batch"))
    most = {connection.ops.integer_field_range(each.get_internal_type())[1] for each in columns}
    monkeypatch.setenv("RUN_LIMITS", f"model_calls={min(most)}")
    limits = runpy.run_path(str(ROOT / "config/settings/agent.py"))["RUN_LIMITS"]
    assert [limits["model_calls"]] == list(most)
    for name in ("README.md", "docs/stop-reasons.md"):
        assert f"`model_calls` at most {limits['model_calls']}" in page(name)


def after_each_call(monkeypatch: pytest.MonkeyPatch, do: Callable[[], None]) -> None:
    """Let something happen each time a call has ended."""
    ended = DjangoHost.call_ended

    def watched(self: Any, *args: Any) -> None:
        ended(self, *args)
        do()

    monkeypatch.setattr(DjangoHost, "call_ended", watched)
