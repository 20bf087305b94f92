"""Every registered gateway, against the real sandbox processor: one suite for all of them."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings as configured
from django.utils import timezone

from payments.gateways import bodies
from payments.gateways.base import Gateway, Order, gateway_named
from payments.sandbox.tokens import earlier_ref, method_token
from payments.states import Operation
from tests.payments.processor import (
    HOLD_SECONDS,
    TIMEOUT_SECONDS,
    Processor,
    processor,
    processor_process,
)

__all__ = ["processor", "processor_process"]

# What may go wrong on the way, by the sandbox's names; after each, nobody knows yet.
FAULTS = (
    "rate",
    "busy",
    "access",
    "server_before",
    "drop_before",
    "server_after",
    "garbage_after",
    "drop_after",
)


@pytest.fixture(params=sorted(configured.PAYMENT_GATEWAYS))
def gateway(request: Any, processor: Processor) -> Gateway:
    """Return each registered gateway in turn, pointed at the sandbox."""
    return gateway_named(request.param)


def charging(gateway: Gateway, fault: str = "", amount: int = 2500) -> Order:
    """Order a charge of 25.00 EUR on a method with this fault."""
    intent_id = uuid4()
    body = gateway.charge_body(
        intent_id=intent_id,
        amount_minor=amount,
        currency="EUR",
        method_ref=method_token(uuid4().hex[:8], fault),
        reference="INV-1",
    )
    return _order(Operation.CHARGE, intent_id, body)


def refunding(gateway: Gateway, payment: str, amount: int = 6000, currency: str = "EUR") -> Order:
    """Order a refund on a payment of earlier days."""
    intent_id = uuid4()
    body = gateway.refund_body(
        intent_id=intent_id,
        amount_minor=amount,
        currency=currency,
        payment_ref=payment,
        reference="REF-1",
    )
    return _order(Operation.REFUND, intent_id, body)


def _order(operation: Operation, intent_id: Any, body: dict[str, str]) -> Order:
    key = f"{operation}-{intent_id}"
    return Order(operation=operation, intent_id=intent_id, key=key, body=body, since=timezone.now())


def paid(fault: str = "", amount: int = 10_000) -> str:
    """Name a payment of 100.00 EUR."""
    return earlier_ref(uuid4().hex[:8], amount, "EUR", fault=fault)


def test_a_charge_is_sent_once_and_its_key_replays_it(
    gateway: Gateway, processor: Processor
) -> None:
    order = charging(gateway)
    first, second = gateway.send(order), gateway.send(order)
    assert first.state == "succeeded"
    assert first.processor_ref
    assert second == first
    assert processor.charged() == [2500]


def test_a_refund_is_sent_once_and_its_key_replays_it(
    gateway: Gateway, processor: Processor
) -> None:
    payment = paid()
    order = refunding(gateway, payment)
    first, second = gateway.send(order), gateway.send(order)
    assert first.state == "succeeded"
    assert second == first
    assert processor.refunded(payment) == [6000]


@pytest.mark.parametrize("minor", [9899, 500])
def test_yen_are_sent_as_they_are(gateway: Gateway, processor: Processor, minor: int) -> None:
    payment = earlier_ref(uuid4().hex[:8], 9899, "JPY")
    assert gateway.send(refunding(gateway, payment, minor, "JPY")).state == "succeeded"
    assert processor.refunded(payment) == [minor]


def test_a_key_used_with_other_parameters_fails_and_moves_nothing(
    gateway: Gateway, processor: Processor
) -> None:
    payment = paid()
    order = refunding(gateway, payment)
    gateway.send(order)
    other = gateway.send(replace(order, body={**order.body, "amount": "500"}))
    assert (other.state, other.failure) == ("failed", "key_conflict")
    assert processor.refunded(payment) == [6000]


def test_a_declined_charge_fails_for_good(gateway: Gateway, processor: Processor) -> None:
    reply = gateway.send(charging(gateway, "declined"))
    assert (reply.state, reply.failure) == ("failed", "declined")
    assert processor.charged() == []


@pytest.mark.parametrize(
    ("facts", "amount", "failure"),
    [
        ({}, 10_001, "above_left"),
        ({"refunded_minor": 10_000}, 1, "already_refunded"),
        ({"fault": "disputed"}, 100, "disputed"),
    ],
)
def test_a_refund_the_processor_refuses_fails_and_says_why(
    gateway: Gateway, processor: Processor, facts: dict[str, Any], amount: int, failure: str
) -> None:
    payment = earlier_ref(uuid4().hex[:8], 10_000, "EUR", **facts)
    reply = gateway.send(refunding(gateway, payment, amount))
    assert (reply.state, reply.failure) == ("failed", failure)
    assert processor.refunded(payment) == []


def test_a_payment_nobody_knows_is_refused(gateway: Gateway) -> None:
    reply = gateway.send(refunding(gateway, "pi_unheard_of"))
    assert (reply.state, reply.failure) == ("failed", "refused")


@pytest.mark.parametrize("fault", FAULTS)
def test_whatever_happens_on_the_line_is_unknown_and_the_next_try_settles_it_once(
    gateway: Gateway, processor: Processor, fault: str
) -> None:
    payment = paid()
    order = refunding(gateway, payment)
    processor.fault(fault)
    assert gateway.send(order).state == "unknown"
    assert gateway.send(order).state == "succeeded"
    assert processor.refunded(payment) == [6000]


@pytest.mark.parametrize(("fault", "committed"), [("slow_committed", 1), ("slow_lost", 0)])
def test_no_answer_in_time_is_unknown_and_the_next_try_settles_it_once(
    gateway: Gateway, processor: Processor, settings: Any, fault: str, committed: int
) -> None:
    order = charging(gateway, fault)
    settings.PAYMENT_TIMEOUT_SECONDS = HOLD_SECONDS / 2
    reply = gateway.send(order)
    settings.PAYMENT_TIMEOUT_SECONDS = TIMEOUT_SECONDS
    assert reply.state == "unknown"
    time.sleep(HOLD_SECONDS)
    assert processor.charged() == [2500] * committed
    assert gateway.send(order).state == "succeeded"
    assert processor.charged() == [2500]


def test_a_processor_that_is_not_there_is_unknown(gateway: Gateway, settings: Any) -> None:
    settings.SANDBOX_URL = settings.STRIPE_API_BASE = "http://127.0.0.1:9"
    order = charging(gateway)
    assert gateway.send(order).state == "unknown"
    found = gateway.find(order)
    assert found is not None
    assert found.state == "unknown"


def test_a_refund_is_found_by_our_mark_among_others(gateway: Gateway, processor: Processor) -> None:
    payment = paid(amount=30_000)
    orders = [refunding(gateway, payment, 100) for _ in range(3)]
    sent = [gateway.send(order) for order in orders]
    assert [gateway.find(order) for order in orders] == sent
    assert gateway.find(refunding(gateway, payment, 100)) is None
    assert gateway.find(refunding(gateway, paid(), 100)) is None


def test_a_charge_is_found_by_our_mark_among_others(gateway: Gateway, processor: Processor) -> None:
    orders = [charging(gateway) for _ in range(3)]
    sent = [gateway.send(order) for order in orders]
    assert [gateway.find(order) for order in orders] == sent
    assert gateway.find(charging(gateway)) is None


def test_a_declined_charge_is_found_as_failed(gateway: Gateway, processor: Processor) -> None:
    order = charging(gateway, "declined")
    gateway.send(order)
    found = gateway.find(order)
    assert found is not None
    assert (found.state, found.failure) == ("failed", "declined")


def test_a_look_up_goes_through_every_page(
    gateway: Gateway, processor: Processor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bodies, "PAGE", 2)
    payment = paid(amount=30_000)
    orders = [refunding(gateway, payment, 100) for _ in range(5)]
    sent = [gateway.send(order) for order in orders]
    assert gateway.find(orders[0]) == sent[0]


@pytest.mark.parametrize("fault", ["rate", "access", "server_before", "drop_before"])
def test_a_look_up_without_a_certain_answer_is_unknown_and_not_nothing(
    gateway: Gateway, processor: Processor, fault: str
) -> None:
    processor.fault(fault)
    found = gateway.find(refunding(gateway, paid()))
    assert found is not None
    assert found.state == "unknown"
