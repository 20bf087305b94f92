"""Bring our books to what the processor says of one object, whoever tells of it.

Webhooks, reconciliation and our own looks all come here: in any order, more than once, and before
the reply to the very try that made the object. The payment's row lock makes one of them first; the
rest find that nothing is left to change.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import F, Q, Sum
from django.utils import timezone
from django.utils.module_loading import import_string

from agent_core import faults
from payments.balances import payment_left
from payments.gateways.base import Reply, ReplyState, Seen, gateway_named
from payments.locks import intent_lock, invoice_lock, payment_lock
from payments.models import Dispute, Intent, IntentCall, Payment, Refund
from payments.money import Money
from payments.recording import intent_recorded, object_recorded
from payments.references import refund_reference
from payments.retries import next_look
from payments.sentences import case
from payments.services_intents import connection_free, order_of
from payments.services_settle import intent_end, refund_move
from payments.states import (
    DISPUTE_COUNTS,
    DISPUTE_MOVES,
    DisputeState,
    IntentState,
    Operation,
    PaymentState,
    RefundOrigin,
    RefundState,
    states_before,
)
from reviews.audit.services import Actor, task
from reviews.audit.words import Action

log = logging.getLogger(__name__)

What = Literal["nothing", "nowhere", "settled", "recorded", "moved"]
# One tick's looks; the rest wait for the next.
MOST_LOOKS: Final = 20
LOOKING: Final = "payments.refunds_look"


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What became of our books: plain data, the same for whoever reports it.

    `what`: "nothing" (they said so already), "nowhere" (no payment of ours is meant), "settled" (an
    intent that was open), "recorded" (an object we did not know), "moved" (one that we knew).
    `before` and `after` are states; `reference` is what people call the refund or payment.
    """

    what: What
    kind: str
    processor_ref: str
    reference: str = ""
    payment_reference: str = ""
    before: str = ""
    after: str = ""
    amount_minor: int = 0
    currency: str = ""
    failed_later: bool = False

    @property
    def changed(self) -> bool:
        """Tell whether a row of ours is different now."""
        return self.what in {"settled", "recorded", "moved"}


def observed(seen: Seen, *, source: str) -> Change:
    """Bring our books to what the processor says of one object; `source` names who heard it.

    Safe at any time, in any order and again: the state that says more wins, and a second telling
    changes nothing.
    """
    book: dict[str, Callable[[Seen, Actor], Change]] = {
        "payment": _payment_seen,
        "refund": _refund_seen,
        "dispute": _dispute_seen,
    }
    with faults.commit("processor.observed", transaction.atomic()):
        change = book[seen.kind](seen, task(source))
    if change.what != "nothing":
        fields = {"source": source, "kind": seen.kind, "object": seen.processor_ref}
        log.info("processor.observed", extra={**fields, "what": change.what, "after": change.after})
    return change


def refunds_look() -> int:
    """Ask the processor about accepted refunds whose time has come; return how many moved on."""
    # Of those made at the processor, its events and the daily comparison tell.
    ours = Refund.objects.filter(state=RefundState.ACCEPTED, intent__isnull=False)
    due = ours.filter(next_look_at__lte=timezone.now())
    first = due.order_by("next_look_at").values_list("pk", flat=True)[:MOST_LOOKS]
    return sum(_look(refund_id) for refund_id in list(first))


def _look(refund_id: UUID) -> bool:
    now, rows = timezone.now(), Refund.objects.select_related("intent", "payment")
    refund = rows.get(pk=refund_id)
    with faults.commit("refund.look", transaction.atomic()):
        taken = Refund.objects.filter(
            pk=refund_id, state=RefundState.ACCEPTED, next_look_at__lte=now
        ).update(looks=F("looks") + 1, next_look_at=next_look(refund.looks + 1, now))
    if not taken or refund.intent is None:
        return False
    connection_free()
    with faults.around("processor.look_at_refund"):
        found = gateway_named(refund.intent.gateway).find(order_of(refund.intent))
    if found is None or found.state == "unknown" or found.processor_ref != refund.processor_ref:
        return False
    return observed(_as_seen(refund, found), source=LOOKING).changed


def _as_seen(refund: Refund, found: Reply) -> Seen:
    return Seen(
        kind="refund",
        processor_ref=refund.processor_ref,
        payment_ref=refund.payment.processor_ref,
        amount_minor=refund.amount_minor,
        currency=refund.currency,
        state="failed" if found.state == "failed" else _going(found.state),
        failure=found.failure,
        intent_id=refund.intent_id,
        created_at=refund.created_at,
    )


def _going(state: str) -> Literal["accepted", "succeeded"]:
    return "succeeded" if state == "succeeded" else "accepted"


def _change(seen: Seen, what: What, **more: Any) -> Change:
    return Change(
        what=what,
        kind=seen.kind,
        processor_ref=seen.processor_ref,
        amount_minor=seen.amount_minor,
        currency=seen.currency,
        **more,
    )


def _payment_seen(seen: Seen, by: Actor) -> Change:
    """Settle the charge that waits for this payment; one made elsewhere belongs to nobody here."""
    intent = _intent_of(seen, Operation.CHARGE)
    if intent is None or seen.state not in {"succeeded", "failed"}:
        known = Payment.objects.filter(processor_ref=seen.processor_ref).first()
        if known is None:
            return _change(seen, "nowhere")
        return _change(seen, "nothing", reference=known.reference, after=known.state)
    invoice = invoice_lock(intent.target_id)
    intent = intent_lock(intent.pk)
    before = intent.state
    if before == IntentState.OPEN:
        intent_end(intent, invoice, _reply(seen), by)
        intent.refresh_from_db()
    reference = str(intent.result.get("reference") or invoice.reference)
    what: What = "settled" if before == IntentState.OPEN else "nothing"
    return _change(seen, what, reference=reference, before=before, after=intent.state)


def _refund_seen(seen: Seen, by: Actor) -> Change:
    payment = _payment_of(seen)
    if payment is None:
        return _change(seen, "nowhere")
    payment = payment_lock(payment.pk)
    intent = _intent_of(seen, Operation.REFUND)
    if intent is not None and intent.target_id == payment.pk:
        intent = intent_lock(intent.pk)
        refund = Refund.objects.get(intent=intent)
        if intent.state == IntentState.OPEN:
            return _settled(seen, payment, intent, refund, by)
        if refund.processor_ref == seen.processor_ref:
            return _moved(seen, payment, refund, by)
    known = Refund.objects.filter(processor_ref=seen.processor_ref).first()
    if known is not None:
        return _moved(seen, payment, known, by)
    return _recorded(seen, payment, by)


def _settled(seen: Seen, payment: Payment, intent: Intent, refund: Refund, by: Actor) -> Change:
    """Settle what waits for this very object: its own reply is still to come, or never will."""
    before = refund.state
    intent_end(intent, payment, _reply(seen), by)
    refund.refresh_from_db()
    return _change(
        seen,
        "settled",
        reference=refund.reference,
        payment_reference=payment.reference,
        before=before,
        after=refund.state,
    )


def _moved(seen: Seen, payment: Payment, refund: Refund, by: Actor) -> Change:
    """Move a refund that we know; one that fails after it was accepted reopens its case."""
    before = refund.state
    moved = refund_move(refund, seen)
    failed = moved and refund.state == RefundState.FAILED
    if moved:
        told = {"state": refund.state, "processor_ref": seen.processor_ref}
        action = Action.REFUND_FAILED if failed else Action.REFUND_SETTLED
        _record(action, seen, payment, refund, by, before={"state": before}, after=told)
    if failed:
        _reopen(payment, refund)
    return _change(
        seen,
        "moved" if moved else "nothing",
        reference=refund.reference,
        payment_reference=payment.reference,
        before=before,
        after=refund.state,
        failed_later=failed,
    )


def _recorded(seen: Seen, payment: Payment, by: Actor) -> Change:
    """Write a refund that nobody here asked for; a failed one, so that it stays failed."""
    own = seen.state == "failed" and seen.intent_id is not None
    if own or seen.currency != payment.currency:
        what: What = "nothing" if seen.state == "failed" else "nowhere"
        return _change(seen, what, payment_reference=payment.reference)
    refund = Refund.objects.create(
        reference=refund_reference(),
        payment=payment,
        amount_minor=seen.amount_minor,
        currency=seen.currency,
        origin=RefundOrigin.OUTSIDE,
        processor_ref=seen.processor_ref,
        created_at=seen.created_at,
    )
    refund_move(refund, seen)
    told = {
        "state": refund.state,
        "amount_minor": seen.amount_minor,
        "currency": seen.currency,
        "left_minor": payment_left(payment),
        "processor_ref": seen.processor_ref,
    }
    _record(Action.REFUND_OUTSIDE, seen, payment, refund, by, before={}, after=told)
    return _change(
        seen,
        "recorded",
        reference=refund.reference,
        payment_reference=payment.reference,
        after=refund.state,
    )


def _reopen(payment: Payment, refund: Refund) -> None:
    """Open a ticket and owe each conversation a message, in the transaction that moved it.

    It moves once, so there is one of each.
    """
    intent = refund.intent
    if intent is None or intent.conversation_id is None:
        # Made at the processor: whoever made it reads of it there.
        log.error("refund.outside_failed", extra={"refund": refund.reference})
        return
    IntentCall.objects.filter(intent=intent).update(waiting=True)
    amount = Money(refund.amount_minor, refund.currency)
    subject, body = case(amount, payment.reference, refund.reference)
    import_string(settings.REFUND_FAILED_CASE)(
        key=refund.pk,
        subject=subject,
        body=body,
        requester_id=intent.requester_id,
        conversation_id=intent.conversation_id,
        customer_id=payment.customer_id,
        team_id=payment.customer.team_id,
        payment_id=payment.pk,
        payment_reference=payment.reference,
    )


def _dispute_seen(seen: Seen, by: Actor) -> Change:
    payment = Payment.objects.filter(processor_ref=seen.payment_ref).first()
    if payment is None:
        return _change(seen, "nowhere")
    payment, state = payment_lock(payment.pk), DisputeState(seen.state)
    dispute = Dispute.objects.filter(processor_ref=seen.processor_ref).first()
    before = dispute.state if dispute is not None else ""
    closed = None if state == DisputeState.OPEN else timezone.now()
    if dispute is None:
        Dispute.objects.create(
            payment=payment,
            processor_ref=seen.processor_ref,
            amount_minor=seen.amount_minor,
            currency=seen.currency,
            state=state,
            created_at=seen.created_at,
            closed_at=closed,
        )
    elif not Dispute.objects.filter(
        pk=dispute.pk, state__in=states_before(DISPUTE_MOVES, state)
    ).update(state=state, closed_at=closed):
        return _change(seen, "nothing", reference=payment.reference, before=before, after=before)
    _disputed_sum(payment)
    told = {"state": state, "amount_minor": seen.amount_minor, "dispute": seen.processor_ref}
    was = {"state": before} if before else {}
    object_recorded(
        Action.PAYMENT_DISPUTED,
        by,
        kind="payment",
        pk=payment.pk,
        reference=payment.reference,
        rule=state,
        before=was,
        after=told,
    )
    what: What = "moved" if before else "recorded"
    return _change(seen, what, reference=payment.reference, before=before, after=state)


def _disputed_sum(payment: Payment) -> None:
    """Write on the payment what the banks hold of it."""
    held = Dispute.objects.filter(payment=payment, state__in=DISPUTE_COUNTS)
    total = held.aggregate(total=Sum("amount_minor"))["total"] or 0
    Payment.objects.filter(pk=payment.pk).update(
        disputed=total > 0, disputed_minor=min(total, payment.amount_minor)
    )


def _payment_of(seen: Seen) -> Payment | None:
    """Find the payment of a refund; by its own intent when the processor names another object."""
    payment = Payment.objects.filter(processor_ref=seen.payment_ref).exclude(processor_ref="")
    found = payment.first()
    if found is None and (intent := _intent_of(seen, Operation.REFUND)) is not None:
        found = Payment.objects.filter(pk=intent.target_id).first()
    if found is None:
        known = Refund.objects.select_related("payment").filter(processor_ref=seen.processor_ref)
        refund = known.first()
        found = refund.payment if refund is not None else None
    return found if found is not None and found.state == PaymentState.SUCCEEDED else None


def _intent_of(seen: Seen, operation: Operation) -> Intent | None:
    """Return the intent that an object carries, if it is what that intent asked for.

    Metadata can be written by anybody with access to the processor; the amount then still counts.
    """
    if seen.intent_id is None:
        return None
    named = Q(pk=seen.intent_id, operation=operation)
    same = Q(amount_minor=seen.amount_minor, currency=seen.currency)
    return Intent.objects.filter(named & same).first()


def _reply(seen: Seen) -> Reply:
    state: ReplyState = "failed" if seen.state == "failed" else _going(seen.state)
    return Reply(state=state, processor_ref=seen.processor_ref, failure=seen.failure)


def _record(
    action: Action,
    seen: Seen,
    payment: Payment,
    refund: Refund,
    by: Actor,
    *,
    before: dict[str, Any],
    after: dict[str, Any],
) -> None:
    rule = seen.failure
    if refund.intent is not None:
        intent_recorded(
            action,
            refund.intent,
            by,
            reference=payment.reference,
            rule=rule,
            before=before,
            after=after,
        )
        return
    object_recorded(
        action,
        by,
        kind="refund",
        pk=refund.pk,
        reference=payment.reference,
        rule=rule,
        before=before,
        after=after,
    )
