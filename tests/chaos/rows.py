"""What stands in the product's tables and in the processor's books when a chaos run is over."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db.models import Count, Q

from agent_core.runs.models import Call, Event, Message, Run
from agent_core.runs.states import RUN_FINAL, CallState, Role
from exports.models import Export
from exports.states import EXPORT_ACTIVE
from payments.models import Intent, IntentCall, Invoice, Payment, Refund
from payments.states import IntentState, InvoiceState, PaymentState, RefundState
from tickets.models import Ticket


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRow:
    """A run, with how many stop records and answers it has."""

    id: UUID
    message_id: UUID
    state: str
    final: bool
    rule: str = ""
    stops: int = 1
    answers: int = 1
    followed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectRow:
    """An effect that succeeded: what it is about, and what it is at the processor."""

    kind: str
    target: str
    amount_minor: int = 0
    run_id: UUID | None = None
    processor_ref: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class EventRow:
    """A durable event, in the order of its number."""

    conversation_id: UUID
    run_id: UUID | None
    attempt: int
    kind: str
    at: datetime


@dataclass(kw_only=True)
class Tables:
    """Everything of ours that is checked."""

    runs: list[RunRow] = field(default_factory=list)
    effects: list[EffectRow] = field(default_factory=list)
    events: list[EventRow] = field(default_factory=list)
    # Calls of ended runs that stand as if they still went on.
    calls_open: list[str] = field(default_factory=list)
    # Intents, exports and owed notices that nobody has brought to an end.
    work_open: list[str] = field(default_factory=list)
    # Places of the transcript that are missing or taken twice.
    gaps: list[str] = field(default_factory=list)
    invoices_paid: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Moved:
    """Money that really moved, in the processor's own books."""

    kind: str
    id: str
    payment: str
    amount_minor: int
    intent: str
    reference: str


def moved_of(books: Mapping[str, Any]) -> list[Moved]:
    """Read what succeeded from the processor's books; payments of earlier days are left out."""
    return [
        Moved(
            kind=kind,
            id=row["id"],
            payment=row.get("payment_intent", row["id"]),
            amount_minor=row["amount"],
            intent=row["metadata"].get("intent", ""),
            reference=row["metadata"].get("reference", ""),
        )
        for kind, table in (("charge", "payment_intents"), ("refund", "refunds"))
        for row in books[table]
        if row["status"] == "succeeded" and not row["id"].startswith("pi_earlier_")
    ]


def tables_read() -> Tables:
    """Read the product's tables."""
    paid = Invoice.objects.filter(state=InvoiceState.PAID)
    return Tables(
        runs=list(_runs()),
        effects=list(_effects()),
        events=[
            EventRow(conversation_id=conversation, run_id=run, attempt=attempt, kind=kind, at=at)
            for conversation, run, attempt, kind, at in Event.objects.order_by("id").values_list(
                "conversation_id", "run_id", "attempt", "kind", "created_at"
            )
        ],
        calls_open=list(_calls_open()),
        work_open=list(work_open()),
        gaps=list(_gaps()),
        invoices_paid=frozenset(paid.values_list("reference", flat=True)),
    )


def work_open() -> Iterator[str]:
    """Tell what is still on its way beside the runs themselves."""
    for pk in Intent.objects.filter(state=IntentState.OPEN).values_list("pk", flat=True):
        yield f"intent {pk} is open"
    active = Export.objects.filter(state__in=EXPORT_ACTIVE)
    for reference, state in active.values_list("reference", "state"):
        yield f"export {reference} is {state}"
    for pk in IntentCall.objects.filter(waiting=True).values_list("intent_id", flat=True):
        yield f"intent {pk} owes a message"


def _runs() -> Iterator[RunRow]:
    answered = Count("answers", filter=Q(answers__role=Role.ASSISTANT), distinct=True)
    rows = Run.objects.annotate(said=answered).order_by("created_at")
    fields = ("pk", "message_id", "state", "stop__rule", "said", "continued_by")
    for pk, message, state, rule, said, follower in rows.values_list(*fields):
        yield RunRow(
            id=pk,
            message_id=message,
            state=state,
            final=state in RUN_FINAL,
            rule=rule or "",
            stops=int(rule is not None),
            answers=said,
            followed=follower is not None,
        )


def _effects() -> Iterator[EffectRow]:
    refunds = Refund.objects.filter(state=RefundState.SUCCEEDED, intent__isnull=False)
    for row in refunds.select_related("payment", "intent"):
        yield EffectRow(
            kind="refund",
            target=row.payment.reference,
            amount_minor=row.amount_minor,
            run_id=row.intent.run_id if row.intent else None,
            processor_ref=row.processor_ref,
        )
    charges = Payment.objects.filter(state=PaymentState.SUCCEEDED, intent__isnull=False)
    for paid in charges.select_related("invoice", "intent"):
        yield EffectRow(
            kind="charge",
            target=paid.invoice.reference if paid.invoice else "",
            amount_minor=paid.amount_minor,
            run_id=paid.intent.run_id if paid.intent else None,
            processor_ref=paid.processor_ref,
        )
    for subject in Ticket.objects.values_list("subject", flat=True):
        yield EffectRow(kind="ticket", target=subject)
    for run, filters in Export.objects.values_list("run_id", "filters"):
        yield EffectRow(kind="export", target=filters["start"], run_id=run)


def _calls_open() -> Iterator[str]:
    open_states = (CallState.QUEUED, CallState.RUNNING, CallState.WAITING, CallState.UNKNOWN)
    calls = Call.objects.filter(run__state__in=RUN_FINAL, state__in=open_states)
    for run, label, state in calls.values_list("run_id", "label", "state"):
        yield f"run {run} has ended and “{label}” is {state}"


def _gaps() -> Iterator[str]:
    places: dict[UUID, list[int]] = {}
    rows = Message.objects.order_by("position").values_list("conversation_id", "position")
    for conversation, position in rows:
        places.setdefault(conversation, []).append(position)
    for conversation, found in places.items():
        if found != list(range(1, len(found) + 1)):
            yield f"conversation {conversation} has lines {found}"
