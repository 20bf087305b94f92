"""Only what the processor has signed for us, lately, comes in; and each event once."""

from __future__ import annotations

import json
import time
from datetime import timedelta
from typing import Any

import pytest
import stripe
from django.db import OperationalError
from django.test import Client
from django.utils import timezone

from payments.balances import payment_left
from payments.models import Payment, Refund
from payments.processor import services_events
from payments.processor.comparing import ON_THE_WAY
from payments.processor.models import ProcessorEvent
from payments.processor.services_events import events_sweep
from payments.processor.views import MOST_BYTES
from tests.payments.cast import Desk
from tests.processor.telling import ADDRESS, SECRET, event_of, sent

pytestmark = pytest.mark.django_db

OTHER = "whsec_of_before"


@pytest.fixture(autouse=True)
def secret(settings: Any) -> None:
    """Share a secret with the processor."""
    settings.PAYMENT_GATEWAY, settings.STRIPE_API_KEY = "sandbox", ""
    settings.STRIPE_WEBHOOK_SECRET = [SECRET]


def outside(payment: Payment, name: str = "re_outside", **more: Any) -> dict[str, Any]:
    """Write a refund of 40.00 EUR that nobody here asked for."""
    return {
        "id": name,
        "object": "refund",
        "amount": 4000,
        "currency": "eur",
        "payment_intent": payment.processor_ref,
        "status": "succeeded",
        "created": 1_790_000_000,
        "metadata": {},
        "billing_details": {"name": "Somebody"},
    } | more


def test_a_signed_event_is_kept_handled_and_answered(desk: Desk) -> None:
    event = event_of("refund.created", outside(desk.payment))
    assert sent(event) == 200
    row = ProcessorEvent.objects.get()
    assert (row.id, row.kind, row.object_ref) == (event["id"], "refund.created", "re_outside")
    assert (row.outcome, row.tries) == ("recorded", 1)
    assert row.handled_at is not None
    refund = Refund.objects.get()
    assert (refund.amount_minor, refund.state, refund.payment) == (4000, "succeeded", desk.payment)


def test_what_is_kept_of_an_event_names_nobody(desk: Desk) -> None:
    sent(event_of("refund.created", outside(desk.payment)))
    assert "Somebody" not in json.dumps(ProcessorEvent.objects.get().body)


@pytest.mark.parametrize(
    "how",
    [
        {"secret": OTHER},
        {"age": 301},
        {"header": ""},
        {"header": "v1=00"},
        {"header": "t=now,v1=00"},
        {"header": "t=1,v0=00"},
        {"header": "t,v1,=,,"},
        {"header": f"t={int(time.time())},v1=fälschung"},
        {"header": f"t={'9' * 5000},v1=00"},
    ],
    ids=[
        "wrong",
        "old",
        "missing",
        "no-time",
        "no-number",
        "other-scheme",
        "no-pairs",
        "no-ascii",
        "no-end",
    ],
)
def test_a_signature_that_does_not_hold_is_refused(desk: Desk, how: dict[str, Any]) -> None:
    assert sent(event_of("refund.created", outside(desk.payment)), **how) == 400
    assert not ProcessorEvent.objects.exists()
    assert not Refund.objects.exists()


def test_a_body_that_was_changed_after_signing_is_refused(desk: Desk) -> None:
    body = json.dumps(event_of("refund.created", outside(desk.payment)))
    header = stripe.WebhookSignature.generate_signature_header(body, SECRET)
    assert sent(body.replace("4000", "9000"), header=header) == 400
    assert not ProcessorEvent.objects.exists()


def test_a_signature_that_is_nearly_too_old_still_holds(desk: Desk) -> None:
    assert sent(event_of("refund.created", outside(desk.payment)), age=280) == 200


def test_while_secrets_are_exchanged_both_are_taken(desk: Desk, settings: Any) -> None:
    settings.STRIPE_WEBHOOK_SECRET = ["whsec_of_now", SECRET]
    assert sent(event_of("refund.created", outside(desk.payment))) == 200
    settings.STRIPE_WEBHOOK_SECRET = ["whsec_of_now"]
    assert sent(event_of("refund.created", outside(desk.payment, "re_next"))) == 400
    assert Refund.objects.count() == 1


@pytest.mark.parametrize(
    "more", [{"account": "acct_other"}, {"livemode": True}], ids=["account", "mode"]
)
def test_an_event_that_is_not_meant_for_us_is_refused_and_logged(
    desk: Desk, more: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    assert sent(event_of("refund.created", outside(desk.payment), **more)) == 400
    assert not ProcessorEvent.objects.exists()
    assert [record.message for record in caplog.records].count("hook.refused") == 1


def test_live_keys_take_live_events_only(desk: Desk, settings: Any) -> None:
    settings.PAYMENT_GATEWAY, settings.STRIPE_API_KEY = "stripe", "sk_live_x"
    assert sent(event_of("refund.created", outside(desk.payment))) == 400
    assert sent(event_of("refund.created", outside(desk.payment), livemode=True)) == 200


@pytest.mark.parametrize("body", ["[]", "{}", "nothing", '{"id": "evt_1", "type": "x"}'])
def test_signed_nonsense_is_refused(body: str) -> None:
    assert sent(body) == 400
    assert not ProcessorEvent.objects.exists()


def test_there_is_no_such_address_without_a_secret_or_such_a_processor(settings: Any) -> None:
    event = event_of("ping", {"id": "x"})
    settings.STRIPE_WEBHOOK_SECRET = []
    assert sent(event) == 404
    settings.STRIPE_WEBHOOK_SECRET, settings.PAYMENT_GATEWAY = [SECRET], "another"
    assert sent(event) == 404


def test_nobody_looks_at_it_with_a_browser() -> None:
    assert Client().get(ADDRESS).status_code == 405


def test_a_body_that_is_too_large_is_not_read_to_its_end() -> None:
    assert sent(event_of("ping", {"id": "x" * MOST_BYTES})) == 413


def test_a_kind_that_says_nothing_of_our_books_is_kept_and_does_nothing(desk: Desk) -> None:
    assert sent(event_of("customer.created", {"id": "cus_1", "name": "Somebody"})) == 200
    row = ProcessorEvent.objects.get()
    assert (row.outcome, row.body, row.tries) == ("", {}, 0)
    assert row.handled_at is not None


def test_a_repeat_is_no_second_refund(desk: Desk) -> None:
    event = event_of("refund.created", outside(desk.payment))
    assert [sent(event) for _time in range(3)] == [200, 200, 200]
    sent(event_of("refund.updated", outside(desk.payment)))
    assert (ProcessorEvent.objects.count(), Refund.objects.count()) == (2, 1)


def test_an_old_event_after_a_newer_one_changes_nothing(desk: Desk) -> None:
    sent(event_of("refund.updated", outside(desk.payment)))
    sent(event_of("refund.failed", outside(desk.payment, status="failed")))
    for status in ("pending", "succeeded"):
        sent(event_of("refund.created", outside(desk.payment, status=status)))
    assert Refund.objects.get().state == "failed"


def test_a_refund_made_outside_that_failed_stays_failed_whatever_comes_late(desk: Desk) -> None:
    sent(event_of("refund.failed", outside(desk.payment, status="failed")))
    sent(event_of("refund.created", outside(desk.payment, status="pending")))
    assert Refund.objects.get().state == "failed"
    assert payment_left(desk.payment) == desk.payment.amount_minor


def test_a_refund_of_a_payment_that_we_do_not_know_is_kept_and_moves_nothing(desk: Desk) -> None:
    strange = outside(desk.payment, payment_intent="pi_of_somebody_else")
    assert sent(event_of("refund.created", strange)) == 200
    row = ProcessorEvent.objects.get()
    assert (row.outcome, row.handled_at) == ("", None)
    late = timezone.now() - ON_THE_WAY
    ProcessorEvent.objects.update(received_at=late, next_try_at=late)
    assert events_sweep() == 1
    assert ProcessorEvent.objects.get().outcome == "nowhere"
    assert not Refund.objects.exists()


@pytest.mark.parametrize(
    ("kind", "more"),
    [
        ("refund.created", {}),
        ("charge.dispute.created", {"object": "dispute", "status": "needs_response"}),
    ],
    ids=["refund", "dispute"],
)
def test_an_event_that_comes_before_its_payment_is_handled_once_that_is_here(
    desk: Desk, kind: str, more: dict[str, Any]
) -> None:
    name = desk.payment.processor_ref
    event = event_of(kind, outside(desk.payment, **more))
    Payment.objects.update(processor_ref="pi_not_yet")
    assert sent(event) == 200
    Payment.objects.update(processor_ref=name)
    ProcessorEvent.objects.update(next_try_at=timezone.now())
    assert events_sweep() == 1
    assert ProcessorEvent.objects.get().outcome == "recorded"
    assert Refund.objects.exists() or Payment.objects.get().disputed


def test_a_dispute_marks_its_payment_until_it_is_won(desk: Desk) -> None:
    dispute = outside(desk.payment, "dp_1", object="dispute", status="needs_response")
    sent(event_of("charge.dispute.created", dispute))
    assert Payment.objects.get().disputed is True
    sent(event_of("charge.dispute.closed", dispute | {"status": "won"}))
    # It was on its way for longer than the end of the dispute was.
    sent(event_of("charge.dispute.funds_withdrawn", dispute))
    assert Payment.objects.get().disputed is False


def test_an_older_form_lists_the_refunds_of_a_charge(desk: Desk) -> None:
    charge = {
        "id": "ch_1",
        "object": "charge",
        "refunds": {"data": [outside(desk.payment, "re_1"), outside(desk.payment, "re_2")]},
    }
    assert sent(event_of("charge.refunded", charge)) == 200
    assert Refund.objects.count() == 2


def test_what_could_not_be_handled_is_answered_and_handled_by_the_sweep(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_args: Any, **_more: Any) -> None:
        raise OperationalError

    with monkeypatch.context() as patched:
        patched.setattr(services_events, "observed", broken)
        assert sent(event_of("refund.created", outside(desk.payment))) == 200
    row = ProcessorEvent.objects.get()
    assert (row.handled_at, row.tries) == (None, 1)
    assert events_sweep() == 0
    ProcessorEvent.objects.update(next_try_at=timezone.now())
    assert events_sweep() == 1
    assert Refund.objects.get().amount_minor == 4000


def test_an_event_whose_request_died_before_it_was_handled_is_picked_up(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(services_events, "event_handle", lambda _name: False)
    sent(event_of("refund.created", outside(desk.payment)))
    monkeypatch.undo()
    ProcessorEvent.objects.update(next_try_at=timezone.now())
    assert events_sweep() == 1
    assert ProcessorEvent.objects.get().outcome == "recorded"


def test_old_events_are_deleted_and_their_effects_stay(desk: Desk, settings: Any) -> None:
    sent(event_of("refund.created", outside(desk.payment)))
    sent(event_of("refund.created", outside(desk.payment, "re_2", amount=100)))
    old = timezone.now() - timedelta(days=settings.PROCESSOR_EVENT_KEEP_DAYS, seconds=1)
    ProcessorEvent.objects.filter(object_ref="re_2").update(received_at=old)
    assert events_sweep() == 1
    assert ProcessorEvent.objects.get().object_ref == "re_outside"
    assert Refund.objects.count() == 2
