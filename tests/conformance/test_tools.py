"""Every tool that the settings register, on the demo's data: one suite for all of them.

A new tool is picked up by itself. What it is called with stands in `tests/<app>/tool_samples.py`.
"""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection

from agent_core.contract import Tool
from agent_core.errors import StaleAttempt
from agent_core.gate import history_entry, identity_of
from agent_core.runs.services import conversation_start
from agent_core.toolset import REMAINING, Toolset
from knowledge.services import articles_load
from tests.conformance.desk import (
    LONGEST_CONTENT,
    Desk,
    as_read,
    changed,
    inner_words,
    out_of_reach,
    outcome_proved,
    rows_now,
)
from tests.conformance.samples import ToolSample, argument_names, registered, sample_of
from tests.payments.assistant.conftest import agent, lead, samples, wiring
from tests.payments.assistant.stage import Conversation
from tests.payments.processor import Processor, processor, processor_process

__all__ = ["agent", "lead", "processor", "processor_process", "samples", "wiring"]

TOOLS = list(registered())
EFFECTS = [tool for tool in TOOLS if tool.effect]

GARBAGE: dict[str, Any] = {
    "empty": "",
    "blanks": " \t\n\u00a0\u3000 ",
    "long": "x" * 10_000,
    "long-words": "refund me " * 1_000,
    "nul": "PAY-10011\x00",
    "control": "\x01\x02\x1b[31mred\x7f\x85\r\n\u2028",
    "half-a-sign": "\ud83d",
    "script": "<script>alert(1)</script><img src=x onerror=alert(1)>",
    "right-to-left": "\u202e11001-YAP\u202c \u2066\u200f",
    "formula": "=SUM(A1:A9)+cmd|' /C calc'!A0",
    "format": "%s %(text)s {0} {text}",
    "pattern": "'; DROP TABLE payments_payment; -- %_*",
    "another-teams-payment": "PAY-10071",
    "another-teams-invoice": "INV-1007",
    "another-teams-customer": "CUS-1007",
    "another-teams-address": "other-team@example.com",
    "unknown-payment": "PAY-99999",
    "unknown-invoice": "INV-9999",
    "number": 7,
    "nothing": None,
    "list": ["PAY-10011"],
    "mapping": {"payment": "PAY-10011"},
}
# A record of the other team, and one of the same shape that does not exist.
OUT_OF_REACH = [
    ("PAY-10071", "PAY-99971"),
    ("INV-1007", "INV-9997"),
    ("CUS-1007", "CUS-9997"),
    ("other-team@example.com", "nobody-team@example.com"),
]
# What such a text may repeat of what it was given.
REPEATED = {"format": ["{", "}"], "mapping": ["{", "}"], "pattern": ["payments_payment"]}


@pytest.fixture(params=TOOLS, ids=lambda tool: str(tool.name))
def tool(request: pytest.FixtureRequest) -> Tool:
    """Return each registered tool in turn."""
    found: Tool = request.param
    return found


@pytest.fixture(params=EFFECTS, ids=lambda tool: str(tool.name))
def effect(request: pytest.FixtureRequest) -> Tool:
    """Return each tool with a side effect in turn."""
    found: Tool = request.param
    return found


@pytest.fixture
def desk(agent: User, lead: User, processor: Processor) -> Callable[[ToolSample], Desk]:
    """Return a way to begin a stored conversation of the demo's support agent."""
    articles_load()

    def begin(sample: ToolSample) -> Desk:
        stored = conversation_start(owner=agent)
        talk = Conversation(agent, list(sample.words), id=stored.pk, toolset=Toolset(TOOLS))
        return Desk(talk=talk, lead=lead)

    return begin


# What the model and staff read


def test_remaining_is_asked_of_the_tools_that_may_stop_and_taken_by_none(tool: Tool) -> None:
    fields = Toolset([tool]).structured(tool, None).args
    assert (REMAINING in fields) is tool.may_stop
    assert REMAINING not in argument_names(tool)
    assert set(fields) - {REMAINING} == set(argument_names(tool))


def test_the_tool_and_each_argument_are_described_in_words(tool: Tool) -> None:
    structured = Toolset([tool]).structured(tool, None)
    assert len((inspect.getdoc(tool.run) or "").split()) >= 5
    assert structured.description == inspect.getdoc(tool.run)
    for name, schema in structured.args.items():
        assert len(schema.get("description", "").split()) >= 3, name


def test_what_it_is_doing_and_has_done_reads_differently_and_names_no_tool(tool: Tool) -> None:
    assert tool.doing != tool.done
    for words in (tool.doing, tool.done):
        assert words[:1].isupper()
        assert "_" not in words
        assert not any(other.name in words for other in TOOLS)


@pytest.mark.django_db
def test_its_right_exists(tool: Tool) -> None:
    app, _dot, codename = tool.right.partition(".")
    assert Permission.objects.filter(content_type__app_label=app, codename=codename).exists()


# Identity


def test_only_an_effect_has_an_identity(tool: Tool) -> None:
    assert (tool.identity is not None) is tool.effect


def test_the_same_wish_in_other_spellings_is_the_same_and_another_is_not(
    effect: Tool, desk: Callable[[ToolSample], Desk]
) -> None:
    sample = sample_of(effect)
    assert sample.same
    assert sample.other
    talk = desk(sample).talk

    def identity(arguments: Any) -> str:
        checked = talk.toolset.checked(effect.name, arguments)
        return identity_of(effect, talk.context(), checked.arguments)

    wish = identity(sample.arguments)
    assert [identity(spelled) for spelled in sample.same] == [wish] * len(sample.same)
    assert wish not in [identity(other) for other in sample.other]


# The gate


def test_without_its_right_it_is_neither_offered_nor_run(
    tool: Tool, desk: Callable[[ToolSample], Desk]
) -> None:
    sample = sample_of(tool)
    here = desk(sample)
    rights = here.talk.context().rights - {tool.right}
    before = rows_now()
    gated = here.gated(tool, sample.arguments, rights=rights)
    assert (gated.record.verdict, gated.record.rule) == ("block", "right.missing")
    assert gated.result is not None
    assert outcome_proved((gated.result[0], dict(gated.result[1]))).reason == "policy_block"
    assert inner_words(gated.result[0]) == []
    offered = [each.name for each in here.talk.toolset.offered(rights)]
    assert tool.name not in offered
    assert changed(before, rows_now()) == []


def test_what_is_not_found_is_never_blocked(tool: Tool, desk: Callable[[ToolSample], Desk]) -> None:
    sample = sample_of(tool)
    here = desk(sample)
    blind = replace(tool, facts=lambda _context, _arguments: None)
    here.talk.toolset = Toolset([blind])
    gated = here.gated(blind, sample.arguments)
    assert (gated.record.verdict, gated.result) == ("allow", None)


# What it does with anything


def test_the_sample_succeeds(tool: Tool, desk: Callable[[ToolSample], Desk]) -> None:
    sample = sample_of(tool)
    here, before = desk(sample), rows_now()
    content, artifact = here.done(tool, sample.arguments)
    outcome = outcome_proved((content, artifact))
    assert (outcome.reason, outcome.already_applied) == ("completed", False)
    assert outcome.stop is tool.may_stop
    assert inner_words(content) == []
    if not tool.effect:
        assert changed(before, rows_now()) == []


@pytest.mark.parametrize("kind", GARBAGE)
def test_garbage_gets_an_outcome_in_plain_words_and_writes_nothing(
    tool: Tool, kind: str, desk: Callable[[ToolSample], Desk]
) -> None:
    sample, names = sample_of(tool), argument_names(tool)
    calls = [{**sample.arguments, name: GARBAGE[kind]} for name in names]
    if len(names) > 1:
        calls.append(dict.fromkeys(names, GARBAGE[kind]))
    for written in calls:
        here = desk(sample)
        arguments = as_read(tool, written)
        ids, before = here.allowed(tool, arguments), rows_now()
        foreign = out_of_reach(here.talk.user)
        assert foreign
        for content, artifact in (
            here.executed(tool, arguments, *ids),
            here.executed(tool, arguments, *ids),
        ):
            outcome = outcome_proved((content, artifact))
            assert outcome.code != "tool.failed", (written, content)
            assert content.strip()
            assert len(content) <= LONGEST_CONTENT
            repeated = REPEATED.get(kind, [])
            assert [word for word in inner_words(content) if word not in repeated] == [], written
            assert [word for word in foreign if word in content and word != GARBAGE[kind]] == []
            if not tool.effect or outcome.reason != "completed":
                assert changed(before, rows_now()) == [], (written, content)


@pytest.mark.parametrize("begins", ["bound", "unbound"])
@pytest.mark.parametrize(("theirs", "missing"), OUT_OF_REACH)
def test_what_is_another_teams_reads_like_what_is_not_there(
    tool: Tool, theirs: str, missing: str, begins: str, desk: Callable[[ToolSample], Desk]
) -> None:
    sample = sample_of(tool)
    if begins == "unbound":
        sample = replace(sample, words=())
    for name in argument_names(tool):
        said = [
            desk(sample).done(tool, {**sample.arguments, name: key}) for key in (theirs, missing)
        ]
        outcomes = [outcome_proved(each) for each in said]
        assert outcomes[0].reason == outcomes[1].reason, name
        assert outcomes[0].code == outcomes[1].code, name
        if not tool.effect or outcomes[0].reason != "completed":
            texts = [each[0].casefold() for each in said]
            assert texts[0].replace(theirs.casefold(), "…") == texts[1].replace(
                missing.casefold(), "…"
            )
            assert outcomes[0] == outcomes[1], name


# Failures, replays and repeats


@pytest.mark.parametrize(
    ("tool", "statement"),
    [*((tool, "SELECT") for tool in TOOLS), *((tool, "INSERT") for tool in EFFECTS)],
    ids=lambda value: value if isinstance(value, str) else value.name,
)
def test_a_service_that_raises_is_final_with_a_reference_and_nothing_inner(
    tool: Tool,
    statement: str,
    desk: Callable[[ToolSample], Desk],
    caplog: pytest.LogCaptureFixture,
) -> None:
    sample = sample_of(tool)
    here = desk(sample)
    context = here.talk.context(*here.allowed(tool, sample.arguments))
    before = rows_now()
    broken: list[str] = []

    def breaking(execute: Any, sql: str, *rest: Any) -> Any:
        if not broken and sql.startswith(statement):
            broken.append(sql)
            raise RuntimeError(f"inner pi_123 {tool.name}")
        return execute(sql, *rest)

    with connection.execute_wrapper(breaking), caplog.at_level(logging.ERROR):
        said = here.executed_as(context, tool, sample.arguments)
    assert broken
    outcome = outcome_proved(said)
    assert (outcome.reason, outcome.code) == ("fatal", "tool.failed")
    reference = outcome.data["reference"]
    assert f"the reference {reference}." in said[0]
    assert inner_words(said[0]) == []
    assert "inner" not in f"{said[0]} {said[1]}"
    logged = [each for each in caplog.records if each.message == "tool.failed"]
    assert [each.__dict__["reference"] for each in logged] == [reference]
    assert changed(before, rows_now()) == []


def test_an_effect_of_a_worker_that_lost_the_run_passes_the_boundary_and_writes_nothing(
    effect: Tool, desk: Callable[[ToolSample], Desk]
) -> None:
    def fence() -> None:
        raise StaleAttempt

    sample = sample_of(effect)
    here = desk(sample)
    ids, before = here.allowed(effect, sample.arguments), rows_now()
    with pytest.raises(StaleAttempt):
        here.executed(effect, sample.arguments, *ids, fence=fence)
    assert changed(before, rows_now()) == []


def test_a_replay_of_the_same_call_says_the_same_and_writes_nothing(
    tool: Tool, desk: Callable[[ToolSample], Desk]
) -> None:
    sample = sample_of(tool)
    here = desk(sample)
    ids = here.allowed(tool, sample.arguments)
    first, before = here.executed(tool, sample.arguments, *ids), rows_now()
    assert here.executed(tool, sample.arguments, *ids) == first
    assert outcome_proved(first).already_applied is False
    assert changed(before, rows_now()) == []


def test_a_second_call_of_the_run_that_means_the_same_is_already_applied(
    effect: Tool, desk: Callable[[ToolSample], Desk]
) -> None:
    sample = sample_of(effect)
    here = desk(sample)
    record = here.gated(effect, sample.arguments).record
    first = here.done(effect, sample.arguments)
    call = {
        "id": str(uuid4()),
        "tool": effect.name,
        "label": record.label,
        "identity": record.identity,
        "verdict": record.verdict,
        "effect": True,
        "changed": False,
    }
    history = [
        history_entry(
            here.talk.toolset, here.talk.context, call, content=first[0], artifact=first[1]
        )
    ]
    before = rows_now()
    for spelled in (sample.arguments, *sample.same):
        gated = here.gated(effect, spelled, history=history)
        assert gated.result is not None, spelled
        content, artifact = gated.result
        assert (content, artifact) == (first[0], {**first[1], "already_applied": True})
    assert changed(before, rows_now()) == []


def test_a_second_call_that_means_the_same_does_nothing_anew_even_without_the_gate(
    effect: Tool, desk: Callable[[ToolSample], Desk]
) -> None:
    """Where a person had to agree, the used approval is none for a second call."""
    sample = sample_of(effect)
    here = desk(sample)
    call_id, review_id = here.allowed(effect, sample.arguments)
    first, before = here.executed(effect, sample.arguments, call_id, review_id), rows_now()
    for spelled in (sample.arguments, *sample.same):
        content, artifact = here.executed(effect, spelled, uuid4(), review_id)
        outcome = outcome_proved((content, artifact))
        assert inner_words(content) == []
        if review_id is None:
            assert (outcome.reason, outcome.already_applied) == ("completed", True), spelled
            assert outcome.data == outcome_proved(first).data
        else:
            assert (outcome.reason, outcome.code) == ("policy_block", "review.missing"), spelled
    after = rows_now()
    # A call that joined is noted in a table of its own, and nowhere else.
    assert [label for label in changed(before, after) if not label.endswith("Call")] == []
