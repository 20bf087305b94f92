"""The gateway to the sandbox processor: plain HTTP in Stripe's wire format.

One client a try, closed with it: no connection outlives the call, and none is shared by threads.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any, Final
from urllib.parse import quote
from uuid import UUID

import httpx
from django.conf import settings

from payments.gateways import bodies
from payments.gateways.base import Order, Reply, Seen, SeenKind
from payments.gateways.looking import LISTS, list_of, listed_seen, one_seen
from payments.gateways.notes import noted
from payments.gateways.wire import listed_reply, no_answer, reply_of
from payments.states import Operation

_ROUTES: Final = {Operation.CHARGE: "/v1/payment_intents", Operation.REFUND: "/v1/refunds"}
# The sandbox takes any key of this form; there is nothing behind it to protect.
_ACCESS: Final = {"Authorization": "Bearer sk_test_sandbox"}


class SandboxGateway:
    """Speaks to the process that SANDBOX_URL names."""

    def charge_body(
        self, *, intent_id: UUID, amount_minor: int, currency: str, method_ref: str, reference: str
    ) -> dict[str, str]:
        """Build what a charge sends."""
        return bodies.charge_body(
            intent_id=intent_id,
            amount_minor=amount_minor,
            currency=currency,
            method_ref=method_ref,
            reference=reference,
        )

    def refund_body(
        self, *, intent_id: UUID, amount_minor: int, currency: str, payment_ref: str, reference: str
    ) -> dict[str, str]:
        """Build what a refund sends."""
        return bodies.refund_body(
            intent_id=intent_id,
            amount_minor=amount_minor,
            currency=currency,
            payment_ref=payment_ref,
            reference=reference,
        )

    def send(self, order: Order) -> Reply:
        """Send the stored body under the stored key."""
        headers = {"Idempotency-Key": order.key}
        try:
            with self._client() as client:
                answer = client.post(
                    _ROUTES[order.operation], data=dict(order.body), headers=headers
                )
        except httpx.HTTPError as error:
            return noted(order, no_answer(type(error).__name__))
        return noted(order, reply_of(order, answer.status_code, _json(answer)))

    def find(self, order: Order) -> Reply | None:
        """Look through what the processor has for the object that carries our intent."""
        try:
            with self._client() as client:

                def page_of(query: dict[str, str]) -> tuple[int, Any]:
                    answer = client.get(_ROUTES[order.operation], params=query)
                    return answer.status_code, _json(answer)

                found = listed_reply(order, page_of)
        except httpx.HTTPError as error:
            found = no_answer(type(error).__name__)
        return noted(order, found) if found is not None else None

    def listed(
        self, kind: SeenKind, since: datetime, until: datetime, payment_ref: str = ""
    ) -> Iterator[Seen]:
        """Yield all of a kind that was made in a period."""
        with self._client() as client:

            def page_of(query: dict[str, str]) -> tuple[int, Any]:
                return _read(client, LISTS[kind], query)

            yield from listed_seen(kind, (since, until), payment_ref, page_of)

    def look_up(self, kind: SeenKind, processor_ref: str) -> Seen | None:
        """Read one object."""
        with self._client() as client:
            path = f"{list_of(kind, processor_ref)}/{quote(processor_ref, safe='')}"
            return one_seen(kind, *_read(client, path, {}))

    def _client(self) -> httpx.Client:
        # Proxies of the environment are none of the processor's business.
        return httpx.Client(
            base_url=settings.SANDBOX_URL,
            headers=_ACCESS,
            timeout=settings.PAYMENT_TIMEOUT_SECONDS,
            trust_env=False,
        )


def _read(client: httpx.Client, path: str, query: dict[str, str]) -> tuple[int, Any]:
    """Read what is there; 0 for no answer."""
    try:
        answer = client.get(f"/v1/{path}", params=query)
    except httpx.HTTPError:
        return 0, None
    return answer.status_code, _json(answer)


def _json(answer: httpx.Response) -> Any:
    try:
        return answer.json()
    except ValueError:
        return None
