"""The gateway to the sandbox processor: plain HTTP in Stripe's wire format.

One client a try, closed with it: no connection outlives the call, and none is shared by threads.
"""

from __future__ import annotations

import logging
from datetime import timedelta
from typing import Any, Final
from uuid import UUID

import httpx
from django.conf import settings

from payments.gateways.base import Order, Reply
from payments.gateways.wire import is_ours, object_reply, reply_of
from payments.states import Operation

log = logging.getLogger(__name__)

_ROUTES: Final = {Operation.CHARGE: "/v1/payment_intents", Operation.REFUND: "/v1/refunds"}
PAGE: Final = 100
MOST_PAGES: Final = 200
CLOCKS_APART: Final = timedelta(hours=1)


class SandboxGateway:
    """Speaks to the process that SANDBOX_URL names."""

    def charge_body(
        self, *, intent_id: UUID, amount_minor: int, currency: str, method_ref: str, reference: str
    ) -> dict[str, str]:
        """Build what a charge sends."""
        return {
            "amount": str(amount_minor),
            "currency": currency.lower(),
            "payment_method": method_ref,
            "confirm": "true",
            "metadata[intent]": str(intent_id),
            "metadata[reference]": reference,
        }

    def refund_body(
        self, *, intent_id: UUID, amount_minor: int, payment_ref: str, reference: str
    ) -> dict[str, str]:
        """Build what a refund sends."""
        return {
            "payment_intent": payment_ref,
            "amount": str(amount_minor),
            "metadata[intent]": str(intent_id),
            "metadata[reference]": reference,
        }

    def send(self, order: Order) -> Reply:
        """Send the stored body under the stored key."""
        headers = {"Idempotency-Key": order.key}
        try:
            with self._client() as client:
                answer = client.post(
                    _ROUTES[order.operation], data=dict(order.body), headers=headers
                )
        except httpx.HTTPError as error:
            return _noted(order, Reply(state="unknown", detail=type(error).__name__))
        return _noted(order, reply_of(order, answer.status_code, _json(answer)))

    def find(self, order: Order) -> Reply | None:
        """Look through what the processor has for the object that carries our intent."""
        try:
            with self._client() as client:
                return self._found(client, order)
        except httpx.HTTPError as error:
            return _noted(order, Reply(state="unknown", detail=type(error).__name__))

    def _found(self, client: httpx.Client, order: Order) -> Reply | None:
        since = order.since - CLOCKS_APART
        query = {"limit": str(PAGE), "created[gte]": str(int(since.timestamp()))}
        if order.operation == Operation.REFUND:
            query["payment_intent"] = order.body["payment_intent"]
        for _page in range(MOST_PAGES):
            answer = client.get(_ROUTES[order.operation], params=query)
            listed = _json(answer)
            rows = listed.get("data") if isinstance(listed, dict) else None
            if answer.status_code != 200 or not isinstance(rows, list):
                detail = f"{answer.status_code} no list"
                return _noted(order, Reply(state="unknown", detail=detail))
            for row in rows:
                if is_ours(order, row):
                    return _noted(order, object_reply(order, row))
            if not listed.get("has_more"):
                return None
            query["starting_after"] = str(rows[-1]["id"])
        return _noted(order, Reply(state="unknown", detail="too many pages"))

    def _client(self) -> httpx.Client:
        # Proxies of the environment are none of the processor's business.
        return httpx.Client(
            base_url=settings.SANDBOX_URL,
            timeout=settings.PAYMENT_TIMEOUT_SECONDS,
            trust_env=False,
        )


def _json(answer: httpx.Response) -> Any:
    try:
        return answer.json()
    except ValueError:
        return None


def _noted(order: Order, reply: Reply) -> Reply:
    fields = {"intent": str(order.intent_id), "state": reply.state, "detail": reply.detail}
    if reply.state != "succeeded":
        log.warning("gateway.reply", extra=fields)
    return reply
