"""What a stop has saved: the one model call that was not made, with its counted prompt."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from django.contrib.auth.models import User
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from langchain_core.messages.utils import count_tokens_approximately

from agent_core.chat_models.counting import PromptTokens, next_prompt
from agent_core.chat_models.scripted import ScriptedModel
from agent_core.contract import Artifact, RunContext
from agent_core.errors import ModelUnavailable
from agent_core.runs import services, work
from agent_core.runs.models import Run, StopRecord
from agent_core.runs.wording import calls_in_words, explain
from agent_core.toolset import Toolset
from tickets.tools import TOOLS

Play = Callable[..., ScriptedModel]
Say = Callable[[str], Run]

TICKET = "open a ticket: the parcel came crushed"


def _breaks(context: RunContext, *, subject: str) -> tuple[str, Artifact]:
    raise RuntimeError("breaks on purpose")


@pytest.fixture
def asked_offline(tom: User, settings: Any) -> Callable[[str, str], Run]:
    """Ask in a new conversation with the offline model, in the given stop mode."""
    settings.CHAT_MODEL = "offline:planner@0"

    def ask(text: str, mode: str) -> Run:
        settings.STOP_MODE = mode
        conversation = services.conversation_start(owner=tom)
        run = services.message_send(conversation=conversation, sender=tom, text=text)
        work.run_work(run.pk)
        run.refresh_from_db()
        return run

    return ask


@pytest.mark.parametrize(("breaks", "rule"), [(False, "completed"), (True, "fatal")])
def test_what_a_stop_saves_is_what_the_next_model_call_reads_when_nothing_stops_it(
    asked_offline: Callable[[str, str], Run],
    monkeypatch: pytest.MonkeyPatch,
    breaks: bool,
    rule: str,
) -> None:
    tools = [replace(tool, run=_breaks) if breaks else tool for tool in TOOLS]
    monkeypatch.setattr(work, "toolset", lambda: Toolset(tools))

    stopped, measured = asked_offline(TICKET, "hard"), asked_offline(TICKET, "never")

    assert measured.stop.evidence["would_have_stopped"][0] == {"rule": rule, "batch": 1}
    second = measured.model_calls.get(number=2)
    assert (stopped.stop.rule, stopped.stop.model_calls_saved) == (rule, 1)
    assert stopped.stop.tokens_saved == second.input_tokens > 0
    assert not stopped.stop.tokens_estimated
    assert _saved(measured.stop) == (0, 0)


def test_a_model_that_cannot_count_gives_an_estimate_and_the_record_says_so(
    script: Play, say: Say
) -> None:
    script([("probe_pay", {"amount": "5"})])

    record = say("pay 5").stop

    (call,) = record.run.calls.all()
    told = ToolMessage(content=call.content, name=call.tool, tool_call_id=str(call.pk))
    assert record.tokens_saved == 10 + 5 + count_tokens_approximately([told])
    assert record.tokens_estimated


def test_a_provider_that_reports_no_tokens_leaves_the_whole_prompt_to_be_estimated() -> None:
    window = [HumanMessage("pay 5"), AIMessage(""), ToolMessage("Paid 5.", tool_call_id="1")]

    counted = next_prompt(ScriptedModel(steps=[]), window, read=0, made=0)

    assert counted == PromptTokens(tokens=count_tokens_approximately(window), estimated=True)


def test_a_refusal_saves_the_call_in_which_it_would_be_told(script: Play, say: Say) -> None:
    script([("probe_blocked", {"amount": "5"})])

    record = say("pay 5").stop

    assert (record.rule, record.model_calls_saved, record.tokens_saved > 0) == (
        "policy_block",
        1,
        True,
    )


def test_a_measured_run_saves_nothing_whatever_ended_it(
    script: Play, say: Say, settings: Any
) -> None:
    settings.STOP_MODE = "never"
    script([("probe_blocked", {"amount": "5"})])
    run = say("pay 5")
    assert (run.stop.rule, *_saved(run.stop)) == ("policy_block", 0, 0)
    assert explain(run.stop)["notes"] == [
        "Measured without stopping: what ended it does so in every mode."
    ]


def test_an_end_that_spares_no_model_call_saves_nothing(
    script: Play, say: Say, settings: Any
) -> None:
    script("hello")
    assert _saved(say("hello").stop) == (0, 0)

    script(ModelUnavailable("down"))
    assert _saved(say("hello").stop) == (0, 0)

    settings.RUN_LIMITS = {**settings.RUN_LIMITS, "model_calls": 1}
    script([("probe_look", {"key": "Ana"})])
    record = say("find Ana").stop
    assert (record.rule, *_saved(record)) == ("budget", 0, 0)


def test_a_rewritten_answer_saves_nothing_because_its_call_replaces_the_saved_one(
    script: Play, say: Say, settings: Any
) -> None:
    settings.STOP_MODE = "polish"
    script([("probe_pay", {"amount": "5"})], "Paid 5.")

    record = say("pay 5").stop

    assert (record.model_calls_made, *_saved(record)) == (2, 0, 0)


@pytest.mark.parametrize(
    ("figures", "said"),
    [
        ((1, 1, 1240, False), "1 model call made, 1 saved (1,240 tokens)"),
        ((1, 1, 1240, True), "1 model call made, 1 saved (about 1,240 tokens)"),
        ((2, 1, 1, False), "2 model calls made, 1 saved (1 token)"),
        # A record of a time when tokens were not counted yet.
        ((2, 1, 0, False), "2 model calls made, 1 saved"),
        ((2, 0, 0, False), "2 model calls made"),
        ((0, 0, 0, False), "0 model calls made"),
    ],
)
def test_the_saving_is_told_in_plain_words(figures: tuple[int, int, int, bool], said: str) -> None:
    names = ("made", "saved", "tokens", "estimated")
    assert calls_in_words(**dict(zip(names, figures, strict=True))) == said  # type: ignore[arg-type]


def _saved(record: StopRecord) -> tuple[int, int]:
    return record.model_calls_saved, record.tokens_saved
