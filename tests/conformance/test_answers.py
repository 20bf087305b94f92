"""Every answer of Stripe has its class, over real HTTP, for each gateway that speaks its format.

The list is written out a second time here, as the documentation has it, so that no row of the table
can go or change unseen. Classes: T transient, W waiting, U fixable by a person, F fatal for this
attempt, C for an operator, ? unknown.
"""

from __future__ import annotations

import logging
from typing import Any, Final

import pytest

from payments import sentences
from payments.gateways.base import Gateway
from payments.gateways.classes import FAILURES, SENSITIVE, TABLE, AnswerClass, Reason, reason_of
from payments.money import Money
from payments.sandbox.tokens import decline_token
from payments.states import Operation
from tests.conformance.test_gateways import _order, charging, gateway, paid, refunding
from tests.payments.processor import Processor, processor, processor_process

__all__ = ["gateway", "processor", "processor_process"]

T, W, U, F, C, Q = (
    AnswerClass.TRANSIENT,
    AnswerClass.WAITING,
    AnswerClass.FIXABLE,
    AnswerClass.FATAL,
    AnswerClass.CONFIGURATION,
    AnswerClass.UNKNOWN,
)
INVALID: Final = "invalid_request_error"

# Status, type, code: what comes back to a charge, and its class.
ERRORS: Final = [
    *((status, "api_error", "", Q) for status in (500, 502, 503, 504)),
    (409, INVALID, "lock_timeout", T),
    (409, INVALID, "idempotency_key_in_use", T),
    (409, "", "", T),
    (429, INVALID, "rate_limit", T),
    (429, "rate_limit_error", "", T),
    (429, "", "", T),
    (400, "idempotency_error", "", F),
    (401, INVALID, "", C),
    (401, "authentication_error", "", C),
    (401, INVALID, "api_key_expired", C),
    (403, INVALID, "", C),
    (400, INVALID, "livemode_mismatch", C),
    (400, INVALID, "testmode_charges_only", C),
    (400, INVALID, "secret_key_required", C),
    (400, INVALID, "parameter_missing", F),
    (400, INVALID, "parameter_unknown", F),
    (400, INVALID, "parameter_invalid_integer", F),
    (400, INVALID, "parameters_exclusive", F),
    (400, INVALID, "amount_too_large", F),
    (400, INVALID, "amount_too_small", F),
    (404, INVALID, "resource_missing", F),
    (400, INVALID, "approval_required", W),
    (400, INVALID, "action_blocked", C),
    (400, INVALID, "request_blocked", C),
    (400, INVALID, "anomalous_money_movement_request", C),
]
REFUND_ERRORS: Final = [
    ("charge_already_refunded", F, "already_refunded"),
    ("charge_disputed", F, "disputed"),
    ("refund_disputed_payment", F, "disputed"),
    ("charge_not_refundable", F, "refused"),
    ("charge_expired_for_capture", F, "refused"),
    ("balance_insufficient", W, ""),
    ("insufficient_funds", W, ""),
    ("status_transition_invalid", F, "refused"),
    # These amounts come from staff.
    ("amount_too_large", U, "above_left"),
    ("amount_too_small", U, "amount_unfit"),
]
PENDING: Final = ("processing", "insufficient_funds", "charge_pending")
REFUND_FAILED: Final = {
    "lost_or_stolen_card": "undelivered",
    "expired_or_canceled_card": "undelivered",
    "charge_for_pending_refund_disputed": "disputed",
    "insufficient_funds": "undelivered",
    "declined": "undelivered",
    "merchant_request": "undelivered",
    "unknown": "undelivered",
}
ADVICE: Final = {"try_again_later": T, "confirm_card_data": U, "do_not_try_again": F}
DECLINES: Final = {
    T: "approve_with_id issuer_not_available processing_error reenter_transaction try_again_later",
    U: "incorrect_number incorrect_cvc invalid_cvc incorrect_pin invalid_pin incorrect_zip "
    "invalid_expiry_month invalid_expiry_year invalid_number expired_card insufficient_funds "
    "card_velocity_exceeded withdrawal_count_limit_exceeded currency_not_supported "
    "card_not_supported authentication_required offline_pin_required "
    "online_or_offline_pin_required pin_try_exceeded invalid_amount duplicate_transaction",
    F: "do_not_honor generic_decline call_issuer do_not_try_again no_action_taken not_permitted "
    "transaction_not_allowed service_not_allowed security_violation restricted_card pickup_card "
    "invalid_account new_account_information_available revocation_of_authorization "
    "revocation_of_all_authorizations stop_payment_order testmode_decline "
    "fraudulent lost_card stolen_card merchant_blacklist",
}
DECLINED: Final = [(code, kind) for kind, codes in DECLINES.items() for code in codes.split()]
REASONS: Final[dict[AnswerClass, set[Reason]]] = {
    T: {"transient"},
    U: {"fatal"},
    F: {"fatal", "policy_block"},
    C: {"fatal"},
}


def error(kind: str, code: str = "", **more: Any) -> dict[str, Any]:
    """Write an error as Stripe does."""
    named = {"type": kind} if kind else {}
    return {"error": {**named, "message": "No.", **({"code": code} if code else {}), **more}}


@pytest.mark.parametrize("row", ERRORS)
def test_an_error_has_its_class(
    gateway: Gateway, processor: Processor, row: tuple[int, str, str, AnswerClass]
) -> None:
    status, kind, code, expected = row
    processor.answer(status, error(kind, code))
    reply = gateway.send(charging(gateway))
    assert reply.kind == expected
    assert reply.state == ("failed" if expected == F else "unknown")
    assert reply.strain is (status >= 500 or status == 429)
    assert processor.charged() == []


@pytest.mark.parametrize(("code", "expected", "failure"), REFUND_ERRORS)
def test_an_error_of_a_refund_has_its_class(
    gateway: Gateway, processor: Processor, code: str, expected: AnswerClass, failure: str
) -> None:
    processor.answer(400, error(INVALID, code))
    reply = gateway.send(refunding(gateway, paid()))
    assert (reply.kind, reply.failure) == (expected, failure)
    assert reply.state == ("unknown" if expected == W else "failed")


def test_more_than_is_left_is_known_without_a_code_too(
    gateway: Gateway, processor: Processor
) -> None:
    """Stripe names the parameter and no code here."""
    processor.answer(400, error(INVALID, param="amount"))
    reply = gateway.send(refunding(gateway, paid()))
    assert (reply.state, reply.kind, reply.failure) == ("failed", U, "above_left")


@pytest.mark.parametrize("reason", PENDING)
def test_a_pending_refund_waits(gateway: Gateway, processor: Processor, reason: str) -> None:
    shown = {"id": "re_1", "amount": 6000, "currency": "eur", "status": "pending"}
    processor.answer(200, {**shown, "pending_reason": reason})
    reply = gateway.send(refunding(gateway, paid()))
    assert (reply.state, reply.kind, reply.processor_ref) == ("accepted", W, "re_1")


@pytest.mark.parametrize(("reason", "failure"), REFUND_FAILED.items())
def test_a_refund_that_fails_later_says_why(
    gateway: Gateway, processor: Processor, reason: str, failure: str
) -> None:
    order = refunding(gateway, paid("refund_pending"))
    sent = gateway.send(order)
    assert (sent.state, sent.kind) == ("accepted", W)
    processor.refund_ends(sent.processor_ref, "failed", reason)
    found = gateway.find(order)
    assert found is not None
    assert (found.state, found.kind, found.failure) == ("failed", F, failure)
    assert found.decline_code == reason


@pytest.mark.parametrize(("code", "expected"), DECLINED)
def test_a_decline_has_its_class_when_it_is_sent_and_when_it_is_found(
    gateway: Gateway, processor: Processor, code: str, expected: AnswerClass
) -> None:
    order = declining(gateway, code)
    reply, found = gateway.send(order), gateway.find(order)
    assert found is not None
    for each in (reply, found):
        assert (each.state, each.kind, each.decline_code) == ("failed", expected, code)
        assert each.failure == TABLE["decline_code"][code].failure
    assert processor.charged() == []


@pytest.mark.parametrize(("advice", "expected"), ADVICE.items())
def test_the_advice_comes_before_the_code(
    gateway: Gateway, processor: Processor, advice: str, expected: AnswerClass
) -> None:
    opposite = "call_issuer" if expected != F else "processing_error"
    for code in (opposite, "a_code_of_next_year"):
        reply = gateway.send(declining(gateway, code, advice))
        assert (reply.state, reply.kind) == ("failed", expected)


def test_a_code_that_agrees_with_its_advice_keeps_its_own_word(gateway: Gateway) -> None:
    reply = gateway.send(declining(gateway, "expired_card", "confirm_card_data"))
    assert (reply.kind, reply.failure) == (U, "card_expired")


@pytest.mark.usefixtures("processor")
@pytest.mark.parametrize("advice", ["none", *ADVICE])
@pytest.mark.parametrize("code", sorted(SENSITIVE))
def test_a_sensitive_decline_reads_like_any_other_whatever_comes_with_it(
    gateway: Gateway, code: str, advice: str
) -> None:
    general = gateway.send(declining(gateway, "generic_decline"))
    reply = gateway.send(declining(gateway, code, advice))
    assert (reply.failure, reply.kind) == (general.failure, general.kind) == ("declined", F)


@pytest.mark.parametrize(
    "row",
    [
        (400, INVALID, "a_code_of_next_year", "refused"),
        (402, "card_error", "card_declined", "declined"),
    ],
)
def test_a_code_nobody_knows_is_fatal_and_logged(
    gateway: Gateway,
    processor: Processor,
    caplog: pytest.LogCaptureFixture,
    row: tuple[int, str, str, str],
) -> None:
    status, kind, code, failure = row
    processor.answer(status, error(kind, code, decline_code="a_decline_of_next_year"))
    with caplog.at_level(logging.ERROR):
        reply = gateway.send(charging(gateway))
    assert (reply.state, reply.kind, reply.failure) == ("failed", F, failure)
    assert [record.msg for record in caplog.records] == ["gateway.code_unknown"]


def test_a_key_conflict_is_told_to_the_operators(
    gateway: Gateway, processor: Processor, caplog: pytest.LogCaptureFixture
) -> None:
    processor.answer(400, error("idempotency_error"))
    with caplog.at_level(logging.ERROR):
        gateway.send(charging(gateway))
    assert [record.msg for record in caplog.records] == ["gateway.key_conflict"]


@pytest.mark.parametrize(
    ("status", "body"),
    [
        (200, []),
        (200, None),
        (200, "x"),
        (200, {}),
        (400, {"error": "x"}),
        (404, {"message": "no Route matched"}),
        (402, []),
        (418, {"error": {"type": "teapot"}}),
    ],
)
def test_what_is_no_answer_of_stripes_is_unknown(
    gateway: Gateway, processor: Processor, status: int, body: Any
) -> None:
    processor.answer(status, body, times=2)
    order = charging(gateway)
    assert (gateway.send(order).state, gateway.send(order).kind) == ("unknown", Q)


def test_the_table_has_these_rows_and_no_others() -> None:
    declines = dict(DECLINED)
    assert {code: row.kind for code, row in TABLE["decline_code"].items()} == declines
    assert {code: row.kind for code, row in TABLE["advice_code"].items()} == ADVICE
    assert {code: row.kind for code, row in TABLE["pending_reason"].items()} == dict.fromkeys(
        PENDING, W
    )
    assert {code: row.failure for code, row in TABLE["failure_reason"].items()} == REFUND_FAILED
    refunds = {code: (kind, failure) for code, kind, failure in REFUND_ERRORS}
    assert {code: tuple(row) for code, row in TABLE["refund_code"].items()} == refunds
    codes = {code: kind for _status, _type, code, kind in ERRORS if code}
    ranged = {"parameter_*" if code.startswith("parameter") else code for code in codes}
    assert TABLE["code"].keys() == ranged
    assert all(codes[code] == row.kind for code, row in TABLE["code"].items() if code in codes)
    statuses = {str(status) for status, *_rest in ERRORS} - {"400", "404"}
    assert TABLE["status"].keys() == statuses
    types = {kind for _status, kind, _code, _class in ERRORS if kind} - {INVALID}
    assert TABLE["type"].keys() == types
    assert {row.kind for row in TABLE["line"].values()} == {Q}


def test_every_failure_leads_on_to_a_reason_and_to_a_sentence() -> None:
    rows = [row for family in TABLE.values() for row in family.values() if row.failure]
    assert {row.failure for row in rows} == FAILURES.keys()
    for row in rows:
        kind, reason = FAILURES[row.failure]
        assert row.kind == kind
        assert reason in REASONS[kind]
        assert reason_of(row.failure) == reason
    assert reason_of("a word of next year") == "fatal"
    amount = Money(2500, "EUR")
    for failure in FAILURES.keys() - {"key_conflict"}:
        codes = {sentences.code_of(operation, failure) for operation in Operation.values}
        assert any(code.endswith(f".{failure}") for code in codes)
        assert all("INV-1" in sentences.sentence(code, amount, "INV-1") for code in codes)


def declining(gateway: Gateway, code: str, advice: str = "none") -> Any:
    """Order a charge on a card that is declined with this code and advice."""
    plain = charging(gateway)
    body = {**plain.body, "payment_method": decline_token("1", code, advice)}
    return _order(Operation.CHARGE, plain.intent_id, body)
