"""Our side of the comparison: payments, charges that made none, refunds and disputes, as lines."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final
from uuid import UUID

from django.db.models import F, Q, QuerySet
from django.utils import timezone

from payments.gateways.base import Seen, SeenKind
from payments.models import Dispute, Intent, Payment, Refund
from payments.retries import LONGEST_LOOK
from payments.states import DISPUTE_COUNTS, DisputeState, IntentState, Operation, RefundState

PAGE: Final = 500
WAITING: Final = "waiting"
"""The state of a line whose outcome we do not know: it may exist there or not."""
MAY_COME_BACK: Final = timedelta(days=90)
"""How long after a refund a bank may still send it back."""
MOST_FOLLOWED: Final = 1000
"""Refunds of earlier days that one daily comparison asks about."""

_WAITS: Final = frozenset({RefundState.SENDING, RefundState.UNKNOWN})


@dataclass(frozen=True, slots=True, kw_only=True)
class Ours:
    """One line of our books. `reference` is what people call it, or its invoice."""

    kind: SeenKind
    reference: str
    processor_ref: str
    intent_id: UUID | None
    amount_minor: int
    currency: str
    state: str
    at: datetime


def ours_like(kind: SeenKind, seen: Sequence[Seen]) -> dict[str, Ours]:
    """Find our lines for objects of the processor, whenever made: by its name, else by our intent.

    Returns:
        Our lines by the processor's name of the object.
    """
    names = [one.processor_ref for one in seen]
    intents = {one.intent_id: one.processor_ref for one in seen if one.intent_id is not None}
    lines = [line for rows in _rows(kind, names, list(intents)) for line in map(_line, rows)]
    by_intent = {intents[x.intent_id]: x for x in lines if x.intent_id in intents}
    return by_intent | {x.processor_ref: x for x in lines if x.processor_ref in set(names)}


def ours_within(kind: SeenKind, since: datetime, until: datetime, gateway: str) -> Iterator[Ours]:
    """Yield our lines of a period, a page at a time: a large one takes no more memory."""
    for rows, moment in _tables(kind):
        inside = rows.filter(**{f"{moment}__gte": since, f"{moment}__lt": until})
        yield from _paged(inside.filter(_through(rows.model, gateway)))


def disputes_open(before: datetime, gateway: str) -> Iterator[Ours]:
    """Yield the disputes of earlier days that have not ended."""
    rows = Dispute.objects.select_related("payment").filter(
        state=DisputeState.OPEN, created_at__lt=before
    )
    yield from _paged(rows.filter(_through(Dispute, gateway)))


def refunds_to_follow(before: datetime, gateway: str) -> list[Ours]:
    """Return the refunds of earlier days that may still fail, the longest unasked first.

    Those that are accepted come first, whatever their age; of those that succeeded, the ones that
    a bank may still send back.
    """
    going = Refund.objects.filter(_through(Refund, gateway), created_at__lt=before)
    going = going.exclude(processor_ref="").order_by(F("next_look_at").asc(nulls_first=True), "pk")
    accepted = list(going.filter(state=RefundState.ACCEPTED)[:MOST_FOLLOWED])
    late = going.filter(state=RefundState.SUCCEEDED, created_at__gte=timezone.now() - MAY_COME_BACK)
    return [*map(_line, [*accepted, *late[: MOST_FOLLOWED - len(accepted)]])]


def refunds_followed(names: Collection[str]) -> None:
    """Note that these were asked about, so that others come first the next time."""
    going = Refund.objects.filter(state__in=[RefundState.ACCEPTED, RefundState.SUCCEEDED])
    going.filter(processor_ref__in=names).update(next_look_at=timezone.now() + LONGEST_LOOK)


def payments_known(references: Collection[str]) -> dict[str, str]:
    """Return what we call the payments that the processor names so."""
    rows = Payment.objects.filter(processor_ref__in=[name for name in references if name])
    return dict(rows.values_list("processor_ref", "reference"))


def flags_without_dispute(since: datetime, until: datetime, gateway: str) -> Iterator[Payment]:
    """Yield payments of a period that are marked as disputed with no dispute in our books."""
    rows = Payment.objects.filter(paid_at__gte=since, paid_at__lt=until, disputed=True)
    rows = rows.filter(_through(Payment, gateway))
    yield from rows.exclude(disputes__state__in=DISPUTE_COUNTS).order_by("pk")


def _paged(rows: QuerySet[Any]) -> Iterator[Ours]:
    rows, last = rows.order_by("pk"), None
    while page := list((rows.filter(pk__gt=last) if last else rows)[:PAGE]):
        yield from map(_line, page)
        last = page[-1].pk


def _through(model: type[Any], gateway: str) -> Q:
    """Select what went through a gateway; rows of earlier days name none and belong to any."""
    if model is Intent:
        return Q(gateway=gateway)
    path = "payment__intent" if model is Dispute else "intent"
    return Q(**{path: None}) | Q(**{f"{path}__gateway": gateway})


def _rows(kind: SeenKind, names: list[str], intents: list[UUID]) -> Iterator[QuerySet[Any]]:
    for rows, _moment in _tables(kind):
        if rows.model is Intent:
            yield rows.filter(pk__in=intents)
        elif rows.model is Dispute:
            yield rows.filter(processor_ref__in=names)
        else:
            yield rows.filter(Q(processor_ref__in=names) | Q(intent_id__in=intents))


def _tables(kind: SeenKind) -> list[tuple[QuerySet[Any], str]]:
    """Name the rows of a kind, and the column that says to which day a row belongs."""
    if kind == "refund":
        return [(Refund.objects.all(), "created_at")]
    if kind == "dispute":
        return [(Dispute.objects.select_related("payment"), "created_at")]
    # A charge that has made a payment is told of by it.
    charges = Intent.objects.filter(operation=Operation.CHARGE, payment=None)
    return [(Payment.objects.all(), "paid_at"), (charges, "created_at")]


def _line(row: Any) -> Ours:
    return _LINES[type(row)](row)


def _of_payment(row: Payment) -> Ours:
    return _ours(row, "payment", row.reference, (row.state, row.paid_at), row.intent_id)


def _of_charge(row: Intent) -> Ours:
    state = WAITING if row.state == IntentState.OPEN else row.state
    invoice = str(row.result.get("target") or "")
    return _ours(row, "payment", invoice, (state, row.created_at), row.pk)


def _of_refund(row: Refund) -> Ours:
    state = WAITING if row.state in _WAITS else row.state
    return _ours(row, "refund", row.reference, (state, row.created_at), row.intent_id)


def _of_dispute(row: Dispute) -> Ours:
    return _ours(row, "dispute", row.payment.reference, (row.state, row.created_at))


_LINES: Final[dict[type[Any], Callable[[Any], Ours]]] = {
    Payment: _of_payment,
    Intent: _of_charge,
    Refund: _of_refund,
    Dispute: _of_dispute,
}


def _ours(
    row: Any,
    kind: SeenKind,
    reference: str,
    since: tuple[str, datetime],
    intent_id: UUID | None = None,
) -> Ours:
    return Ours(
        kind=kind,
        reference=reference,
        processor_ref=row.processor_ref,
        intent_id=intent_id,
        amount_minor=row.amount_minor,
        currency=row.currency,
        state=str(since[0]),
        at=since[1],
    )
