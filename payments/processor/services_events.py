"""Keep what the processor tells of, once, and bring the ledger to it.

An event says how its object stood when it was made. It is taken as it is, without asking the
processor how the object stands by now: `observed` never goes back from what says more, so that an
old event changes nothing, and what came in is handled also while the processor is out of reach.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Final

from django.conf import settings
from django.core.exceptions import ObjectDoesNotExist
from django.db import DatabaseError, transaction
from django.db.models import F
from django.utils import timezone

from agent_core import faults
from agent_core.errors import CountersignError
from payments.gateways.events import KINDS, Told, event_read, seen_in
from payments.processor.comparing import is_young
from payments.processor.models import ProcessorEvent
from payments.services_observed import observed

log = logging.getLogger(__name__)

SOURCE: Final = "processor.webhook"
# What a request leaves to be done, an error or a death, is tried again after these pauses.
FIRST_PAUSE: Final = timedelta(seconds=10)
LONGEST_PAUSE: Final = timedelta(hours=1)
MOST_TRIES: Final = 12
MOST_A_TICK: Final = 50
MOST_PRUNED: Final = 1000
_IN_OUR_FORMAT: Final = frozenset({"sandbox", "stripe"})


def hooks_on() -> bool:
    """Tell whether events are taken: the processor sends such, and we share a secret with it."""
    return settings.PAYMENT_GATEWAY in _IN_OUR_FORMAT and bool(settings.STRIPE_WEBHOOK_SECRET)


def event_take(raw: bytes, signature: str) -> None:
    """Keep a webhook that is the processor's, and handle it; a repeat changes nothing.

    Raises:
        EventRefused: it is not the processor's, not of our account, or no event.
    """
    live = settings.STRIPE_API_KEY[3:].startswith("live_") and settings.PAYMENT_GATEWAY == "stripe"
    told = event_read(raw, signature, secrets=settings.STRIPE_WEBHOOK_SECRET, livemode=live)
    _keep(told)
    event_handle(told.id)


def event_handle(event_id: str) -> bool:
    """Bring the ledger to what a kept event says; False when it is handled or another's already.

    What goes wrong is logged and left for the sweep: the processor has done its part.
    """
    event = ProcessorEvent.objects.filter(pk=event_id, handled_at=None).first()
    if event is None:
        return False
    pause = min(FIRST_PAUSE * 2**event.tries, LONGEST_PAUSE)
    with faults.commit("hook.claim", transaction.atomic()):
        claim = ProcessorEvent.objects.filter(pk=event_id, handled_at=None, tries=event.tries)
        taken = claim.update(tries=F("tries") + 1, next_try_at=timezone.now() + pause)
    if not taken:
        return False
    fields = {"event": event.pk, "kind": event.kind, "object": event.object_ref}
    try:
        changes = [observed(seen, source=SOURCE) for seen in seen_in(event.kind, event.body)]
    except (DatabaseError, ObjectDoesNotExist, CountersignError):
        last = event.tries + 1 >= MOST_TRIES
        # One that is given up is what the daily comparison is for.
        log.exception("hook.given_up" if last else "hook.failed", extra=fields)
        return False
    early = any(one.what == "nowhere" and one.kind != "payment" for one in changes)
    if early and is_young(event.received_at, timezone.now()):
        # Its payment may be on its way into our books; the sweep tries again.
        log.info("hook.early", extra=fields)
        return False
    outcome = changes[-1].what if changes else ""
    with faults.commit("hook.handled", transaction.atomic()):
        ProcessorEvent.objects.filter(pk=event_id).update(
            handled_at=timezone.now(), outcome=outcome
        )
    log.info("hook.handled", extra={**fields, "outcome": outcome})
    return True


def events_sweep() -> int:
    """Handle what a request left, and delete what was handled long ago; return how many of both."""
    due = ProcessorEvent.objects.filter(
        handled_at=None, next_try_at__lte=timezone.now(), tries__lt=MOST_TRIES
    )
    left = list(due.order_by("next_try_at").values_list("pk", flat=True)[:MOST_A_TICK])
    handled = sum(event_handle(event_id) for event_id in left)
    before = timezone.now() - timedelta(days=settings.PROCESSOR_EVENT_KEEP_DAYS)
    old = ProcessorEvent.objects.filter(received_at__lt=before).values("pk")[:MOST_PRUNED]
    with faults.commit("hook.pruned", transaction.atomic()):
        deleted, _by_model = ProcessorEvent.objects.filter(pk__in=old).delete()
    return handled + deleted


def _keep(told: Told) -> None:
    """Keep an event; the one that has its id already stays as it is."""
    row = ProcessorEvent(
        id=told.id,
        gateway=settings.PAYMENT_GATEWAY,
        kind=told.kind,
        object_ref=told.object_ref,
        body=told.body,
        made_at=told.made_at,
        # Until then it is the request that handles it.
        next_try_at=timezone.now() + FIRST_PAUSE,
        # What says nothing about our books has nothing left to be done.
        handled_at=None if told.kind in KINDS else timezone.now(),
    )
    with faults.commit("hook.kept", transaction.atomic(durable=True)):
        ProcessorEvent.objects.bulk_create([row], ignore_conflicts=True)
