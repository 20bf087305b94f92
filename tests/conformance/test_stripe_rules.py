"""Rules of Stripe that each gateway for its format keeps: states, disputes, currencies, keys."""

from __future__ import annotations

import threading
import time
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
import stripe

from payments.errors import AmountRefused
from payments.gateways.base import Gateway, gateway_named
from payments.gateways.stripe import API_VERSION
from payments.sandbox.tokens import earlier_ref, method_token
from payments.states import Operation
from tests.conformance.test_gateways import _order, charging, gateway, paid, refunding
from tests.payments.processor import Processor, processor, processor_process

__all__ = ["gateway", "processor", "processor_process"]


def test_two_wanted_refunds_have_two_keys_and_equal_parameters_but_our_marks(
    gateway: Gateway, processor: Processor
) -> None:
    payment = paid(amount=30_000)
    first, second = refunding(gateway, payment, 100), refunding(gateway, payment, 100)
    assert first.key != second.key
    plain = [
        {k: v for k, v in order.body.items() if "intent]" not in k} for order in (first, second)
    ]
    assert plain[0] == plain[1]
    assert [gateway.send(order).state for order in (first, second)] == ["succeeded"] * 2
    assert processor.refunded(payment) == [100, 100]


def test_a_charge_never_shares_its_key_with_a_refund(
    gateway: Gateway, processor: Processor
) -> None:
    order = refunding(gateway, paid())
    gateway.send(order)
    other = gateway.send(replace(charging(gateway), key=order.key))
    assert (other.state, other.failure) == ("failed", "key_conflict")
    assert processor.charged() == []


def test_a_charge_that_the_customer_must_confirm_is_over(
    gateway: Gateway, processor: Processor
) -> None:
    """Nobody is there to confirm it: the processor is told so, and nothing stays open there."""
    reply = gateway.send(charging(gateway, "needs_action"))
    assert (reply.state, reply.failure) == ("failed", "customer_needed")
    assert [row["status"] for row in processor.books()["payment_intents"]] == [
        "requires_payment_method"
    ]


def test_a_payment_that_waits_for_its_customer_is_not_over(
    gateway: Gateway, processor: Processor
) -> None:
    order = charging(gateway, "needs_action")
    order = replace(order, body={**order.body, "off_session": "false"})
    reply, found = gateway.send(order), gateway.find(order)
    assert found == reply
    assert (reply.state, reply.kind) == ("unknown", "waiting")


@pytest.mark.parametrize("fault", ["refund_pending", "refund_unfunded"])
def test_a_pending_refund_is_looked_up_until_it_has_ended(
    gateway: Gateway, processor: Processor, fault: str
) -> None:
    order = refunding(gateway, paid(fault))
    sent = gateway.send(order)
    assert (sent.state, sent.kind) == ("accepted", "waiting")
    assert gateway.find(order) == sent
    processor.refund_ends(sent.processor_ref, "succeeded")
    found = gateway.find(order)
    assert found is not None
    assert (found.state, found.processor_ref) == ("succeeded", sent.processor_ref)


def test_a_refund_that_fails_after_it_succeeded_is_back_on_the_payment(
    gateway: Gateway, processor: Processor
) -> None:
    payment = paid()
    order = refunding(gateway, payment, 10_000)
    sent = gateway.send(order)
    assert gateway.send(refunding(gateway, payment, 1)).failure == "already_refunded"
    processor.refund_ends(sent.processor_ref, "failed", "lost_or_stolen_card")
    found = gateway.find(order)
    assert found is not None
    assert (found.state, found.failure) == ("failed", "undelivered")
    assert gateway.send(refunding(gateway, payment, 10_000)).state == "succeeded"


@pytest.mark.parametrize(
    ("opened", "closed", "refused"),
    [
        ("needs_response", "won", ("disputed", "")),
        ("needs_response", "lost", ("disputed", "disputed")),
        ("warning_needs_response", "warning_closed", ("", "")),
    ],
)
def test_a_dispute_holds_refunds_and_an_inquiry_does_not(
    gateway: Gateway, processor: Processor, opened: str, closed: str, refused: tuple[str, str]
) -> None:
    before, after = refused
    payment = paid()
    dispute = processor.dispute(payment, opened)
    assert gateway.send(refunding(gateway, payment, 100)).failure == before
    processor.dispute_ends(dispute, closed)
    assert gateway.send(refunding(gateway, payment, 100)).failure == after


@pytest.mark.parametrize(
    ("currency", "minor", "sent"),
    [
        ("EUR", 2500, 2500),
        ("JPY", 2500, 2500),
        ("KWD", 2500, 2500),
        # Without decimals in ISO 4217, and told in hundredths all the same.
        ("ISK", 2500, 250_000),
        ("UGX", 2500, 250_000),
        # With decimals in ISO 4217, and told in whole units.
        ("MGA", 2500, 25),
    ],
)
def test_each_currency_goes_out_in_stripes_units(
    gateway: Gateway, processor: Processor, currency: str, minor: int, sent: int
) -> None:
    values: dict[str, Any] = {"amount_minor": minor, "currency": currency, "reference": "INV-1"}
    token = method_token(uuid4().hex[:8])
    charge = gateway.charge_body(intent_id=uuid4(), method_ref=token, **values)
    assert charge["amount"] == str(sent)
    assert gateway.send(_order(Operation.CHARGE, uuid4(), charge)).state == "succeeded"
    payment = earlier_ref(uuid4().hex[:8], 10 * sent, currency)
    assert gateway.send(refunding(gateway, payment, minor, currency)).state == "succeeded"
    assert processor.refunded(payment) == [sent]


@pytest.mark.parametrize(("currency", "minor"), [("KWD", 2501), ("BHD", 5), ("MGA", 2550)])
def test_an_amount_that_stripe_cannot_take_is_refused_before_anything_is_written(
    gateway: Gateway, currency: str, minor: int
) -> None:
    with pytest.raises(AmountRefused, match=currency):
        refunding(gateway, paid(), minor, currency)


def test_a_saved_method_of_a_customer_goes_out_with_its_customer(gateway: Gateway) -> None:
    values: dict[str, Any] = {"amount_minor": 1, "currency": "EUR", "reference": "INV-1"}
    body = gateway.charge_body(intent_id=uuid4(), method_ref="cus_1/pm_2", **values)
    assert (body["customer"], body["payment_method"]) == ("cus_1", "pm_2")


def test_an_older_payment_is_refunded_by_its_charge(gateway: Gateway, processor: Processor) -> None:
    payment = paid()
    order = refunding(gateway, payment.replace("pi_", "ch_"))
    assert gateway.send(order) == gateway.find(order)
    assert processor.refunded(payment) == [6000]


@pytest.mark.parametrize(
    ("fault", "made"), [("server_kept_after", [6000]), ("server_kept_before", [])]
)
def test_a_failure_that_the_processor_keeps_says_nothing_of_what_it_did(
    gateway: Gateway, processor: Processor, fault: str, made: list[int]
) -> None:
    payment = paid()
    order = refunding(gateway, payment)
    processor.fault(fault)
    first, second = gateway.send(order), gateway.send(order)
    assert first.state == second.state == "unknown"
    assert first.broke
    assert second.broke
    found = gateway.find(order)
    assert (found.state if found else None) == ("succeeded" if made else None)
    assert processor.refunded(payment) == made


def test_a_key_in_use_is_asked_again(gateway: Gateway, processor: Processor) -> None:
    order = refunding(gateway, paid())
    processor.fault("working")
    replies: list[Any] = []
    first = threading.Thread(target=lambda: replies.append(gateway.send(order)))
    first.start()
    until = time.monotonic() + 10
    while not processor.asked("POST /v1/refunds"):
        assert time.monotonic() < until
    busy = gateway.send(order)
    first.join()
    assert (busy.state, busy.kind, busy.strain) == ("unknown", "transient", False)
    assert gateway.send(order) == replies[0]
    assert replies[0].state == "succeeded"


@pytest.mark.parametrize("key", ["sk_test_expired_1", "rk_test_1", "sk_live_1", "nonsense"])
def test_a_key_that_is_refused_is_for_an_operator(
    processor: Processor, settings: Any, key: str
) -> None:
    settings.STRIPE_API_KEY = key
    gateway = gateway_named("stripe")
    order = charging(gateway)
    for reply in (gateway.send(order), gateway.find(order)):
        assert reply is not None
        assert (reply.state, reply.kind, reply.failure) == (
            "unknown",
            "configuration",
            "unavailable",
        )
    assert processor.asked("POST /v1/payment_intents") == 0


def test_the_client_of_stripe_tries_once_and_says_which_version_it_speaks(
    processor: Processor, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its own retries would go out beside ours."""
    sent: list[dict[str, str]] = []
    post = stripe.RequestsClient.request

    def request(client: Any, method: str, url: str, headers: Any, *rest: Any) -> Any:
        sent.append(dict(headers))
        return post(client, method, url, headers, *rest)

    monkeypatch.setattr(stripe.RequestsClient, "request", request)
    gateway = gateway_named("stripe")
    order = charging(gateway)
    processor.fault("server_before")
    assert gateway.send(order).state == "unknown"
    assert processor.asked("POST /v1/payment_intents") == 1
    assert [headers["Idempotency-Key"] for headers in sent] == [order.key]
    assert sent[0]["Stripe-Version"] == API_VERSION
    assert "X-Stripe-Client-Telemetry" not in sent[0]
    assert "platform" not in sent[0]["X-Stripe-Client-User-Agent"]
