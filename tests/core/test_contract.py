"""The contract: what an artifact may hold, how it is read, what a tool may be."""

from __future__ import annotations

import enum
import functools
import inspect
import json
import math
from collections.abc import Callable, Mapping
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer

from agent_core.contract import (
    CONTRACT_VERSION,
    DEEPEST,
    REASONS,
    Artifact,
    Outcome,
    RunContext,
    Tool,
    completed,
    fatal,
    outcome_read,
    policy_block,
    transient,
)
from agent_core.errors import ContractBroken
from tests.core.strategies import anything, codes, plain

SOME_ID = UUID("6f1c1f0e-0000-4000-8000-000000000001")


def test_the_vocabulary_is_four_words_and_stays() -> None:
    assert REASONS == ("completed", "transient", "fatal", "policy_block")
    assert CONTRACT_VERSION == 1


@pytest.mark.parametrize(
    ("artifact", "reason", "stop"),
    [
        (completed("a.b", stop=True), "completed", True),
        (completed("a.b", stop=False), "completed", False),
        (transient("a.b"), "transient", False),
        (fatal("a.b"), "fatal", True),
        (policy_block("a.b"), "policy_block", True),
    ],
)
def test_an_artifact_is_a_plain_dict_with_exactly_these_fields(
    artifact: Artifact, reason: str, stop: bool
) -> None:
    assert artifact == {
        "v": 1,
        "reason": reason,
        "stop": stop,
        "code": "a.b",
        "already_applied": False,
        "data": {},
    }
    assert type(artifact) is dict


def test_only_a_completed_call_can_have_been_applied_already() -> None:
    assert completed("a.b", stop=True, already_applied=True)["already_applied"] is True
    for reason in ("transient", "fatal", "policy_block"):
        odd = {**completed("a.b", stop=True, already_applied=True), "reason": reason}
        assert outcome_read(odd) is None


def test_an_id_is_stored_as_text() -> None:
    assert completed("a.b", stop=True, data={"id": SOME_ID, "ids": (SOME_ID,)})["data"] == {
        "id": str(SOME_ID),
        "ids": [str(SOME_ID)],
    }


@pytest.mark.parametrize(
    "value", [1.5, math.inf, b"x", {1: "a"}, {"a": {2: "b"}}, object(), {"set": {1}}]
)
def test_what_an_artifact_cannot_carry_is_refused_where_it_is_made(value: object) -> None:
    with pytest.raises(ContractBroken, match="which an artifact cannot carry"):
        completed("a.b", stop=True, data={"value": value})


MAKERS: tuple[Callable[..., Artifact], ...] = (
    functools.partial(completed, stop=True),
    transient,
    fatal,
    policy_block,
)


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("number", [2**63, -(2**63) - 1, 2**70, 10**5000], ids=int.bit_length)
def test_an_integer_that_no_store_holds_is_refused_where_it_is_made(
    make: Callable[..., Artifact], number: int
) -> None:
    """Found later, it would fail the checkpoint behind the effect, at every resume anew."""
    with pytest.raises(ContractBroken, match="more than 64 bits"):
        make("a.b", data={"rows": [{"n": number}]})
    largest = {"least": -(2**63), "most": 2**63 - 1}
    assert make("a.b", data=largest)["data"] == largest


def test_what_holds_itself_or_is_absurdly_deep_is_refused_and_runs_into_no_other_limit() -> None:
    ring: dict[str, Any] = {}
    ring["again"] = [ring, ring]
    well: dict[str, Any] = {}
    for _level in range(5_000):
        well = {"down": well}
    for endless in (ring, well):
        with pytest.raises(ContractBroken, match="nested deeper than 32 levels"):
            fatal("a.b", data=endless)
    deepest: Any = 1
    for _level in range(DEEPEST):
        deepest = [deepest]
    assert fatal("a.b", data={"x": deepest})["data"] == {"x": deepest}


class Word(enum.StrEnum):
    GONE = "gone\x00"


class Shouted(str):
    def __str__(self) -> str:
        return "SHOUTED"


class Number(enum.IntEnum):
    TWO = 2


def test_what_is_more_than_text_or_a_number_is_kept_as_just_that() -> None:
    data: Any = {Shouted("k"): Word.GONE, "s": Shouted("s"), "n": Number.TWO, "d": {"t": (True,)}}
    made = fatal(Word.GONE, data=data)
    assert made["code"] == "gone\ufffd"
    assert made["data"] == {"k": "gone\ufffd", "s": "s", "n": 2, "d": {"t": [True]}}
    assert {type(made["code"]), *map(type, made["data"])} == {str}
    assert [type(value) for value in made["data"].values()] == [str, str, int, dict]


def test_signs_that_no_row_can_hold_are_marked_and_never_left_out() -> None:
    made = fatal("a\x00b", data={"\ud83d": ["PAY-\udfff1", "\U0001f600"]})
    assert made["code"] == "a\ufffdb"
    assert made["data"] == {"\ufffd": ["PAY-\ufffd1", "\U0001f600"]}


@given(st.dictionaries(st.text(), plain, max_size=4))
def test_an_artifact_survives_json_and_utf_8_unchanged(data: dict[str, Any]) -> None:
    artifact = completed("a.b", stop=True, data=_in_range(data))
    said = json.dumps(artifact, ensure_ascii=False).encode()
    assert json.loads(said) == artifact
    assert b"\\u0000" not in said


# LangGraph 0.6 knows no strict reading; a dict of primitives must not need a lenient one.
_STRICTLY: dict[str, Any] = {"allowed_msgpack_modules": None}
_KNOWN = _STRICTLY.keys() & inspect.signature(JsonPlusSerializer).parameters.keys()
STRICT = JsonPlusSerializer(**{name: _STRICTLY[name] for name in _KNOWN})


@given(st.dictionaries(st.text(), plain, max_size=3))
def test_an_artifact_comes_back_equal_from_a_checkpoint(data: dict[str, Any]) -> None:
    artifact = fatal("a.b", data=_in_range(data))
    assert STRICT.loads_typed(STRICT.dumps_typed(artifact)) == artifact


def _in_range(value: Any) -> Any:
    """Keep integers within 64 bits, and leave out the zero byte, which would be marked."""
    if isinstance(value, str):
        return value.replace("\x00", "")
    if isinstance(value, bool) or not isinstance(value, int | list | dict):
        return value
    if isinstance(value, int):
        return max(-(2**63), min(2**63 - 1, value))
    if isinstance(value, list):
        return [_in_range(item) for item in value]
    return {_in_range(key): _in_range(item) for key, item in value.items()}


@given(st.sampled_from(REASONS), codes, st.dictionaries(st.text(), plain, max_size=3))
def test_what_a_constructor_made_is_read_back(reason: str, code: str, data: dict[str, Any]) -> None:
    data = _in_range(data)
    made: dict[str, Callable[[], Artifact]] = {
        "completed": lambda: completed(code, stop=True, data=data),
        "transient": lambda: transient(code, data=data),
        "fatal": lambda: fatal(code, data=data),
        "policy_block": lambda: policy_block(code, data=data),
    }
    outcome = outcome_read(made[reason]())
    assert isinstance(outcome, Outcome)
    assert (outcome.reason, outcome.code, outcome.data) == (reason, code, data)
    assert outcome.stop == (reason != "transient")


@given(anything)
def test_something_else_is_never_read_as_an_outcome_and_never_raises(value: object) -> None:
    assert outcome_read(value) is None


@given(st.sampled_from(["v", "reason", "stop", "code", "already_applied", "data"]), anything)
def test_one_odd_field_makes_an_artifact_unclear_or_leaves_it_whole(
    field: str, value: object
) -> None:
    artifact: dict[str, Any] = {**completed("a.b", stop=True), field: value}
    outcome = outcome_read(artifact)
    if outcome is not None:
        assert outcome.reason in REASONS
        assert isinstance(outcome.stop, bool)
        assert isinstance(outcome.already_applied, bool)
        assert outcome.code


@pytest.mark.parametrize("field", ["v", "reason", "stop", "code"])
def test_a_missing_field_makes_an_artifact_unclear(field: str) -> None:
    artifact: dict[str, Any] = dict(completed("a.b", stop=True))
    del artifact[field]
    assert outcome_read(artifact) is None


def test_an_artifact_without_a_code_is_unclear() -> None:
    assert outcome_read({**completed("a.b", stop=True), "code": ""}) is None


def _run(context: RunContext) -> tuple[str, Artifact]:
    """Do nothing."""
    return "Nothing.", completed("a.b", stop=False)


def _identity(context: RunContext, arguments: Mapping[str, Any]) -> str:
    return "one"


def _tool(**changes: Any) -> Tool:
    fields: dict[str, Any] = {
        "name": "probe",
        "run": _run,
        "doing": "Probing",
        "done": "Probed",
        "right": "probe",
        "effect": False,
        "may_stop": False,
    }
    return Tool(**{**fields, **changes})


def test_an_effect_without_an_identity_and_a_read_with_one_are_refused() -> None:
    with pytest.raises(ContractBroken, match="must define its identity"):
        _tool(effect=True)
    with pytest.raises(ContractBroken, match="reads are never cached"):
        _tool(identity=_identity)


async def _later(*_given: Any) -> Any:
    """Do it later."""


def _piecewise(*_given: Any) -> Any:
    """Do it in pieces."""
    yield


async def _later_piecewise(*_given: Any) -> Any:
    """Do it in pieces, later."""
    yield


class _Callable:
    async def __call__(self, *_given: Any) -> Any:
        """Do it later."""


LATER = (_later, _piecewise, _later_piecewise, functools.partial(_later), _Callable())


@pytest.mark.parametrize("part", ["run", "facts", "identity", "propose", "policies"])
@pytest.mark.parametrize("function", LATER)
def test_a_function_that_would_return_before_anything_is_done_is_refused(
    part: str, function: Any
) -> None:
    given = {"effect": True, "identity": _identity, part: function}
    if part == "policies":
        given[part] = (function,)
    with pytest.raises(ContractBroken, match="probe has an async or generator function"):
        _tool(**given)


@pytest.mark.parametrize(
    ("effect", "before_review", "early"),
    [(False, False, True), (True, False, False), (True, True, True)],
)
def test_reads_and_what_says_so_run_before_a_review(
    effect: bool, before_review: bool, early: bool
) -> None:
    identity = _identity if effect else None
    tool = _tool(effect=effect, before_review=before_review, identity=identity)
    assert tool.runs_before_review is early
