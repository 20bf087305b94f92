"""What the graph asks of the place it runs in. The product's host is `agent_core.runs`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any, Protocol
from uuid import UUID

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage

from agent_core.budget import Limits
from agent_core.contract import RunContext
from agent_core.errors import ContractBroken
from agent_core.policy import ReviewProposal
from agent_core.router import STOP_MODES
from agent_core.toolset import Toolset


@dataclass(frozen=True, slots=True, kw_only=True)
class CallRecord:
    """One call of a batch as the gate left it, ready to be stored and shown."""

    id: str
    position: int
    tool: str
    label: str
    arguments: Mapping[str, Any]
    verdict: str
    rule: str
    identity: str
    effect: bool
    content: str = ""
    artifact: Mapping[str, Any] | None = None
    proposal: ReviewProposal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelUsage:
    """One model call: tokens, milliseconds and why the model finished."""

    number: int
    model: str
    input_tokens: int
    output_tokens: int
    milliseconds: int
    finish_reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnd:
    """How a run ended: the rule, its evidence, and the answer in words.

    `tokens_saved` are the input tokens of the one model call that the stop has saved; they are
    estimated where the model cannot count them.
    """

    rule: str
    answer: str
    stub: str = ""
    headline: str = ""
    evidence: Mapping[str, Any] = field(default_factory=dict)
    done: Sequence[str] = ()
    not_done: Sequence[str] = ()
    model_calls_made: int = 0
    model_calls_saved: int = 0
    tokens_saved: int = 0
    tokens_estimated: bool = False


class Host(Protocol):
    """The durable place a run lives in. Every method is safe to call again after a crash."""

    def context(self) -> RunContext:
        """Return who acts, with rights read now."""

    def window(self) -> list[BaseMessage]:
        """Return the messages the model is shown first, cut at turn boundaries."""

    def earlier(self) -> list[dict[str, Any]]:
        """Return the finished calls of the run that this one continues."""

    def worked_seconds(self) -> int:
        """Return the seconds of work so far, without waiting for people."""

    def safe_point(self) -> None:
        """Raise a ControlError when the run must stop here: cancelled, drained or taken over."""

    def model_began(self, number: int) -> None:
        """Note that a model call begins and that half-written text is void."""

    def model_delta(self, text: str) -> None:
        """Show a piece of text as it comes; it may be lost."""

    def model_ended(self, usage: ModelUsage) -> None:
        """Store what a model call used."""

    def gated(self, batch: int, calls: Sequence[CallRecord]) -> None:
        """Store the batch as gated, and a review for each call that needs one."""

    def call_scope(self, call_id: UUID) -> AbstractContextManager[None]:
        """Surround one tool call: language, connections, log fields."""

    def call_began(self, call_id: UUID) -> None:
        """Note that a call is being executed."""

    def call_ended(
        self, call_id: UUID, label: str, content: str, artifact: Mapping[str, Any] | None
    ) -> None:
        """Store what came of a call, and in what words to show it."""

    def ended(self, end: RunEnd) -> None:
        """Store the stop record and the answer; at most once for a run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """Everything one run needs, handed to the graph as its runtime context."""

    host: Host
    model: BaseChatModel
    toolset: Toolset
    limits: Limits
    stop_mode: str = "hard"
    # Errors besides ControlError that the tool boundary must let through (a lost database).
    passes: tuple[type[BaseException], ...] = ()

    def __post_init__(self) -> None:
        if self.stop_mode not in STOP_MODES:
            known = ", ".join(STOP_MODES)
            raise ContractBroken(f"There is no stop mode {self.stop_mode!r}; there are {known}.")
