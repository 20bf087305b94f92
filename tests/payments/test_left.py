"""What is left of a payment: everything that takes from it counts, wherever it was asked for."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest
from django.utils import timezone

from payments import errors
from payments.balances import payment_balance, payment_left
from payments.facts import payment_left_for
from payments.models import Payment, PaymentMethod, Refund
from payments.services import intents_settle, observed
from reviews.models import Review
from tests.payments.cast import Desk
from tests.payments.processor import Processor
from tests.payments.test_observed import SOURCE, dispute, refund, told
from tests.payments.test_settling import later

pytestmark = pytest.mark.django_db


def test_all_that_takes_from_a_payment_stands_in_its_breakdown(
    desk: Desk, ledger: Processor
) -> None:
    observed(told(desk, "succeeded", amount_minor=1000, processor_ref="re_out"), source=SOURCE)
    ledger.fault("drop_before")
    assert refund(desk, 2000).state == "unknown"
    desk.approved(desk.payment, 3000, state="pending")
    observed(dispute(desk, "open", 500), source=SOURCE)
    desk.payment.refresh_from_db()

    held = payment_left_for(desk.payment, None)
    assert (held.paid_minor, held.refunded_minor, held.unknown_minor) == (10_000, 3000, 2000)
    assert (held.waiting_minor, held.disputed_minor, held.sent_minor) == (3000, 500, 0)
    assert held.left_minor == 10_000 - 3000 - 3000 - 500
    # At the moment of sending nothing is held back for what only waits.
    assert payment_left(desk.payment) == held.left_minor + 3000
    assert payment_left_for(desk.payment, Review(state="approved")) == payment_balance(desk.payment)


def test_what_is_left_is_never_below_nothing(desk: Desk) -> None:
    for name in ("re_1", "re_2"):
        seen = told(desk, "succeeded", amount_minor=7000, processor_ref=name)
        observed(seen, source=SOURCE)
    assert payment_left(desk.payment) == 0


def test_an_old_payment_is_refused_and_its_approval_kept(
    desk: Desk, ledger: Processor, settings: Any
) -> None:
    settings.REFUND_MAX_AGE_DAYS = 30
    Payment.objects.update(paid_at=timezone.now() - dt.timedelta(days=31))
    with pytest.raises(errors.PaymentTooOld):
        refund(desk)
    assert Review.objects.get().consumed_at is None
    assert ledger.asked("POST /v1/refunds") == 0
    PaymentMethod.objects.update(kind="gift_card")
    assert refund(desk).state == "succeeded"


def test_a_second_try_stays_blocked_in_another_conversation_until_it_is_known(
    desk: Desk, ledger: Processor
) -> None:
    """The keys are forgotten, too: it looks before it sends."""
    ledger.fault("drop_after")
    assert refund(desk, 3000).state == "unknown"
    with pytest.raises(errors.IntentBusy):
        refund(desk, 2000, context=desk.context())
    ledger.forget_keys()
    later(hours=25)
    assert intents_settle() == 1
    assert ledger.refunded(desk.payment.processor_ref) == [3000]
    assert refund(desk, 2000).state == "succeeded"
    assert Refund.objects.filter(state="succeeded").count() == 2
