"""The budget: a limit is used up when it is reached, and the first one listed is named."""

from __future__ import annotations

from dataclasses import fields

import pytest

from agent_core.budget import Budget, Exceeded, Limits, Usage

NAMES = [each.name for each in fields(Limits)]


def test_the_limits_and_their_defaults_are_known() -> None:
    assert {name: getattr(Limits(), name) for name in NAMES} == {
        "model_calls": 12,
        "tool_calls": 24,
        "tokens": 60_000,
        "seconds": 300,
        "tries": 3,
    }
    assert [each.name for each in fields(Usage)] == NAMES


def test_nothing_used_exceeds_nothing() -> None:
    assert Budget().exceeded() is None


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("used", "exceeds"), [(1, False), (2, True), (3, True)])
def test_a_limit_is_used_up_exactly_when_it_is_reached(name: str, used: int, exceeds: bool) -> None:
    budget = Budget(limits=Limits(**{name: 2}), usage=Usage(**{name: used}))
    assert budget.exceeded() == (Exceeded(name, used, 2) if exceeds else None)


def test_of_several_the_first_listed_is_named() -> None:
    limits = Limits(**dict.fromkeys(NAMES, 1))
    usage = Usage(**{name: 1 for name in NAMES if name not in ("model_calls", "tool_calls")})
    assert Budget(limits=limits, usage=usage).exceeded() == Exceeded("tokens", 1, 1)
