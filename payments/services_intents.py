"""One outside effect from its committed row to its settled result; both operations go through here.

Step 1, a transaction: the row (`services_refunds`, `services_charges`). Step 2, no transaction and
no connection: the try. Step 3, a transaction: the result (`services_settle`).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, TypeVar
from uuid import UUID, uuid4

from django.conf import settings
from django.db import connection, transaction
from django.db.models import Exists, F, OuterRef, Q, QuerySet
from django.utils import timezone

from agent_core import faults
from agent_core.contract import RunContext
from agent_core.errors import ContractBroken
from payments.errors import IntentBusy
from payments.gateways.base import Order, Reply, gateway_named
from payments.gateways.classes import DOUBTFUL
from payments.locks import intent_lock, target_lock
from payments.models import Intent, IntentCall, Pause
from payments.recording import acting, intent_recorded, intent_wanted
from payments.retries import ORPHAN_AFTER, key_outlived, next_try
from payments.services_settle import reply_store
from payments.states import IntentState, Operation
from reviews.audit.services import Actor
from reviews.audit.words import Action

_PAUSE_SECONDS: Final = 0.05
_HELD: Final = Reply(state="unknown", detail="paused")

ResultT = TypeVar("ResultT")


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """An intent as a call found or made it; `attached` when another call had made it."""

    intent: Intent
    call: IntentCall
    attached: bool


def intent_create(
    *,
    context: RunContext,
    operation: Operation,
    target_id: UUID,
    amount_minor: int,
    currency: str,
    reference: str,
    review_id: UUID | None,
    result: dict[str, str],
    body: Callable[[UUID], dict[str, str]],
) -> Started:
    """Write the row of a wanted effect, in the caller's transaction and under its locks."""
    intent_id, now = uuid4(), timezone.now()
    intent = Intent.objects.create(
        id=intent_id,
        operation=operation,
        target_id=target_id,
        amount_minor=amount_minor,
        currency=currency,
        gateway=settings.PAYMENT_GATEWAY,
        # Never shared by two operations or two wishes: a key belongs to one row.
        idempotency_key=f"{operation}-{intent_id}",
        body=body(intent_id),
        result=result,
        call_id=context.call_id,
        run_id=context.run_id,
        attempt=context.attempt,
        conversation_id=context.conversation_id,
        review_id=review_id,
        requester_id=context.requester_id,
        next_try_at=now + ORPHAN_AFTER,
        created_at=now,
    )
    wanted = intent_wanted(intent)
    by = acting(context)
    intent_recorded(Action.INTENT_BEGUN, intent, by, reference=reference, after=wanted)
    return Started(intent=intent, call=_call_row(intent, context, attached=False), attached=False)


def intent_replayed(context: RunContext, operation: Operation, target_id: UUID) -> Started | None:
    """Return what a call with this very id began or attached to earlier, on the same target."""
    if context.call_id is None:
        return None
    same = IntentCall.objects.filter(intent__operation=operation, intent__target_id=target_id)
    call = same.select_related("intent").filter(call_id=context.call_id).first()
    if call is None:
        return None
    return Started(intent=call.intent, call=call, attached=call.attached)


def intent_attach(context: RunContext, intent: Intent) -> Started:
    """Join an open intent that means the same: no new key, no new review."""
    by, call_id = acting(context), context.call_id
    intent_recorded(Action.INTENT_JOINED, intent, by, call_id=call_id)
    return Started(intent=intent, call=_call_row(intent, context, attached=True), attached=True)


def intent_begin(begin: Callable[[], ResultT]) -> ResultT:
    """Run step 1; while another try on the same target is in the air, wait for it a little.

    Raises:
        IntentBusy: the other one's outcome is not known in time; nothing was written.
    """
    until = time.monotonic() + float(settings.PAYMENT_TIMEOUT_SECONDS)
    while True:
        try:
            return begin()
        except IntentBusy as busy:
            if not busy.data.get("in_flight") or time.monotonic() >= until:
                raise
        connection_free()
        time.sleep(_PAUSE_SECONDS)


def intent_finish(started: Started, context: RunContext) -> Intent:
    """Run steps 2 and 3 for a call, and return the intent as the call may report it.

    Only the call that made an intent tries it, and only until a first answer is missing; all later
    tries are the settle task's.
    """
    intent = started.intent
    if intent.state == IntentState.OPEN and intent.unknown_at is None:
        if not started.attached:
            # Made here, or by an attempt that died: the key makes a second try harmless.
            reply = intent_try(intent) if _count_try(intent, acting(context)) else _HELD
            return reply_store(intent=intent, reply=reply, call=started.call, context=context)
        intent = _awaited(intent)
    if intent.state == IntentState.OPEN:
        intent = _told(started, context)
    return intent


def intents_due() -> QuerySet[Intent]:
    """Select the open intents that may be tried now, for the first time or again."""
    return _triable().filter(next_try_at__lte=timezone.now())


def intent_claim(intent: Intent) -> bool:
    """Take the next try of an open intent when it is due; False when another has it."""
    now, due = timezone.now(), intents_due().filter(pk=intent.pk)
    later = next_try(intent.tries + 1, now, settings.PAYMENT_TIMEOUT_SECONDS)
    # The wait is longer than a try takes, so that two tasks do not ask at once.
    lease = timedelta(seconds=2 * settings.PAYMENT_TIMEOUT_SECONDS)
    with faults.commit("intent.claim", transaction.atomic()):
        taken = due.update(tries=F("tries") + 1, next_try_at=max(later, now + lease))
        intent.refresh_from_db()
        if taken:
            intent_recorded(Action.INTENT_SENT, intent, acting(None), after={"try": intent.tries})
    return taken == 1


def intent_try(intent: Intent) -> Reply:
    """Ask the processor once, with no transaction open and no connection held.

    Within the key's life the stored body goes out under the stored key. After it, or once the
    processor has named the object, we look for it first.
    """
    connection_free()
    gateway, order = gateway_named(intent.gateway), order_of(intent)
    if key_outlived(intent.created_at, timezone.now()) or intent.processor_ref:
        with faults.around("processor.look_first"):
            found = gateway.find(order)
        if found is not None:
            return found
    with faults.around("processor.send"):
        reply = gateway.send(order)
    again = intent.unknown_at is not None
    # A refusal now does not undo what an earlier try may have done.
    doubted = reply.state == "failed" and (again or reply.failure in DOUBTFUL)
    # A processor that broke may keep that as the answer of the key, whatever it had done.
    stuck = again and reply.broke
    if not doubted and not stuck:
        return reply
    with faults.around("processor.look_again"):
        found = gateway.find(order)
    return reply if found is None or (stuck and found.state == "unknown") else found


def order_of(intent: Intent) -> Order:
    """Return what is sent for an intent, at every try the same."""
    return Order(
        operation=Operation(intent.operation),
        intent_id=intent.pk,
        key=intent.idempotency_key,
        body=intent.body,
        since=intent.created_at,
        processor_ref=intent.processor_ref,
    )


def connection_free() -> None:
    """Give the connection back before the processor is asked; no transaction may be open."""
    if connection.in_atomic_block:
        # Only a test's own wrapper is let through; a real one would hold a connection for seconds.
        if not all(getattr(block, "_from_testcase", False) for block in connection.atomic_blocks):
            raise ContractBroken("The processor is never asked inside a transaction.")
        return
    connection.close()


def _triable() -> QuerySet[Intent]:
    """Select the open intents without those that a pause holds.

    Every try is counted before the line is used, so that one with none has certainly moved nothing
    and can wait. An effect that a try has begun on may have happened: it is asked about.
    """
    pause = Pause.objects.filter(operation=OuterRef("operation"), resumed_at=None)
    return Intent.objects.filter(Q(tries__gt=0) | ~Exists(pause), state=IntentState.OPEN)


def _count_try(intent: Intent, by: Actor) -> bool:
    """Count a call's own try; False when a pause holds it."""
    with faults.commit("intent.try", transaction.atomic()):
        counted = (
            _triable()
            .filter(pk=intent.pk)
            .update(tries=F("tries") + 1, next_try_at=timezone.now() + ORPHAN_AFTER)
        )
        if counted:
            intent_recorded(Action.INTENT_SENT, intent, by, after={"try": intent.tries + 1})
    # One that another has settled meanwhile is asked about once more; the key makes it harmless.
    return bool(counted) or not Intent.objects.filter(pk=intent.pk, state=IntentState.OPEN).exists()


def _awaited(intent: Intent) -> Intent:
    """Wait a little for a try that another call has in the air."""
    until = time.monotonic() + float(settings.PAYMENT_TIMEOUT_SECONDS)
    while intent.state == IntentState.OPEN and intent.unknown_at is None:
        if time.monotonic() >= until:
            break
        connection_free()
        time.sleep(_PAUSE_SECONDS)
        intent = Intent.objects.get(pk=intent.pk)
    return intent


def _told(started: Started, context: RunContext) -> Intent:
    """Owe this conversation a message, unless the intent has settled meanwhile."""
    with faults.commit("intent.told", transaction.atomic()):
        context.fence()
        target_lock(started.intent)
        intent = intent_lock(started.intent.pk)
        if intent.state == IntentState.OPEN:
            IntentCall.objects.filter(pk=started.call.pk).update(waiting=True)
    return intent


def _call_row(intent: Intent, context: RunContext, *, attached: bool) -> IntentCall:
    return IntentCall.objects.create(
        intent=intent,
        call_id=context.call_id,
        conversation_id=context.conversation_id,
        attached=attached,
    )
