"""The gateway to Stripe, on its official client.

One client a try, closed with it, with its own key, address and version: nothing is set in the
library for the whole process but its telemetry, which is off. The client tries once; the ledger's
service does the retries, under the stored key.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from typing import Any, Final
from uuid import UUID

import requests
import stripe
from django.conf import settings

from payments.gateways import bodies
from payments.gateways.base import Order, Reply, Seen, SeenKind
from payments.gateways.looking import LISTS, list_of, listed_seen, one_seen
from payments.gateways.notes import noted
from payments.gateways.wire import listed_reply, no_answer, reply_of
from payments.states import Operation

API_VERSION: Final = "2026-10-28.endive"
"""Pinned: a stored body is sent again after an update of the library, and must read the same."""

# The library has this switch for the process only.
stripe.enable_telemetry = False

# What the library raises over an answer that is JSON and no object of Stripe's.
_TRIPPED: Final = (AttributeError, KeyError, TypeError, ValueError)


class StripeGateway:
    """Speaks to Stripe, or to whatever STRIPE_API_BASE names."""

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
        with _client() as client:
            create: Callable[..., Any] = _service(client, order).create
            try:
                status, body = _answered(create, dict(order.body), {"idempotency_key": order.key})
            except stripe.APIConnectionError as error:
                return noted(order, no_answer(_cause(error)))
        return noted(order, reply_of(order, status, body))

    def find(self, order: Order) -> Reply | None:
        """Look through what Stripe has for the object that carries our intent."""
        with _client() as client:
            listing: Callable[..., Any] = _service(client, order).list
            try:
                found = listed_reply(order, lambda query: _answered(listing, query))
            except stripe.APIConnectionError as error:
                found = no_answer(_cause(error))
        return noted(order, found) if found is not None else None

    def listed(
        self, kind: SeenKind, since: datetime, until: datetime, payment_ref: str = ""
    ) -> Iterator[Seen]:
        """Yield all of a kind that was made in a period."""
        with _client() as client:
            listing: Callable[..., Any] = getattr(client.v1, LISTS[kind]).list

            def page_of(query: dict[str, str]) -> tuple[int, Any]:
                return _read(listing, query)

            yield from listed_seen(kind, (since, until), payment_ref, page_of)

    def look_up(self, kind: SeenKind, processor_ref: str) -> Seen | None:
        """Read one object."""
        with _client() as client:
            one: Callable[..., Any] = getattr(client.v1, list_of(kind, processor_ref)).retrieve
            return one_seen(kind, *_read(one, processor_ref))


@contextmanager
def _client() -> Iterator[stripe.StripeClient]:
    """Open a client for one try."""
    with requests.Session() as session:
        # Proxies and passwords of the environment are none of the processor's business.
        session.trust_env = False
        line = stripe.RequestsClient(timeout=settings.PAYMENT_TIMEOUT_SECONDS, session=session)
        yield stripe.StripeClient(
            settings.STRIPE_API_KEY,
            base_addresses={"api": settings.STRIPE_API_BASE.rstrip("/")},
            stripe_version=API_VERSION,
            max_network_retries=0,
            http_client=line,
        )


def _service(client: stripe.StripeClient, order: Order) -> Any:
    refunds = order.operation == Operation.REFUND
    return client.v1.refunds if refunds else client.v1.payment_intents


def _answered(call: Callable[..., Any], *arguments: Any) -> tuple[int, Any]:
    """Return status and body of an answer, whatever it says.

    Raises:
        stripe.APIConnectionError: there was no answer.
    """
    try:
        response = call(*arguments).last_response
    except stripe.APIConnectionError:
        raise
    except stripe.StripeError as error:
        return error.http_status or 0, error.json_body
    except _TRIPPED:
        return 0, None
    return response.code, response.data


def _read(call: Callable[..., Any], *arguments: Any) -> tuple[int, Any]:
    """Read what is there; 0 for no answer."""
    try:
        return _answered(call, *arguments)
    except stripe.APIConnectionError:
        return 0, None


def _cause(error: stripe.APIConnectionError) -> str:
    return type(error.__cause__ or error).__name__
