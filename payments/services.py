"""The ledger's front door: all that moves money, and the settling of what was left open."""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Final
from uuid import UUID

from django.conf import settings
from django.core.exceptions import ObjectDoesNotExist
from django.db import DatabaseError
from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.module_loading import import_string

from agent_core.errors import CountersignError
from payments.models import Intent
from payments.services_charges import charge_make
from payments.services_intents import intent_claim, intent_try, intents_due
from payments.services_observed import Change, observed, refunds_look
from payments.services_pause import refunds_go_on, refunds_stop
from payments.services_refunds import refund_make
from payments.services_settle import notices_post, reply_store
from payments.settled import intent_outcome
from payments.states import IntentState

__all__ = [
    "Change",
    "charge_make",
    "intent_settle",
    "intents_settle",
    "observed",
    "refund_make",
    "refunds_go_on",
    "refunds_look",
    "refunds_stop",
]

log = logging.getLogger(__name__)

# One tick's work: more waits for the next, which comes in seconds.
MOST_A_TICK: Final = 20
# A message that could not be posted in this time is given up; the log has it.
OWED_FOR: Final = timedelta(days=1)


def intent_settle(*, intent_id: UUID) -> bool:
    """Ask the processor about an open intent when that is due, and tell who waits if it is settled.

    Safe to run twice at once: one caller gets the try, one change of state wins. Returns whether
    the intent is settled now.
    """
    intent = Intent.objects.get(pk=intent_id)
    if intent.state == IntentState.OPEN and intent_claim(intent):
        intent = reply_store(intent=intent, reply=intent_try(intent), call=None, context=None)
    if intent.state == IntentState.OPEN:
        return False
    _tell(intent)
    return True


def intents_settle() -> int:
    """Settle what is due, and post what is owed to conversations; return how many were settled."""
    first = intents_due().order_by("next_try_at").values_list("pk", flat=True)[:MOST_A_TICK]
    settled = sum(intent_settle(intent_id=intent_id) for intent_id in list(first))
    for intent in _owed().distinct().order_by("settled_at")[:MOST_A_TICK]:
        _tell(intent)
    return settled


def _owed() -> QuerySet[Intent]:
    """Select what ended lately and a conversation waits for, but not what a call still hears of.

    The processor may tell of a try before its reply is here: its call then says it itself, and has
    the time that it has to come back at all.
    """
    now = timezone.now()
    lately = Q(settled_at__gte=now - OWED_FOR) | Q(refund__failed_at__gte=now - OWED_FOR)
    heard = Q(unknown_at=None, next_try_at__gt=now)
    return Intent.objects.filter(lately, calls__waiting=True).exclude(heard)


def _calls_tell(intent: Intent) -> None:
    """Let every call that was told "is being checked" say how it ended."""
    content, artifact = intent_outcome(intent)
    tell = import_string(settings.CALL_SETTLED)
    for call_id in intent.calls.exclude(call_id=None).values_list("call_id", flat=True):
        tell(call_id, content, artifact)


def _tell(intent: Intent) -> None:
    try:
        # The calls first: what is still owed is how the next tick finds a call not yet told, when
        # this process dies in between.
        _calls_tell(intent)
        notices_post(intent)
    except (DatabaseError, ObjectDoesNotExist, CountersignError):
        # A conversation that cannot be told must not keep other intents from being settled.
        log.exception("notice.failed", extra={"intent": str(intent.pk)})
