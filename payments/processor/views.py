"""The address that the processor sends its events to. Its signature is the only way in."""

from __future__ import annotations

import logging
from typing import Final

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseNotAllowed
from django.views.decorators.csrf import csrf_exempt

from payments.gateways.events import EventRefused
from payments.processor.services_events import event_take, hooks_on

log = logging.getLogger(__name__)

MOST_BYTES: Final = 256_000
"""Stripe's events are some kilobytes long."""


@csrf_exempt
def hook(request: HttpRequest) -> HttpResponse:
    """Take an event. Who is refused learns nothing but that."""
    if not hooks_on():
        raise Http404
    if request.method != "POST":
        return HttpResponseNotAllowed(["POST"])
    raw = request.read(MOST_BYTES + 1)
    if len(raw) > MOST_BYTES:
        return HttpResponse(status=413)
    try:
        event_take(raw, request.headers.get("Stripe-Signature", ""))
    except EventRefused as refusal:
        log.warning("hook.refused", extra={"detail": str(refusal)})
        return HttpResponse(status=400)
    return HttpResponse(status=200)
