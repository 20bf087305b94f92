"""Log what a gateway was told: codes and classes are for operators, and for nobody else."""

from __future__ import annotations

import logging

from payments.gateways.base import Order, Reply
from payments.gateways.wire import names_no_row

log = logging.getLogger(__name__)


def noted(order: Order, reply: Reply) -> Reply:
    """Log a reply that is no success, loudly where somebody has to change a program."""
    fields = {
        "intent": str(order.intent_id),
        "state": reply.state,
        "kind": str(reply.kind or ""),
        "detail": reply.detail,
    }
    if names_no_row(reply):
        log.error("gateway.code_unknown", extra=fields)
    elif reply.failure == "key_conflict":
        log.error("gateway.key_conflict", extra=fields)
    elif reply.state != "succeeded":
        log.warning("gateway.reply", extra=fields)
    return reply
