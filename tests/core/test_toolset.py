"""The toolset: what the model is offered, and the one boundary that makes failures outcomes."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Annotated, Any
from uuid import uuid4

import pytest
from langchain_core.messages import ToolMessage
from langchain_core.utils.function_calling import convert_to_openai_tool
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.errors import GraphBubbleUp, GraphInterrupt
from langgraph.types import Command
from pydantic import BaseModel

from agent_core.budget import Limits
from agent_core.chat_models.scripted import ScriptedModel, calls, says
from agent_core.contract import (
    Artifact,
    RunContext,
    Tool,
    completed,
    fatal,
    outcome_read,
    policy_block,
    transient,
)
from agent_core.errors import ContractBroken, ControlError, RunCancelled, StaleAttempt
from agent_core.graph import graph_compile
from agent_core.harness.memory import MemoryHost, context_make
from agent_core.harness.probes import PROBES, RIGHT, probe
from agent_core.host import Parts
from agent_core.toolset import REMAINING, ArgumentsBad, Toolset

CONTEXT = replace(context_make(RIGHT), call_id=uuid4())


def _tool(run: Callable[..., tuple[str, Artifact]], name: str = "note") -> Tool:
    return replace(probe("receipt"), name=name, run=run)


def _raising(error: BaseException) -> Tool:
    def run(context: RunContext, *, thing: str) -> tuple[str, Artifact]:
        """Break."""
        raise error

    return _tool(run)


def _executed(tool: Tool, *passes: type[BaseException], **arguments: Any) -> Any:
    return Toolset([tool]).executed(tool, arguments or {"thing": "T"}, CONTEXT, passes)


# The boundary


@pytest.mark.parametrize("error", [RuntimeError("secret-1"), KeyError("secret-1"), TimeoutError()])
def test_whatever_a_tool_raises_is_final_and_its_words_stay_in_the_log(
    error: Exception, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.ERROR):
        message = _executed(_raising(error))
    outcome = outcome_read(message.artifact)
    assert outcome
    assert (outcome.reason, outcome.code, outcome.stop) == ("fatal", "tool.failed", True)
    reference = outcome.data["reference"]
    assert reference in message.content
    assert "secret" not in message.content
    assert type(error).__name__ not in message.content
    (record,) = caplog.records
    assert record.__dict__["reference"] == reference
    assert record.exc_info
    assert record.exc_info[1] is error


@pytest.mark.parametrize(
    "error",
    [RunCancelled(), StaleAttempt(), ControlError(), GraphInterrupt(()), GraphBubbleUp()],
    ids=lambda error: type(error).__name__,
)
def test_what_steers_the_run_or_the_graph_passes(error: Exception) -> None:
    with pytest.raises(type(error)):
        _executed(_raising(error))


def test_only_the_errors_that_the_host_names_pass_beside_them() -> None:
    class DatabaseLost(Exception):
        pass

    with pytest.raises(DatabaseLost):
        _executed(_raising(DatabaseLost()), DatabaseLost)
    assert _executed(_raising(DatabaseLost())).artifact["code"] == "tool.failed"


def test_arguments_that_do_not_fit_may_be_asked_again() -> None:
    message = _executed(probe("receipt"), things=1)
    assert message.artifact["reason"] == "transient"
    assert message.artifact["code"] == "call.invalid"


GOOD = completed("a.done", stop=True, data={"summary": "5.00 EUR"})
CLASHING = ToolMessage("Fine.", tool_call_id="another", artifact=GOOD)


def _returning(returned: Any) -> Tool:
    def run(context: RunContext, *, thing: str) -> tuple[str, Artifact]:
        """Return it."""
        made: tuple[str, Artifact] = returned() if callable(returned) else returned
        return made

    return _tool(run)


@pytest.mark.parametrize(
    "returned",
    [
        None,
        "Fine.",
        GOOD,
        ["Fine.", GOOD],
        ("Fine.", GOOD, 1),
        ("Fine.",),
        Command(goto="__end__"),
        CLASHING,
        [CLASHING],
    ],
    ids=str,
)
def test_what_is_not_a_text_with_an_artifact_is_final(returned: Any) -> None:
    message = _executed(_returning(returned))
    assert message.artifact["code"] == "tool.failed"
    assert message.artifact["data"]["reference"] in message.content
    assert message.tool_call_id == str(CONTEXT.call_id)


WORDLESS: list[Any] = [
    None,
    "",
    " \n",
    5,
    b"Fine.",
    {"amount": 5},
    [],
    [{"type": "text", "text": None}],
    ["Fine.", {"type": "image", "url": "x"}],
    Command(goto="__end__"),
    CLASHING,
    [CLASHING],
    lambda: ((letter for letter in "Fine."), GOOD),
]


@pytest.mark.parametrize("content", WORDLESS, ids=lambda each: type(each).__name__)
def test_what_is_done_is_told_in_the_tools_own_words_when_it_brought_none(
    content: Any, caplog: pytest.LogCaptureFixture
) -> None:
    """To call it failed would be worse: its effect has happened, and the artifact says so."""
    with caplog.at_level(logging.ERROR):
        message = _executed(_returning(content if callable(content) else (content, GOOD)))
    assert (message.content, message.artifact) == ("Tried receipt.", GOOD)
    assert message.tool_call_id == str(CONTEXT.call_id)
    assert [record.msg for record in caplog.records] == ["tool.textless"]


@pytest.mark.parametrize(
    "artifact", [None, transient("a.busy"), fatal("a.declined"), policy_block("a.forbidden")]
)
@pytest.mark.parametrize("content", [None, "", {"amount": 5}, Command(goto="__end__")], ids=str)
def test_what_is_not_known_to_be_done_and_brings_no_text_is_final(
    content: Any, artifact: Any
) -> None:
    message = _executed(_returning((content, artifact)))
    assert message.artifact["code"] == "tool.failed"
    assert message.artifact["data"]["reference"] in message.content


@pytest.mark.parametrize(
    "content",
    [
        [{"type": "text", "text": "Paid "}, {"type": "text", "text": "5.00 EUR."}],
        ["Paid ", {"type": "text", "text": "5.00 EUR."}],
        ["Paid 5.00 EUR."],
    ],
)
def test_text_in_blocks_is_joined(content: Any) -> None:
    assert _executed(_returning((content, GOOD))).content == "Paid 5.00 EUR."


def test_signs_in_a_text_that_no_row_can_hold_are_marked() -> None:
    message = _executed(_returning(("PAY-\x001\ud800.", GOOD)))
    assert message.content == "PAY-\ufffd1\ufffd."


class Stranger(dict[str, Any]):
    """A class of somebody else that breaks when it is looked at."""

    def items(self) -> Any:
        raise RuntimeError("not now")


class Typed(BaseModel):
    reason: str = "completed"


def _ring() -> dict[str, Any]:
    ring: dict[str, Any] = {}
    ring["again"] = ring
    return ring


UNSTORABLE: list[Any] = [
    {**GOOD, "data": {"n": 2**70}},
    {**GOOD, "data": {"n": 1.5}},
    {**GOOD, "data": {"lock": threading.Lock()}},
    {**GOOD, "data": {"x": {1, 2}}},
    {**GOOD, "data": {b"x": 1}},
    {**GOOD, "data": _ring()},
    {**GOOD, "data": Stranger(a=1)},
    Typed(),
    object(),
]


@pytest.mark.parametrize("artifact", UNSTORABLE, ids=lambda each: type(each).__name__)
def test_an_artifact_that_cannot_be_stored_is_missing_and_the_log_says_so(
    artifact: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING):
        message = _executed(_returning(("Fine.", artifact)))
    assert (message.content, message.artifact) == ("Fine.", None)
    assert [record.msg for record in caplog.records] == ["artifact.unstorable"]


@pytest.mark.parametrize(
    "returned",
    [
        (Command(goto="__end__"), GOOD),
        Command(goto="__end__"),
        lambda: ("Fine.", completed("a.b", stop=True, data={"n": 2**70})),
        *(("Fine.", artifact) for artifact in UNSTORABLE),
    ],
)
def test_a_turn_outlives_whatever_a_tool_returns_and_does_its_effect_once(returned: Any) -> None:
    """What breaks the turn behind the effect does the effect again at every resume."""
    effects: list[str] = []

    def run(context: RunContext, *, thing: str) -> tuple[str, Artifact]:
        """Do it."""
        effects.append(thing)
        made: tuple[str, Artifact] = returned() if callable(returned) else returned
        return made

    host = MemoryHost(context_make(RIGHT))
    parts = Parts(
        host=host,
        model=ScriptedModel(steps=[calls(("note", {"thing": "T"})), says("That is unclear.")]),
        toolset=Toolset([_tool(run)]),
        limits=Limits(),
    )
    config: Any = {"configurable": {"thread_id": "t"}}
    graph_compile(InMemorySaver()).invoke({}, config, context=parts, durability="sync")
    assert effects == ["T"]
    assert len(host.ends) == 1


def test_an_error_of_reading_inside_a_tool_is_no_bad_argument_of_the_model() -> None:
    """The model would be told to ask again, and the effect be done again."""

    def run(context: RunContext, *, thing: str) -> tuple[str, Artifact]:
        """Read what a service has answered."""
        Typed.model_validate({"reason": 5})
        return "Fine.", GOOD

    assert _executed(_tool(run)).artifact["code"] == "tool.failed"


def test_the_reply_carries_our_call_id_and_is_masked_before_anyone_stores_it() -> None:
    def run(context: RunContext, *, thing: str) -> tuple[str, Artifact]:
        """Tell a card number."""
        return "Card 4111 1111 1111 1111.", completed("a.b", stop=True)

    message = _executed(_tool(run))
    assert message.content == "Card [card number removed]."
    assert message.tool_call_id == str(CONTEXT.call_id)
    assert message.artifact == completed("a.b", stop=True)


# What the model is offered, and what of its calls is taken


def test_only_tools_whose_right_is_held_are_offered() -> None:
    other = replace(probe("lookup"), right="other.use")
    toolset = Toolset([probe("receipt"), other])
    assert [tool.name for tool in toolset.offered(frozenset({RIGHT}))] == ["receipt"]
    assert toolset.offered(frozenset()) == []


def test_a_tool_that_may_stop_asks_what_remains_and_a_look_up_does_not() -> None:
    offered = Toolset([probe("receipt"), probe("lookup")]).offered(frozenset({RIGHT}))
    schemas = [convert_to_openai_tool(tool)["function"]["parameters"] for tool in offered]
    assert [sorted(schema["properties"]) for schema in schemas] == [[REMAINING, "thing"], ["thing"]]
    assert [schema["required"] for schema in schemas] == [["thing"], ["thing"]]


@pytest.mark.parametrize(
    ("said", "remaining"), [("a ticket", True), ("", False), ("  ", False), (None, False)]
)
def test_what_remains_is_read_and_taken_off_the_arguments(
    said: str | None, remaining: bool
) -> None:
    checked = Toolset(PROBES).checked("receipt", {"thing": "T", REMAINING: said})
    assert (checked.arguments, checked.remaining) == ({"thing": "T"}, remaining)


def test_null_where_nothing_has_to_be_given_means_the_default() -> None:
    def run(
        context: RunContext, *, thing: str, times: int = 1, note: str | None = "none"
    ) -> tuple[str, Artifact]:
        """Note a thing."""
        return "Noted.", GOOD

    toolset = Toolset([_tool(run)])
    given = {"thing": "T", "times": None, "note": None}
    assert toolset.checked("note", given).arguments == {"thing": "T", "times": 1, "note": "none"}
    with pytest.raises(ArgumentsBad, match="thing: Input should be a valid string"):
        toolset.checked("note", {"thing": None})


def test_a_number_where_text_is_asked_for_keeps_what_was_written() -> None:
    assert Toolset(PROBES).checked("receipt", {"thing": 50}).arguments == {"thing": "50"}


@pytest.mark.parametrize(
    ("name", "arguments", "sentence"),
    [
        ("receipts", {"thing": "T"}, "There is no such tool."),
        ("receipt", {}, "The details given do not fit: thing: Field required."),
        ("receipt", {"thing": "T", "extra": 1}, "extra: Extra inputs are not permitted."),
        ("receipt", {"thing": ["T"]}, "thing: Input should be a valid string."),
    ],
)
def test_a_call_that_does_not_fit_is_refused_in_words_for_the_model(
    name: str, arguments: dict[str, Any], sentence: str
) -> None:
    with pytest.raises(ArgumentsBad) as refused:
        Toolset(PROBES).checked(name, arguments)
    assert sentence in str(refused.value)


def test_the_words_beside_an_argument_are_its_description() -> None:
    def run(
        context: RunContext, *, thing: Annotated[str, "What to note."], times: int = 1
    ) -> tuple[str, Artifact]:
        """Note a thing."""
        return "", completed("a.b", stop=True)

    (offered,) = Toolset([_tool(run)]).offered(frozenset({RIGHT}))
    schema = convert_to_openai_tool(offered)["function"]
    assert schema["description"] == "Note a thing."
    assert schema["parameters"]["properties"]["thing"]["description"] == "What to note."
    assert schema["parameters"]["properties"]["times"]["default"] == 1


# What cannot be registered


def test_two_tools_of_one_name_are_refused() -> None:
    with pytest.raises(ContractBroken, match="Two tools are called receipt"):
        Toolset([probe("receipt"), probe("receipt")])


def test_a_tool_with_an_argument_for_what_remains_is_refused() -> None:
    def run(context: RunContext, *, remaining: str) -> tuple[str, Artifact]:
        """Take what is not for tools."""
        return "", completed("a.b", stop=True)

    with pytest.raises(ContractBroken, match="must not take an argument named remaining"):
        Toolset([_tool(run)])
