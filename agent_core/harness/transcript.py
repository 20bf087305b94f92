"""What a played case leaves, and how a case is walked through to its end."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from langchain_core.runnables import RunnableConfig
from langgraph.types import Command

from agent_core.contract import Tool, outcome_read
from agent_core.errors import CountersignError
from agent_core.graph import RECURSION_LIMIT
from agent_core.harness.cases import Case

_LOG_REFERENCE: Final = re.compile(r"\bE-[0-9A-Z]{8}\b")


@dataclass(frozen=True, slots=True, kw_only=True)
class Transcript:
    """What one orchestration did with one case."""

    path: tuple[str, ...]
    model_calls: int
    calls: tuple[str, ...]
    rule: str
    text: str

    def written(self) -> str:
        """Return it as lines that a person can compare."""
        lines = [f"path: {' '.join(self.path)}", f"model calls: {self.model_calls}", "calls:"]
        lines += [f"  {call}" for call in self.calls]
        lines += [f"rule: {self.rule}", "text:"]
        lines += [f"  {line}".rstrip() for line in self.text.splitlines()]
        return _LOG_REFERENCE.sub("E-REFERENCE", "\n".join(lines)) + "\n"


Play = Callable[[Case, Sequence[Tool]], Transcript]


def walked(
    steps: Callable[[Any, RunnableConfig], Iterable[dict[str, Any]]],
    given: Any,
    decided: Callable[[str], Mapping[str, Any]],
) -> tuple[tuple[str, ...], str]:
    """Run until nothing is left to do, deciding every review; return the path and the error."""
    config: RunnableConfig = {
        "configurable": {"thread_id": "case"},
        "recursion_limit": RECURSION_LIMIT,
    }
    path: list[str] = []
    try:
        while given is not None:
            asked: Sequence[Any] | None = None
            for update in steps(given, config):
                asked = update.get("__interrupt__") or asked
                path += [name for name in update if not name.startswith("__")]
            given = None
            if asked:
                path.append("(pause)")
                ids = _asked_ids(asked[0].value)
                # Each decision names the review it came from, as the product's host does.
                made = {key: {"review": key, **decided(key)} for key in ids}
                given = Command(resume={"decisions": made})
    except CountersignError as error:
        return tuple(path), str(error)
    return tuple(path), ""


def _asked_ids(value: Mapping[str, Any]) -> list[str]:
    return [call if isinstance(call, str) else call["id"] for call in value["calls"]]


def call_line(tool: str, content: str, artifact: object) -> str:
    outcome = outcome_read(artifact)
    reason = outcome.reason if outcome else "unclear"
    again = ", already applied" if outcome and outcome.already_applied else ""
    return f"{tool} -> {reason}{again}: {' / '.join(content.splitlines())}"
