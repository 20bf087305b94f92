"""A circuit breaker for each gateway, in Postgres, so that every process knows what one has met.

After a streak of tries that found the processor out of reach, broken or asking for less, nothing
new begins for a while; then one new effect may, as a probe, and what it meets decides. What was
written before is settled all the same, at its own pace, and any answer that is none of these ends
the rest.
"""

from __future__ import annotations

import logging
from datetime import timedelta

from django.conf import settings
from django.db.models import F, Q
from django.utils import timezone

from agent_core.errors import reference_new
from payments.errors import ProcessorResting
from payments.gateways.base import Reply
from payments.gateways.classes import AnswerClass
from payments.models import Breaker

log = logging.getLogger(__name__)


def breaker_allow(gateway: str) -> None:
    """Let a new effect begin, in the transaction that writes it, or refuse it.

    Of all who come after a rest one gets through: the conditional update decides, and it is undone
    with the transaction when nothing was written.

    Raises:
        ProcessorResting: the processor is left alone for now.
    """
    if not Breaker.objects.filter(pk=gateway, rests_until__isnull=False).exists():
        return
    now = timezone.now()
    # Longer than the probe's try takes; one that never says anything is followed by another.
    until = now + timedelta(seconds=2 * settings.PAYMENT_TIMEOUT_SECONDS)
    free = Q(probe_until=None) | Q(probe_until__lte=now)
    probes = Breaker.objects.filter(free, pk=gateway, rests_until__lte=now)
    if probes.update(probe_until=until):
        log.warning("breaker.probed", extra={"gateway": gateway})
    elif Breaker.objects.filter(pk=gateway, rests_until__isnull=False).exists():
        raise ProcessorResting


def breaker_note(gateway: str, reply: Reply) -> None:
    """Note what a try has met; called outside any transaction, so that no lock is held."""
    if reply.state == "unknown" and reply.kind is None:
        return  # Nobody was asked.
    if reply.strain:
        _failed(gateway)
    elif reply.kind == AnswerClass.CONFIGURATION:
        _access_refused(gateway, reply)
    else:
        _answered(gateway)


def _failed(gateway: str) -> None:
    now = timezone.now()
    row = Breaker.objects.filter(pk=gateway)
    rests_until = now + timedelta(seconds=settings.PAYMENT_BREAKER_REST_SECONDS)
    oldest = now - timedelta(seconds=settings.PAYMENT_BREAKER_WINDOW_SECONDS)
    if not row.filter(failures__gt=0, since__gt=oldest).update(failures=F("failures") + 1):
        Breaker.objects.bulk_create(
            [Breaker(gateway=gateway, failures=1, since=now)],
            update_conflicts=True,
            unique_fields=["gateway"],
            update_fields=["failures", "since"],
        )
    enough = row.filter(failures__gte=settings.PAYMENT_BREAKER_FAILURES, rests_until=None)
    if enough.update(rests_until=rests_until, probe_until=None):
        log.error("breaker.opened", extra={"gateway": gateway})
    elif row.filter(rests_until__lte=now).update(rests_until=rests_until, probe_until=None):
        log.warning("breaker.stays_open", extra={"gateway": gateway})


def _answered(gateway: str) -> None:
    noted = Q(failures__gt=0) | Q(rests_until__isnull=False) | Q(refused_at__isnull=False)
    ended = Breaker.objects.filter(noted, pk=gateway).update(
        failures=0, rests_until=None, probe_until=None, refused_at=None, refused_reference=""
    )
    if ended:
        log.info("breaker.closed", extra={"gateway": gateway})


def _access_refused(gateway: str, reply: Reply) -> None:
    """Tell the operators: no member of staff can do anything about it, and no retry either."""
    reference = reference_new()
    fields = {"gateway": gateway, "reference": reference, "detail": reply.detail}
    log.error("gateway.configuration", extra=fields)
    now = timezone.now()
    Breaker.objects.bulk_create([Breaker(gateway=gateway, since=now)], ignore_conflicts=True)
    Breaker.objects.filter(pk=gateway, refused_at=None).update(
        refused_at=now, refused_reference=reference
    )
