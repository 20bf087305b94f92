"""The contract: what an artifact may hold, how it is read, what a tool may be."""

from __future__ import annotations

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


@given(st.dictionaries(st.text(), plain, max_size=4))
def test_an_artifact_survives_json_and_strict_msgpack_unchanged(data: dict[str, Any]) -> None:
    artifact = completed("a.b", stop=True, data=data)
    # JSON has no integers beyond the range of a double in other readers; Python's own keeps them.
    assert json.loads(json.dumps(artifact)) == artifact


# LangGraph 0.6 knows no strict reading; a dict of primitives must not need a lenient one.
_STRICTLY: dict[str, Any] = {"allowed_msgpack_modules": None}
_KNOWN = _STRICTLY.keys() & inspect.signature(JsonPlusSerializer).parameters.keys()
STRICT = JsonPlusSerializer(**{name: _STRICTLY[name] for name in _KNOWN})


@given(st.dictionaries(st.text(), plain, max_size=3))
def test_an_artifact_comes_back_equal_from_a_checkpoint(data: dict[str, Any]) -> None:
    artifact = fatal("a.b", data=_in_range(data))
    assert STRICT.loads_typed(STRICT.dumps_typed(artifact)) == artifact


def _in_range(value: Any) -> Any:
    """Keep integers within 64 bits, as every amount and count of ours is."""
    if isinstance(value, bool) or not isinstance(value, int | list | dict):
        return value
    if isinstance(value, int):
        return max(-(2**63), min(2**63 - 1, value))
    if isinstance(value, list):
        return [_in_range(item) for item in value]
    return {key: _in_range(item) for key, item in value.items()}


@given(st.sampled_from(REASONS), codes, st.dictionaries(st.text(), plain, max_size=3))
def test_what_a_constructor_made_is_read_back(reason: str, code: str, data: dict[str, Any]) -> None:
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
