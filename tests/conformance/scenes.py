"""One forced course of events on the demo's data: a real conversation, run, review and processor.

The harness plays it through an orchestration; everything a tool touches is the product's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from functools import wraps
from typing import Any, Final, ParamSpec, TypeVar
from uuid import UUID

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection
from langchain_core.messages import AIMessage, ToolMessage

from agent_core.chat_models.scripted import ScriptedStep, says
from agent_core.contract import RunContext, Tool, outcome_read
from agent_core.gate import Gate
from agent_core.harness.cases import AskedOf, Case
from agent_core.harness.stage import Stage
from agent_core.harness.transcript import Play, Transcript
from agent_core.runs.claims import run_claim
from agent_core.runs.django_host import DjangoHost
from agent_core.runs.models import Run
from agent_core.runs.services import conversation_start, message_send
from agent_core.runs.work import decisions
from agent_core.toolset import Toolset
from reviews.models import Review
from reviews.services import review_approve, review_propose
from tests.payments.processor import Processor

AFTERWARDS: Final = says("That is all I can say.")

ParamT = ParamSpec("ParamT")
ResultT = TypeVar("ResultT")
Decided = Callable[["Scene", Review], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Played:
    """What one orchestration made of a scene; `outcomes` are (reason, code), `contents` texts."""

    transcript: Transcript
    outcomes: tuple[tuple[str, str], ...]
    contents: tuple[str, ...]


@dataclass
class Scene:
    """The demo's support agent at work, with the lead who decides.

    `closing` lets go at the end of what a case holds; `settings` and `patch` are the test's own.
    """

    words: tuple[str, ...]
    toolset: Toolset
    processor: Processor
    settings: Any
    patch: pytest.MonkeyPatch
    closing: ExitStack
    user: User = field(init=False)
    lead: User = field(init=False)
    run: Run = field(init=False)

    def __post_init__(self) -> None:
        self.processor.clear()
        self.user = User.objects.get(username="agent")
        self.lead = User.objects.get(username="lead")
        conversation = conversation_start(owner=self.user)
        for words in self.words or ("Please help me with this.",):
            run = message_send(conversation=conversation, sender=self.user, text=words)
        claimed = run_claim(run.pk, quarantined=False)
        assert claimed is not None
        self.run = claimed

    def context(self) -> RunContext:
        """Return who acts, as the product's own host says it, with rights read now."""
        return DjangoHost(self.run, self.toolset).context()

    def take_right(self, right: str) -> None:
        """Take a right away from everybody who asks."""
        app, _dot, codename = right.partition(".")
        taken = Permission.objects.get(content_type__app_label=app, codename=codename)
        for group in self.user.groups.all():
            group.permissions.remove(taken)

    def approve(self, review: Review, changes: Mapping[str, object] | None = None) -> None:
        """Have the right person approve, perhaps with changes."""
        actor = self.user if review.requester_decides else self.lead
        review_approve(review_id=review.pk, actor=actor, channel="desk", changes=changes)

    def decide(self, asked: AskedOf, decided: Decided) -> dict[str, Any]:
        """Store what a person is asked, let them decide, and return what the run is told."""
        call = {
            "id": asked.call_id,
            "position": 0,
            "tool": asked.tool,
            "arguments": dict(asked.arguments),
        }
        context = self.context()
        proposal = Gate(self.toolset, context, []).batch([call])[0].record.proposal
        assert proposal is not None
        review = review_propose(
            run_id=context.run_id,
            call_id=UUID(asked.call_id),
            conversation_id=context.conversation_id,
            requester=self.user,
            proposal=proposal,
            arguments=asked.arguments,
        )
        decided(self, review)
        return decisions(context.run_id, [asked.call_id])[asked.call_id]

    def play(self, play: Play, steps: tuple[ScriptedStep, ...], decided: Decided) -> Played:
        """Let an orchestration play what the model says, on the product's tools."""
        listening = _Listening()
        tools = [_released(tool) for tool in self.toolset]

        def decide(asked: AskedOf) -> dict[str, Any]:
            return self.decide(asked, decided)

        case = Case(
            name="scene",
            steps=(*steps, AFTERWARDS),
            decisions={tool.name: decide for tool in tools},
        )
        transcript = play(case, tools, context=self.context, stage=listening)
        replies = listening.in_call_order()
        read = [outcome_read(reply.artifact) for reply in replies]
        return Played(
            transcript=transcript,
            outcomes=tuple((each.reason, each.code) if each else ("", "") for each in read),
            contents=tuple(str(reply.content) for reply in replies),
        )


class _Listening(Stage):
    """A stage that keeps every reply as it is stored."""

    def __init__(self) -> None:
        super().__init__()
        self._asked: dict[str, None] = {}
        self._replies: dict[str, ToolMessage] = {}

    def stored(self, writes: Any) -> None:
        """Keep the calls and their replies."""
        super().stored(writes)
        for channel, value in writes:
            for message in value if channel == "messages" else ():
                if isinstance(message, AIMessage):
                    self._asked |= dict.fromkeys(str(call["id"]) for call in message.tool_calls)
                elif isinstance(message, ToolMessage):
                    self._replies[message.tool_call_id] = message

    def in_call_order(self) -> list[ToolMessage]:
        """Return the replies; parallel calls may have finished otherwise."""
        assert set(self._replies) <= set(self._asked)
        return [self._replies[key] for key in self._asked if key in self._replies]


def _released(tool: Tool) -> Tool:
    """Give the thread's connection back after each part of a tool, as the product's host does."""

    def releasing(function: Callable[ParamT, ResultT]) -> Callable[ParamT, ResultT]:
        @wraps(function)
        def call(*args: ParamT.args, **kwargs: ParamT.kwargs) -> ResultT:
            try:
                return function(*args, **kwargs)
            finally:
                connection.close()

        return call

    return replace(
        tool,
        run=releasing(tool.run),
        facts=releasing(tool.facts) if tool.facts else None,
        identity=releasing(tool.identity) if tool.identity else None,
        propose=releasing(tool.propose) if tool.propose else None,
    )
