"""Whether the answer to a pause fits: one final decision for each waiting call, and no more changed
in it than a reviewer may change."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any, Final
from uuid import UUID

from agent_core.toolset import ArgumentsBad, Toolset

FINAL_STATES: Final = ("approved", "rejected", "withdrawn", "expired")
FIELDS: Final = frozenset({"state", "sentence", "summary", "changes", "review"})

_FIGURE: Final = re.compile(r"[0-9]+(?:\.[0-9]+)?")


def answer_problem(
    answer: object, waiting: Mapping[str, Mapping[str, Any]], toolset: Toolset
) -> str:
    """Say why an answer cannot be taken, or nothing when it can. Depends on its arguments only."""
    decisions = answer.get("decisions") if isinstance(answer, Mapping) else None
    if not isinstance(decisions, Mapping):
        return "The answer must hold the decisions by call."
    missing, surplus = len(waiting.keys() - decisions.keys()), len(decisions.keys() - set(waiting))
    if missing or surplus:
        return (
            f"There must be one decision for each of the {len(waiting)} calls that wait: "
            f"{missing} missing, {surplus} about something else."
        )
    found = (_decision_problem(call, decisions[key], toolset) for key, call in waiting.items())
    return next((problem for problem in found if problem), "")


def _decision_problem(call: Mapping[str, Any], decision: object, toolset: Toolset) -> str:
    if not isinstance(decision, Mapping) or decision.get("state") not in FINAL_STATES:
        return f"A decision is one of {', '.join(FINAL_STATES)}."
    if foreign := sorted(str(name) for name in decision.keys() - FIELDS):
        return f"A decision does not hold {', '.join(foreign)}."
    if not _is_id(decision.get("review") or ""):
        return "The review of a decision is named by its id."
    changes = decision.get("changes") or {}
    return next(_changes_problems(call, changes, decision["state"], toolset), "")


def _is_id(value: object) -> bool:
    if value == "":
        return True
    try:
        UUID(str(value))
    except ValueError:
        return False
    return True


def _changes_problems(
    call: Mapping[str, Any], changes: object, state: str, toolset: Toolset
) -> Iterator[str]:
    if not changes:
        return
    if not isinstance(changes, Mapping) or state != "approved":
        yield "Changes are given by field, with an approval."
        return
    if fixed := sorted(str(name) for name in changes.keys() - call["may_change"].keys()):
        yield f"A reviewer cannot change {', '.join(fixed)}."
        return
    for name, value in changes.items():
        stands = _figure(call["may_change"][name])
        wanted = _figure(value)
        if stands is not None and (wanted is None or not 0 < wanted <= stands):
            yield f"The {name} must be a plain figure above 0 and at most {stands}."
    try:
        toolset.checked(call["tool"], {**call["arguments"], **changes})
    except ArgumentsBad as error:
        yield str(error)


def _figure(value: object) -> Decimal | None:
    """Read a figure as a form sends it: text of digits with at most one point."""
    return Decimal(value) if isinstance(value, str) and _FIGURE.fullmatch(value) else None
