"""The sets of versions that the core is proved on, and the tests that run on each, as data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]

_PURE: Final = (
    "tests/core/test_contract.py",
    "tests/core/test_events.py",
    "tests/core/test_budget.py",
    "tests/core/test_policy.py",
    "tests/core/test_answer.py",
    "tests/core/test_redaction.py",
    "tests/core/test_router*.py",
)
_GRAPH: Final = (
    "tests/core/test_chat_models_reading.py",
    "tests/core/test_toolset.py",
    "tests/core/test_tries.py",
    "tests/core/test_polish.py",
    # Its mixes are played by the harness itself, which runs in every set.
    "tests/core/test_harness.py",
    "tests/core/test_harness_stage.py",
    "tests/core/test_harness_tools.py",
    "tests/frameworks/test_pauses.py",
    "tests/frameworks/test_places.py",
    "tests/frameworks/test_storing.py",
    "tests/frameworks/test_tool_node.py",
)
# These import LangChain's agents or its Groq client, which LangGraph 0.6 stands without.
_AGENTS: Final = (
    "tests/core/test_chat_models_groq.py",
    "tests/core/test_middleware*.py",
    "tests/frameworks/test_agent_pauses.py",
    "tests/frameworks/test_agent_stops.py",
    "tests/frameworks/test_provider.py",
    "tests/frameworks/test_returning_directly.py",
)
TOOLS: Final = ("pytest", "hypothesis")
"""What the tests themselves need besides a set."""

SHOWN: Final = (
    "langchain",
    "langchain-core",
    "langgraph",
    "langgraph-prebuilt",
    "langgraph-checkpoint",
    "langchain-groq",
)
"""The packages whose resolved versions are reported: pins leave the others floating."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VersionSet:
    """What is installed, and the patterns of the test files that run with it."""

    name: str
    requirements: tuple[str, ...]
    patterns: tuple[str, ...]

    def files(self) -> Iterator[str]:
        """Yield the files to run.

        Raises:
            LookupError: a pattern finds no file, so that a renamed test does not just vanish.
        """
        for pattern in self.patterns:
            found = sorted(path.relative_to(ROOT).as_posix() for path in ROOT.glob(pattern))
            if not found:
                raise LookupError(f"Set {self.name} names {pattern}, and there is no such file.")
            yield from found


SETS: Final[Mapping[str, VersionSet]] = {
    each.name: each
    for each in (
        VersionSet(
            name="a",
            requirements=("langchain==1.4.2", "langgraph==1.2.11", "langchain-groq==1.1.3"),
            patterns=_PURE + _GRAPH + _AGENTS,
        ),
        VersionSet(
            name="b",
            requirements=("langchain<2", "langgraph<2", "langchain-groq<2"),
            patterns=_PURE + _GRAPH + _AGENTS,
        ),
        VersionSet(
            name="c",
            requirements=("langgraph==0.6.6", "langchain-core<0.4"),
            patterns=_PURE + _GRAPH,
        ),
    )
}
