"""A whole refund turn with its people, on real rows, checkpoints and the sandbox processor."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from django.contrib.auth.models import Group, User
from django.test import Client
from django.urls import reverse

from agent_core.runs import services, work
from agent_core.runs.models import Message, Run, StopRecord
from agent_core.runs.states import Role, RunState
from payments.models import Intent, Payment, Refund
from payments.roles import AGENTS, LEADS, roles_setup
from reviews.models import Review, ReviewDecision
from reviews.services import review_approve
from tests.payments.cast import Desk
from tests.payments.processor import Processor

DATA: dict[str, Any] = {"headers": {"Accept": "application/json"}}
REASON = {"sentence": "Not ours."}


class Turn:
    """Ana has asked for a refund of 5.00 of 100.00; it waits. Lea and Leo lead her team."""

    def __init__(self, processor: Processor) -> None:
        roles_setup()
        self.processor = processor
        self.desk = Desk()
        self.ana, self.lea = self.desk.ana, self.desk.lea
        self.leo = User.objects.create_user(f"leo-{self.ana.username}")
        for user, role in ((self.ana, AGENTS), (self.lea, LEADS), (self.leo, LEADS)):
            user.first_name = user.username.partition("-")[0].title()
            user.save(update_fields=["first_name"])
            user.groups.add(Group.objects.get(name=role))
            self.desk.team.members.add(user)
        self.conversation = services.conversation_start(owner=self.ana)
        self.run = self.ask("5.00 EUR", self.desk.payment)
        self.review = Review.objects.get(run_id=self.run.pk)

    def ask(self, amount: str, payment: Payment) -> Run:
        """Ask as Ana, and work the run off until it waits."""
        run = services.message_send(
            conversation=self.conversation,
            sender=self.ana,
            text=f"refund {amount} of {payment.reference} because the box was crushed",
        )
        work.run_work(run.pk)
        run.refresh_from_db()
        assert run.state == RunState.WAITING, [m.text for m in Message.objects.filter(run=run)]
        return run

    def work(self) -> Run:
        """Work the run off as far as it goes."""
        work.run_work(self.run.pk)
        self.run.refresh_from_db()
        return self.run

    def approve(self, **more: Any) -> Review:
        """Approve as Lea."""
        values: dict[str, Any] = {
            "review_id": self.review.pk,
            "actor": self.lea,
            "channel": "desk",
        }
        return review_approve(**(values | more))

    def sent(self) -> list[int]:
        """Return what really went back, in the processor's own books."""
        return self.processor.refunded(self.desk.payment.processor_ref)

    def answers(self) -> list[str]:
        """Return what the run has answered."""
        found = Message.objects.filter(run=self.run, role=Role.ASSISTANT)
        return list(found.values_list("text", flat=True))

    def tries(self) -> list[tuple[str, bool, str]]:
        """Return every stored try: which decision, whether accepted, why not."""
        rows = ReviewDecision.objects.filter(review=self.review).order_by("id")
        return list(rows.values_list("decision", "accepted", "refused_because"))

    def paid_once(self, amount: int = 500) -> None:
        """Check books, ledger, approval, transcript and stop record: one refund, told once."""
        assert self.sent() == [amount]
        assert [refund.state for refund in Refund.objects.all()] == ["succeeded"]
        assert [intent.state for intent in Intent.objects.all()] == ["succeeded"]
        self.review.refresh_from_db()
        assert self.review.consumed_at is not None
        assert StopRecord.objects.get(run=self.run).rule == "completed"
        [answer] = self.answers()
        assert f"{amount / 100:.2f} EUR" in answer

    def never_paid(self, rule: str = "policy_block") -> None:
        """Check that nothing moved and that the run has ended by this rule."""
        assert self.sent() == []
        assert not Refund.objects.exists()
        assert not Intent.objects.exists()
        self.review.refresh_from_db()
        assert self.review.consumed_at is None
        assert StopRecord.objects.get(run=self.run).rule == rule

    def ended_as_decided(self) -> None:
        """Work the run off and check that the one accepted decision is what happened."""
        self.work()
        self.review.refresh_from_db()
        if self.review.state == "approved":
            self.paid_once()
        else:
            self.never_paid()

    def untouched(self) -> dict[str, Any]:
        """Return everything that a late try must leave as it is."""
        return {
            "run": Run.objects.filter(pk=self.run.pk).values().get(),
            "review": Review.objects.filter(pk=self.review.pk).values().get(),
            "stops": list(StopRecord.objects.values()),
            "messages": list(Message.objects.order_by("pk").values("pk", "text")),
            "refunds": list(Refund.objects.values()),
            "intents": list(Intent.objects.values()),
            "sent": self.sent(),
        }


class Person:
    """Somebody's browser: decides on the desk's page, in data as the chat does, or in admin."""

    def __init__(self, user: User, turn: Turn) -> None:
        self.user = user
        self.turn = turn
        self.client = Client()
        self.client.force_login(user)

    def data(self, decision: str, **form: str) -> Any:
        """Post as the pages' script does."""
        return self.client.post(self._route(), self._form(decision, form), **DATA)

    def chat(self, decision: str, **form: str) -> Any:
        """Post from the card in the chat, as its script does."""
        return self.data(decision, channel="chat", **form)

    def page(self, decision: str, **form: str) -> Any:
        """Post as a browser without scripts does, and follow to the next page."""
        return self.client.post(self._route(), self._form(decision, form), follow=True)

    def admin(self, decision: str, **form: str) -> Any:
        """Post in the administration, and follow to the next page."""
        route = reverse("admin:reviews_review_decide", args=[self.turn.review.pk, decision])
        # Every other field would count as a forged change there.
        return self.client.post(route, {"version": "1", **REASON, **form}, follow=True)

    def _route(self) -> str:
        return reverse("api-decision", args=[self.turn.review.pk])

    def _form(self, decision: str, form: dict[str, str]) -> dict[str, str]:
        return {"decision": decision, "version": "1", **REASON, **form}


def told(answer: Any) -> str:
    """Return what a person reads of an answer: the sentence of the data, or the page's text."""
    with suppress(ValueError):
        return str(answer.json().get("error", ""))
    return str(answer.content.decode())
