"""A host that keeps everything in memory: enough to run the explicit graph without a database."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID, uuid4

from langchain_core.messages import BaseMessage, HumanMessage

from agent_core.contract import RunContext
from agent_core.host import CallRecord, ModelUsage, RunEnd


def context_make(right: str) -> RunContext:
    """Return someone who may use every probe."""
    return RunContext(
        run_id=uuid4(),
        attempt=1,
        conversation_id=uuid4(),
        requester_id=1,
        requester_name="Harness",
        rights=frozenset({right}),
        team_ids=frozenset(),
        words=("Go on.",),
    )


@dataclass
class MemoryHost:
    """Keeps what the graph reports; `answers` holds the text and artifact of each call.

    `acting` is who acts, or says so anew each time; `seconds` is what its clock shows, so that
    nothing depends on the time.
    """

    acting: RunContext | Callable[[], RunContext]
    words: str = "Go on."
    seconds: int = 0
    usages: list[ModelUsage] = field(default_factory=list)
    calls: dict[str, CallRecord] = field(default_factory=dict)
    answers: dict[str, tuple[str, Mapping[str, Any] | None]] = field(default_factory=dict)
    ends: list[RunEnd] = field(default_factory=list)
    deltas: list[str] = field(default_factory=list)

    def context(self) -> RunContext:
        """Return who acts."""
        return self.acting() if callable(self.acting) else self.acting

    def window(self) -> list[BaseMessage]:
        """Return the one message of the turn."""
        return [HumanMessage(self.words)]

    def earlier(self) -> list[dict[str, Any]]:
        """Return nothing: no run came before."""
        return []

    def worked_seconds(self) -> int:
        """Return what the clock shows."""
        return self.seconds

    def safe_point(self) -> None:
        """Go on: nobody can take this run over."""

    def model_began(self, number: int) -> None:
        """Drop half-written text."""
        self.deltas.clear()

    def model_delta(self, text: str) -> None:
        """Keep a piece of text."""
        self.deltas.append(text)

    def model_ended(self, usage: ModelUsage) -> None:
        """Keep what a model call used."""
        self.usages.append(usage)

    def gated(self, batch: int, calls: Sequence[CallRecord]) -> None:
        """Keep the batch."""
        for call in calls:
            self.calls[call.id] = call
            if call.artifact is not None:
                self.answers[call.id] = (call.content, call.artifact)

    def call_scope(self, call_id: UUID) -> AbstractContextManager[None]:
        """Surround a call with nothing."""
        return nullcontext()

    def call_began(self, call_id: UUID) -> None:
        """Note nothing."""

    def call_ended(
        self, call_id: UUID, label: str, content: str, artifact: Mapping[str, Any] | None
    ) -> None:
        """Keep what came of a call."""
        self.answers[str(call_id)] = (content, artifact)

    def ended(self, end: RunEnd) -> None:
        """Keep how the run ended."""
        self.ends.append(end)
