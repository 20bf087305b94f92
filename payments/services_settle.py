"""Store what a try came to: the state moves once, by conditional update, whoever comes first.

Conversations that were told "is being checked" are owed a message; it is posted exactly once.
"""

from __future__ import annotations

import logging
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from django.conf import settings
from django.db import transaction
from django.utils import timezone
from django.utils.module_loading import import_string

from agent_core import faults
from agent_core.contract import RunContext
from payments.balances import payment_left
from payments.gateways.base import Reply, Seen
from payments.gateways.classes import AnswerClass, reason_of
from payments.locks import intent_lock, target_lock
from payments.models import Intent, IntentCall, Invoice, Payment, PaymentMethod, Refund
from payments.money import Money
from payments.receipts.services import receipt_issue, refund_receipt_issue
from payments.recording import acting, intent_recorded
from payments.references import payment_reference
from payments.results import Reason
from payments.retries import next_look, next_try
from payments.sentences import code_of, failed_later, notice
from payments.services_breaker import breaker_note
from payments.states import (
    INTENT_MOVES,
    INVOICE_MOVES,
    REFUND_MOVES,
    IntentState,
    InvoiceState,
    Operation,
    PaymentState,
    RefundState,
    states_before,
)
from reviews.audit.services import Actor
from reviews.audit.words import Action

log = logging.getLogger(__name__)


def reply_store(
    *, intent: Intent, reply: Reply, call: IntentCall | None, context: RunContext | None
) -> Intent:
    """Store a reply in one transaction and return the intent as it then is.

    `call` is who asked; its conversation hears the result from it. Without one, the settle task
    asked, and every conversation concerned is owed a message.
    """
    breaker_note(intent.gateway, reply)
    with faults.commit("intent.reply", transaction.atomic(durable=True)):
        if context is not None:
            context.fence()
        target = target_lock(intent)
        reply = _certain(intent, reply)
        if reply.state == "unknown":
            _keep_asking(intent, reply, call)
            by, rule = acting(context), reply.detail[:60]
            told, reference = {"processor_ref": reply.processor_ref}, target.reference
            intent_recorded(
                Action.INTENT_UNKNOWN, intent, by, reference=reference, rule=rule, after=told
            )
        else:
            intent_end(intent, target, reply, acting(context), call=call)
        return intent_lock(intent.pk)


def intent_end(
    intent: Intent,
    target: Payment | Invoice,
    reply: Reply,
    by: Actor,
    *,
    call: IntentCall | None = None,
) -> None:
    """Settle an intent by a certain reply, under its target's lock; a settled one stays settled.

    `call` is who hears of it right now; all others that were told to wait are owed a message.
    """
    if _settle(intent, target, reply, by):
        _owe_messages(intent, call)
        return
    if reply.decline_code:
        # An event does not name it, so one that was first has left it empty.
        ended = Intent.objects.filter(pk=intent.pk, state=IntentState.FAILED, decline_code="")
        ended.update(decline_code=reply.decline_code)
    if call is not None and refund_failed_later(intent) is None:
        _owe_messages(intent, call)
    if reply.state == "succeeded" and isinstance(target, Payment):
        # The processor told of it, as being on its way, before its own reply was here.
        refund_move(Refund.objects.get(intent=intent), reply)


def refund_move(refund: Refund, reply: Reply | Seen) -> bool:
    """Move a refund where the processor has it, under its payment's lock; False: it is there.

    Never backwards: what comes late says less than what is stored.
    """
    now, state = timezone.now(), RefundState(reply.state)
    times: dict[RefundState, dict[str, Any]] = {
        RefundState.ACCEPTED: {"accepted_at": now, "next_look_at": next_look(0, now)},
        RefundState.SUCCEEDED: {"settled_at": now, "next_look_at": None},
        RefundState.FAILED: {
            "settled_at": refund.settled_at or now,
            "failed_at": now,
            "next_look_at": None,
            "failure_code": reply.failure,
        },
    }
    rows = Refund.objects.filter(pk=refund.pk, state__in=states_before(REFUND_MOVES, state))
    named = {"processor_ref": reply.processor_ref} if reply.processor_ref else {}
    moved = rows.update(state=state, **named, **times[state])
    refund.refresh_from_db()
    if moved and state == RefundState.SUCCEEDED:
        refund_receipt_issue(refund)
    return bool(moved)


def intent_reason(intent: Intent) -> Reason:
    """Return how the router takes an intent as it stands."""
    if intent.state == IntentState.FAILED:
        return reason_of(intent.failure_code)
    return "completed" if intent.state == IntentState.SUCCEEDED else "transient"


def notices_post(intent: Intent) -> int:
    """Post the owed messages of a settled intent; a second caller finds nothing left to post."""
    post = import_string(settings.CONVERSATION_NOTICE)
    said, dedupe = partial(notice_text, intent), f"intent:{intent.pk}"
    if (refund := refund_failed_later(intent)) is not None:
        said, dedupe = partial(failed_later_text, refund), f"refund:{refund.pk}:failed"
    owed = IntentCall.objects.filter(intent=intent, waiting=True)
    with faults.commit("intent.notices", transaction.atomic()):
        rows = list(owed.select_for_update(skip_locked=True))
        conversations = {row.conversation_id for row in rows if row.conversation_id}
        for conversation_id in conversations:
            post(conversation_id, said, dedupe)
        owed.filter(pk__in=[row.pk for row in rows]).update(waiting=False)
    return len(conversations)


def notice_text(intent: Intent) -> str:
    """Say how a settled intent ended, in a sentence that stands by itself."""
    amount = Money(intent.amount_minor, intent.currency)
    result = intent.result
    return notice(result["code"], amount, result["target"], result["reference"])


def refund_failed_later(intent: Intent) -> Refund | None:
    """Return the refund of an intent that had come to a good end, if it failed after that."""
    if intent.operation != Operation.REFUND:
        return None
    # As stored: whoever brings a late reply may hold the intent as it was before.
    ended = Refund.objects.filter(intent=intent, intent__state=IntentState.SUCCEEDED)
    return ended.select_related("payment").filter(state=RefundState.FAILED).first()


def failed_later_text(refund: Refund) -> str:
    """Say that a refund has failed which had come to a good end."""
    amount = Money(refund.amount_minor, refund.currency)
    return failed_later(amount, refund.payment.reference, refund.reference)


def _certain(intent: Intent, reply: Reply) -> Reply:
    """Take a refused access for the end of an intent when nothing can have gone out before it."""
    if reply.kind != AnswerClass.CONFIGURATION:
        return reply
    first = Intent.objects.filter(pk=intent.pk, tries__lte=1, unknown_at=None).exists()
    return replace(reply, state="failed") if first and reply.failure else reply


def _keep_asking(intent: Intent, reply: Reply, call: IntentCall | None) -> None:
    now = timezone.now()
    still_open = Intent.objects.filter(pk=intent.pk, state=IntentState.OPEN)
    soon = next_try(1, now, settings.PAYMENT_TIMEOUT_SECONDS)
    first = still_open.filter(unknown_at=None).update(unknown_at=now, next_try_at=soon)
    if reply.processor_ref:
        still_open.update(processor_ref=reply.processor_ref)
    if first:
        Refund.objects.filter(intent=intent, state=RefundState.SENDING).update(
            state=RefundState.UNKNOWN
        )
    if call is not None and still_open.exists():
        IntentCall.objects.filter(pk=call.pk).update(waiting=True)


def _settle(intent: Intent, target: Payment | Invoice, reply: Reply, by: Actor) -> bool:
    now = timezone.now()
    # What the processor has accepted is done as far as an intent goes: it is never sent again.
    state = IntentState.FAILED if reply.state == "failed" else IntentState.SUCCEEDED
    moved = Intent.objects.filter(
        pk=intent.pk, state__in=states_before(INTENT_MOVES, state)
    ).update(
        state=state,
        processor_ref=reply.processor_ref,
        failure_code=reply.failure,
        decline_code=reply.decline_code,
        settled_at=now,
    )
    if not moved:
        return False
    if isinstance(target, Invoice):
        result = _settle_charge(intent, target, reply, now)
    else:
        result = _settle_refund(intent, target, reply)
    Intent.objects.filter(pk=intent.pk).update(result=intent.result | result)
    _settled_record(intent, target, reply, by, result)
    log.info("intent.settled", extra={"intent": str(intent.pk), "outcome": result["code"]})
    return True


def _settled_record(
    intent: Intent,
    target: Payment | Invoice,
    reply: Reply,
    by: Actor,
    result: dict[str, str | int],
) -> None:
    failed = reply.state == "failed"
    intent_recorded(
        Action.INTENT_FAILED if failed else Action.INTENT_SUCCEEDED,
        intent,
        by,
        reference=target.reference,
        rule=reply.failure,
        before={"state": IntentState.OPEN},
        after={**result, "state": reply.state, "processor_ref": reply.processor_ref},
    )


def _settle_charge(
    intent: Intent, invoice: Invoice, reply: Reply, now: datetime
) -> dict[str, str | int]:
    result: dict[str, str | int] = {"target": invoice.reference, "reference": ""}
    if reply.state == "failed":
        return result | {"code": code_of(Operation.CHARGE, reply.failure)}
    payment = Payment.objects.create(
        reference=payment_reference(),
        customer=invoice.customer,
        invoice=invoice,
        method=PaymentMethod.objects.get(pk=intent.result["method"]),
        intent=intent,
        amount_minor=intent.amount_minor,
        currency=intent.currency,
        state=PaymentState.SUCCEEDED,
        processor_ref=reply.processor_ref,
        paid_at=now,
    )
    Invoice.objects.filter(
        pk=invoice.pk, state__in=states_before(INVOICE_MOVES, InvoiceState.PAID)
    ).update(state=InvoiceState.PAID)
    receipt_issue(payment)
    return result | {
        "code": code_of(Operation.CHARGE, "completed"),
        "reference": payment.reference,
        "payment": str(payment.pk),
    }


def _settle_refund(intent: Intent, payment: Payment, reply: Reply) -> dict[str, str | int]:
    refund = Refund.objects.get(intent=intent)
    refund_move(refund, reply)
    failed = reply.state == "failed"
    word = {"succeeded": "completed", "accepted": "accepted"}.get(reply.state, reply.failure)
    return {
        "target": payment.reference,
        "reference": "" if failed else refund.reference,
        "code": code_of(Operation.REFUND, word),
        "left_minor": payment_left(payment),
    }


def _owe_messages(intent: Intent, call: IntentCall | None) -> None:
    """Note who is owed a message: all that were told to wait, but not who hears it right now."""
    rows = IntentCall.objects.filter(intent=intent)
    if call is not None:
        rows.filter(conversation_id=call.conversation_id).update(waiting=False)
    elif not rows.filter(waiting=True).exists():
        # The run that made it never came back to say anything.
        rows.filter(attached=False).update(waiting=True)
