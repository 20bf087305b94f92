"""What the ledger makes of the class of an answer: what staff read, and what they never do."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from payments.gateways.classes import SENSITIVE
from payments.models import Breaker, Intent, PaymentMethod
from payments.roles import ADMINISTRATORS, AGENTS, LEADS, ROLES, TRAINEES
from payments.sandbox.tokens import decline_token
from payments.services import intents_settle
from payments.settled import intent_outcome
from tests.payments.cast import Desk
from tests.payments.processor import Processor
from tests.payments.test_settling import charge, later, refund

pytestmark = pytest.mark.django_db
RIGHT = "payments.view_decline_code"


@pytest.fixture(autouse=True, params=["sandbox", "stripe"])
def gateway(request: pytest.FixtureRequest, ledger: Processor, settings: Any) -> None:
    """Run each test on both gateways."""
    settings.PAYMENT_GATEWAY = request.param


def declined_with(desk: Desk, code: str) -> Any:
    """Charge a card that is declined with this code."""
    PaymentMethod.objects.filter(pk=desk.method.pk).update(processor_ref=decline_token("1", code))
    return charge(desk, desk.owed())


@pytest.mark.parametrize("code", sorted(SENSITIVE))
def test_nobody_reads_in_a_text_why_a_card_was_declined(desk: Desk, code: str) -> None:
    general, result = declined_with(desk, "generic_decline"), declined_with(desk, code)
    plain = general.sentence.replace(general.invoice_reference, result.invoice_reference)
    assert (result.code, result.reason, result.sentence) == (general.code, "fatal", plain)
    intent = Intent.objects.get(pk=result.intent_id)
    assert (intent.decline_code, intent.failure_code) == (code, "declined")
    text, artifact = intent_outcome(intent)
    for told in (text, str(artifact), str(intent.result), result.sentence):
        assert code not in told


@pytest.mark.parametrize(
    ("declined", "code", "reason", "words"),
    [
        ("expired_card", "card_expired", "fatal", "Ask the customer for a new card"),
        ("incorrect_cvc", "card_details", "fatal", "Check number, expiry date and security code"),
        ("insufficient_funds", "funds_short", "fatal", "another payment method"),
        ("card_velocity_exceeded", "card_limit", "fatal", ""),
        ("card_not_supported", "card_unsuited", "fatal", ""),
        ("invalid_amount", "amount_unfit", "fatal", ""),
        ("authentication_required", "customer_needed", "fatal", "Ask the customer to pay online"),
        ("duplicate_transaction", "duplicate", "fatal", "Look at the customer's payments"),
        ("try_again_later", "declined_for_now", "transient", "It may work later"),
    ],
)
def test_what_can_be_fixed_is_said(
    desk: Desk, declined: str, code: str, reason: str, words: str
) -> None:
    result = declined_with(desk, declined)
    assert (result.state, result.reason, result.code) == ("failed", reason, f"charge.{code}")
    assert words in result.sentence
    assert "Nothing was charged" in result.sentence
    assert intent_outcome(Intent.objects.get())[1]["reason"] == reason


def test_a_refused_access_ends_a_first_try_and_alerts_the_operators(
    desk: Desk, ledger: Processor, caplog: pytest.LogCaptureFixture
) -> None:
    ledger.fault("access")
    with caplog.at_level(logging.ERROR):
        result = charge(desk, desk.owed())
    assert (result.state, result.code) == ("failed", "charge.unavailable")
    assert "Payments are not available now" in result.sentence
    (alert,) = [record for record in caplog.records if record.msg == "gateway.configuration"]
    row = Breaker.objects.get()
    assert row.refused_at is not None
    assert row.refused_reference == vars(alert)["reference"]
    assert ledger.charged() == []
    assert charge(desk, desk.owed()).state == "succeeded"
    row.refresh_from_db()
    assert not row.refused_reference


def test_a_refused_access_ends_a_first_refund_in_words(desk: Desk, ledger: Processor) -> None:
    ledger.fault("access")
    result = refund(desk, review_id=desk.approved(desk.payment, 6000))
    assert (result.state, result.code) == ("failed", "refund.unavailable")
    assert ledger.refunded(desk.payment.processor_ref) == []


def test_a_refused_access_says_nothing_of_an_earlier_try(desk: Desk, ledger: Processor) -> None:
    ledger.fault("drop_after")
    refund(desk, review_id=desk.approved(desk.payment, 6000))
    ledger.fault("access")
    later()
    assert intents_settle() == 0
    assert Intent.objects.get().state == "open"
    later()
    assert intents_settle() == 1
    assert Intent.objects.get().state == "succeeded"
    assert ledger.refunded(desk.payment.processor_ref) == [6000]


def test_a_failure_that_the_key_keeps_is_settled_by_looking(desk: Desk, ledger: Processor) -> None:
    ledger.fault("server_kept_after")
    assert refund(desk, review_id=desk.approved(desk.payment, 6000)).state == "unknown"
    later()
    assert intents_settle() == 1
    assert Intent.objects.get().state == "succeeded"
    assert ledger.refunded(desk.payment.processor_ref) == [6000]


def test_leads_and_administrators_may_see_the_code_and_nobody_else() -> None:
    assert {role for role, rights in ROLES.items() if RIGHT in rights} == {LEADS, ADMINISTRATORS}
    assert {AGENTS, TRAINEES} < ROLES.keys()


def test_the_code_stands_in_the_administration_for_those_with_the_right(desk: Desk) -> None:
    result = declined_with(desk, "stolen_card")
    address = f"/admin/payments/intent/{result.intent_id}/change/"
    for codename, seen in ((None, False), ("view_decline_code", True)):
        viewer = User.objects.create_user(f"v-{codename}", is_staff=True)
        desk.team.members.add(viewer)
        names = ["view_intent", *([codename] if codename else [])]
        viewer.user_permissions.set(Permission.objects.filter(codename__in=names))
        client = Client()
        client.force_login(viewer)
        answer = client.get(address)
        assert answer.status_code == 200
        assert ("stolen_card" in answer.content.decode()) is seen
    other = User.objects.create_user("other-team", is_staff=True)
    other.user_permissions.set(Permission.objects.filter(codename__in=["view_intent"]))
    client = Client()
    client.force_login(other)
    assert client.get(address).status_code == 302
