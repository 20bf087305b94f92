"""Events as a test plays them: signed with the secret of the settings, posted to the address."""

from __future__ import annotations

import json
import time
from typing import Any, Final
from uuid import uuid4

import stripe
from django.test import Client

SECRET: Final = "whsec_of_a_test"
ADDRESS: Final = "/hooks/stripe/"


def event_of(kind: str, shape: dict[str, Any], **more: Any) -> dict[str, Any]:
    """Write an event about an object."""
    return {
        "id": f"evt_{uuid4().hex}",
        "object": "event",
        "type": kind,
        "created": int(time.time()),
        "livemode": False,
        "data": {"object": shape},
    } | more


def sent(event: Any, *, secret: str = SECRET, age: int = 0, header: str | None = None) -> int:
    """Post an event and return the status of the answer; whoever is refused is told nothing."""
    body = event if isinstance(event, str) else json.dumps(event)
    at = int(time.time()) - age
    signed = stripe.WebhookSignature.generate_signature_header(body, secret, at)
    # As the processor is: no session, no token against forgery.
    answer = Client(enforce_csrf_checks=True).post(
        ADDRESS,
        body,
        content_type="application/json",
        headers={"Stripe-Signature": signed if header is None else header},
    )
    assert answer.content == b"" or answer.status_code == 404
    return answer.status_code
