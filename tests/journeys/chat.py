"""A conversation as its staff member has it, worked off in this process by the worker's own code.

`pump` stands in for Celery alone: it takes what lies in the queues by their rows, as the sweeper
does, and calls what the tasks call.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from django.contrib.auth.models import User
from django.utils import timezone

from agent_core.runs import services
from agent_core.runs.models import Call, Conversation, Message, Run, StopRecord
from agent_core.runs.selectors import transcript
from agent_core.runs.states import RUN_CLAIMABLE, Role
from agent_core.runs.work import run_work
from exports.models import Export
from exports.services_write import export_write
from exports.states import ExportState
from payments.models import Customer, Intent, Invoice, Payment, PaymentMethod, Refund
from payments.sandbox.tokens import earlier_ref
from payments.services import intents_settle
from payments.states import IntentState, RefundState
from reviews.models import Review
from reviews.services import review_approve, review_reject, review_withdraw
from tests.payments.processor import Processor


def person(username: str) -> User:
    """Return one of the demo's people, with rights read anew."""
    return User.objects.get(username=username)


def pump() -> None:
    """Work off runs until none is left to be claimed."""
    while (run := Run.objects.filter(state__in=RUN_CLAIMABLE).order_by("created_at").first()) and (
        _worked(run)
    ):
        continue


def _worked(run: Run) -> bool:
    attempt = run.attempt
    run_work(run.pk, quarantined=run.quarantined)
    run.refresh_from_db()
    assert run.attempt > attempt, f"nobody can claim the run: {run.state}"
    return True


def exports_pump() -> None:
    """Write the files of all queued exports."""
    for export in Export.objects.filter(state=ExportState.QUEUED):
        export_write(export.pk)


def settle_pump() -> int:
    """Let the wait for every open intent be over, and settle what the processor now knows."""
    Intent.objects.filter(state=IntentState.OPEN).update(next_try_at=timezone.now())
    return intents_settle()


@dataclass
class Chat:
    """One conversation; every message is worked off until it ends or waits for a person."""

    owner: User
    conversation: Conversation = field(init=False)

    def __post_init__(self) -> None:
        self.conversation = services.conversation_start(owner=self.owner)

    def say(self, text: str) -> Run:
        """Send a message and work it off."""
        run = self.send(text)
        pump()
        run.refresh_from_db()
        return run

    def send(self, text: str) -> Run:
        """Send a message and leave it in the queue."""
        return services.message_send(conversation=self.conversation, sender=self.owner, text=text)

    def lines(self) -> list[tuple[str, str]]:
        """Return the whole transcript, as (role, text)."""
        return [(line.role, line.text) for line in transcript(self.conversation)]

    def answers(self) -> list[str]:
        """Return what the assistant said, oldest first."""
        return [text for role, text in self.lines() if role == Role.ASSISTANT]

    def answer(self) -> str:
        """Return what the assistant said last."""
        return self.answers()[-1]

    def notices(self) -> list[str]:
        """Return what was posted by itself, oldest first."""
        return [text for role, text in self.lines() if role == Role.NOTICE]

    def calls(self, run: Run | None = None) -> list[Call]:
        """Return the calls of one run, or of the whole conversation."""
        rows = Call.objects.filter(run__conversation=self.conversation)
        rows = rows if run is None else rows.filter(run=run)
        return list(rows.order_by("run__created_at", "batch", "position"))

    def outcomes(self, run: Run | None = None) -> list[tuple[str, str]]:
        """Return (tool, code) of the calls."""
        return [(call.tool, code(call)) for call in self.calls(run)]

    def reviews(self) -> list[Review]:
        """Return the reviews of the conversation in the order in which they were asked."""
        places = {call.pk: place for place, call in enumerate(self.calls())}
        found = Review.objects.filter(conversation_id=self.conversation.pk)
        return sorted(found, key=lambda review: places[review.call_id])

    def messages(self) -> int:
        """Count the lines."""
        return Message.objects.filter(conversation=self.conversation).count()


def outcome(call: Call) -> dict[str, Any]:
    """Return what a call has brought, empty when it has brought nothing yet."""
    return dict(call.outcome or {})


def code(call: Call) -> str:
    """Return the outcome's code of a call, empty when it has none yet."""
    return str(outcome(call).get("code", ""))


def stop(run: Run) -> tuple[str, int, int]:
    """Return the rule that ended a run, and the model calls made and saved."""
    record = StopRecord.objects.get(run=run)
    return record.rule, record.model_calls_made, record.model_calls_saved


def approve(review: Review, by: str = "lead", **changes: str) -> Review:
    """Approve at the desk, perhaps with another amount or reason, and let the run go on."""
    decided = review_approve(
        review_id=review.pk, actor=person(by), channel="desk", changes=changes or None
    )
    pump()
    return decided


def reject(review: Review, sentence: str, by: str = "lead") -> Review:
    """Reject at the desk with a sentence for the chat, and let the run go on."""
    decided = review_reject(
        review_id=review.pk, actor=person(by), channel="desk", sentence=sentence
    )
    pump()
    return decided


def withdraw(review: Review, by: str = "agent") -> Review:
    """Take a request back in the chat, and let the run go on."""
    decided = review_withdraw(review_id=review.pk, actor=person(by), channel="chat")
    pump()
    return decided


def state_of(reference: str) -> tuple[str, list[int]]:
    """Return the state of a payment or invoice, and the amounts our ledger has sent back of it."""
    if reference.startswith("INV-"):
        return str(Invoice.objects.get(reference=reference).state), []
    payment = Payment.objects.get(reference=reference)
    rows = Refund.objects.filter(payment=payment).exclude(state=RefundState.FAILED)
    sent = rows.order_by("created_at").values_list("amount_minor", flat=True)
    return str(payment.state), list(sent)


def sent_back(product: Processor, reference: str) -> list[int]:
    """Return what the processor's own books say went back on a payment of ours."""
    return sorted(product.refunded(Payment.objects.get(reference=reference).processor_ref))


def payment_add(minor: int, *, unique: str, email: str = "good-card@example.com") -> Payment:
    """Give a known customer one more earlier payment, known to the processor as well."""
    customer = Customer.objects.get(email=email)
    return Payment.objects.create(
        reference=f"PAY-{unique}",
        customer=customer,
        method=PaymentMethod.objects.get(customer=customer, is_default=True),
        amount_minor=minor,
        currency="EUR",
        processor_ref=earlier_ref(unique, minor, "EUR"),
        paid_at=timezone.now(),
    )
