"""Hypothesis strategies of the core: outcomes, batches and budgets of every kind."""

from __future__ import annotations

from dataclasses import fields

from hypothesis import strategies as st

from agent_core.budget import Budget, Limits, Usage
from agent_core.contract import REASONS, Outcome
from agent_core.router import Settled

codes = st.from_regex(r"[a-z]{1,8}\.[a-z_]{1,8}", fullmatch=True)
outcomes = st.builds(
    Outcome, st.sampled_from(REASONS), st.booleans(), codes
)  # reason and stop vary freely, as in an artifact of someone else's tool
settled = st.builds(
    Settled,
    call_id=st.uuids().map(str),
    outcome=st.none() | outcomes,
    remaining=st.booleans(),
)
batches = st.lists(settled, min_size=1, max_size=6)
_amounts = {each.name: st.integers(min_value=1, max_value=20) for each in fields(Limits)}
_used = {each.name: st.integers(min_value=0, max_value=20) for each in fields(Usage)}
budgets = st.builds(Budget, limits=st.builds(Limits, **_amounts), usage=st.builds(Usage, **_used))

plain = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
anything = plain | st.floats() | st.binary() | st.dictionaries(st.integers(), st.text(), max_size=2)
