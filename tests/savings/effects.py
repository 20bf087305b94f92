"""What a request has changed outside the conversation, in rows that two runs can be compared by.

References, ids and moments differ from run to run, so new rows are named "new" and compared by
what they say; rows of the sample data keep their references.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any
from uuid import UUID

from exports.models import Export
from payments.models import Intent, Invoice, Payment, Refund, Team
from reviews.models import Review
from tests.payments.processor import Processor
from tickets.models import Note, Ticket

Rows = tuple[tuple[str, ...], ...]
Effects = Mapping[str, Rows]


def effects_read(processor: Processor) -> dict[str, Rows]:
    """Return every table that a request can change, and the processor's own books."""
    return {
        "payments": _rows(_payments()),
        "refunds": _rows(_refunds()),
        "invoices": _rows(Invoice.objects.values_list("reference", "amount_minor", "state")),
        "intents": _rows(_intents()),
        **_books(processor.books()),
        "reviews": _rows(_reviews()),
        "tickets": _rows(_tickets()),
        "notes": _rows(Note.objects.values_list("ticket__subject", "author__username", "text")),
        "exports": _rows(_exports()),
    }


def differences(one: Effects, other: Effects) -> list[str]:
    """Say in which tables two runs differ, and by which rows."""
    found = []
    for table in sorted({*one, *other}):
        left, right = Counter(one.get(table, ())), Counter(other.get(table, ()))
        found += [f"{table}: only here {' | '.join(row)}" for row in (left - right).elements()]
        found += [f"{table}: only there {' | '.join(row)}" for row in (right - left).elements()]
    return found


def _rows(rows: Iterable[Iterable[Any]]) -> Rows:
    return tuple(sorted(tuple(str(value) for value in row) for row in rows))


def _payments() -> Iterable[tuple[Any, ...]]:
    for row in Payment.objects.select_related("customer", "invoice", "method"):
        yield (
            row.reference if row.intent_id is None else "new",
            row.customer.reference,
            row.invoice.reference if row.invoice else "",
            str(row.method),
            row.amount_minor,
            row.currency,
            row.state,
            row.disputed,
        )


def _refunds() -> Iterable[tuple[Any, ...]]:
    for row in Refund.objects.select_related("payment", "requested_by"):
        yield (
            row.reference if row.intent_id is None else "new",
            _payment_named(row.payment),
            row.amount_minor,
            row.currency,
            row.state,
            row.reason,
            row.requested_by.username if row.requested_by else "",
        )


def _intents() -> Iterable[tuple[Any, ...]]:
    for row in Intent.objects.select_related("requester"):
        yield (
            row.operation,
            _target(row.target_id),
            row.amount_minor,
            row.currency,
            row.state,
            row.gateway,
            row.requester.username,
            row.tries,
            row.failure_code,
        )


def _target(target_id: UUID) -> str:
    """Name what an intent is about: the invoice of a charge, the payment of a refund."""
    invoice = Invoice.objects.filter(pk=target_id).first()
    return invoice.reference if invoice else _payment_named(Payment.objects.get(pk=target_id))


def _payment_named(payment: Payment) -> str:
    return payment.reference if payment.intent_id is None else f"new of {payment.invoice}"


def _books(books: Mapping[str, Any]) -> dict[str, Rows]:
    payments = (
        (_kept(row["id"]), row["amount"], row["currency"], row["status"], row["payment_method"])
        for row in books["payment_intents"]
    )
    refunds = (
        (_kept(row["payment_intent"]), row["amount"], row["currency"], row["status"])
        for row in books["refunds"]
    )
    return {
        "processor's payments": _rows(payments),
        "processor's refunds": _rows(refunds),
        "processor's requests": _rows((row["route"],) for row in books["requests"]),
    }


def _kept(processor_ref: str) -> str:
    return processor_ref if processor_ref.startswith("pi_earlier_") else "new"


def _reviews() -> Iterable[tuple[Any, ...]]:
    for row in Review.objects.select_related("requested_by", "decided_by"):
        decided = row.decided_by.username if row.decided_by else ""
        asked = row.requested_by.username
        yield (row.kind, row.title, row.amount_minor, row.state, asked, decided, row.sentence)


def _tickets() -> Iterable[tuple[Any, ...]]:
    teams = {str(team.pk): team.name for team in Team.objects.all()}
    for row in Ticket.objects.select_related("requester"):
        yield (
            row.subject,
            row.body,
            row.state,
            row.priority,
            teams.get(str(row.team_id), row.team_id),
            row.customer_id,
            row.payment_reference,
            row.requester.username,
        )


def _exports() -> Iterable[tuple[Any, ...]]:
    for row in Export.objects.select_related("owner"):
        filters = sorted(row.filters.items())
        yield (
            row.owner.username,
            row.kind,
            filters,
            row.format,
            row.language,
            row.state,
            row.rows_done,
            row.bytes,
        )
