"""A conversation without a model: the real gate, reviews, ledger and sandbox process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any
from uuid import UUID, uuid4

from django.contrib.auth.models import User

from agent_core.contract import RunContext
from agent_core.gate import Gate, Gated
from agent_core.toolset import Toolset
from payments.models import Customer, Payment
from payments.selectors import scope_of
from payments.tools import TOOLS
from reviews.models import Review
from reviews.services import review_approve, review_propose

Said = tuple[str, dict[str, Any]]


notices: list[tuple[UUID, str]] = []


def noticed(conversation_id: UUID, said: Callable[[], str], dedupe: str) -> None:
    """Keep what is posted in a conversation."""
    notices.append((conversation_id, said()))


def decided(review: Review) -> None:
    """Stand in for the host: no run waits in these tests."""


def paid_ref(reference: str) -> str:
    """Return the processor's name of a payment."""
    return str(Payment.objects.values_list("processor_ref", flat=True).get(reference=reference))


@dataclass
class Conversation:
    """One staff member's conversation; `say` adds their words."""

    user: User
    words: list[str] = field(default_factory=list)
    customer_id: UUID | None = None
    label: str = ""
    id: UUID = field(default_factory=uuid4)
    run_id: UUID = field(default_factory=uuid4)
    toolset: Toolset = field(default_factory=lambda: Toolset(TOOLS))

    def say(self, *words: str) -> Conversation:
        """Add what the staff member writes."""
        self.words.extend(words)
        return self

    def about(self, email: str) -> Conversation:
        """Bind a customer as the page does."""
        self.customer_id = Customer.objects.get(email=email).pk
        return self

    def context(
        self, call_id: UUID | None = None, review_id: UUID | None = None, **more: Any
    ) -> RunContext:
        """Return the context as the host makes it for one call, with rights read now."""
        user = User.objects.get(pk=self.user.pk)
        context = RunContext(
            run_id=self.run_id,
            attempt=1,
            conversation_id=self.id,
            requester_id=user.pk,
            requester_name=user.get_full_name(),
            rights=frozenset(user.get_all_permissions()),
            team_ids=scope_of(user),
            customer_id=self.customer_id,
            words=tuple(self.words),
            call_id=call_id or uuid4(),
            review_id=review_id,
            bind_customer=self._bind,
        )
        return replace(context, **more)

    def gated(self, tool: str, **arguments: str) -> Gated:
        """Ask the gate about one call."""
        call = {"id": str(uuid4()), "position": 0, "tool": tool, "arguments": arguments}
        return Gate(self.toolset, self.context(), []).batch([call])[0]

    def gated_together(self, tool: str, *each: dict[str, str]) -> list[Gated]:
        """Ask the gate about several calls of one model message."""
        return self.gated_again(
            [
                {"id": str(uuid4()), "position": place, "tool": tool, "arguments": arguments}
                for place, arguments in enumerate(each)
            ]
        )

    def gated_again(self, calls: list[dict[str, Any]]) -> list[Gated]:
        """Ask the gate about the very calls of a batch, as after a crash."""
        return Gate(self.toolset, self.context(), []).batch(calls)

    def stored(self, gated: Gated) -> Review:
        """Store what a person is asked about one call."""
        assert gated.record.proposal is not None
        return review_propose(
            run_id=self.run_id,
            call_id=UUID(gated.record.id),
            conversation_id=self.id,
            requester=self.user,
            proposal=gated.record.proposal,
            arguments=gated.record.arguments,
        )

    def run(self, tool: str, call_id: UUID | None = None, **arguments: str) -> Said:
        """Run one tool through the one boundary."""
        return self._executed(tool, self.context(call_id), arguments)

    def ask(self, tool: str, **arguments: str) -> Review:
        """Have the gate send a call to a person, and store what that person is asked."""
        gated = self.gated(tool, **arguments)
        assert gated.record.verdict == "review", gated.record
        return self.stored(gated)

    def approved(self, review: Review, lead: User, changes: dict[str, Any] | None = None) -> Review:
        """Have somebody approve."""
        return review_approve(review_id=review.pk, actor=lead, channel="desk", changes=changes)

    def act(self, tool: str, review: Review) -> Said:
        """Do what was approved, as the graph does: asked arguments with the reviewer's changes."""
        review.refresh_from_db()
        context = self.context(review.call_id, review.pk)
        arguments = {**review.original, **review.changes}
        call = {"id": str(review.call_id), "tool": tool}
        verdict = Gate(self.toolset, context, []).fresh(call, arguments)
        if verdict.kind == "block":
            return verdict.text, {"reason": "policy_block", "code": verdict.rule}
        return self._executed(tool, context, arguments)

    def _executed(self, tool: str, context: RunContext, arguments: dict[str, Any]) -> Said:
        found = self.toolset.tool(tool)
        assert found is not None
        message = self.toolset.executed(found, arguments, context)
        return str(message.content), dict(message.artifact)

    def _bind(self, customer_id: UUID, label: str) -> None:
        assert self.customer_id in {None, customer_id}, "a conversation changed its customer"
        self.customer_id, self.label = customer_id, label
