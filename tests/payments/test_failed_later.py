"""A refund that the bank sends back after it was accepted: who hears of it, and what it frees."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from uuid import uuid4

import pytest

from payments.balances import refunded_today
from payments.models import Intent, IntentCall
from payments.services import intents_settle, observed
from tests.payments import cast
from tests.payments.cast import Desk
from tests.payments.test_observed import SOURCE, pending, refund, told
from tests.payments.test_settling import later

pytestmark = pytest.mark.django_db
__all__ = ["pending"]


def test_a_late_failure_is_told_to_every_conversation_of_the_refund(desk: Desk) -> None:
    context, other = desk.context(), uuid4()
    refund(desk, context=context)
    IntentCall.objects.create(intent=Intent.objects.get(), conversation_id=other, attached=True)
    observed(told(desk, "failed"), source=SOURCE)
    later()
    intents_settle()
    assert {who for who, _text, _key in cast.NOTICES} == {context.conversation_id, other}


def test_a_failure_between_the_try_and_its_reply_is_said_and_stays_owed(
    pending: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    from payments import services_intents

    really = services_intents.intent_try

    def told_first(intent: Intent) -> Any:
        reply = really(intent)
        for state in ("accepted", "failed"):
            seen = told(pending, state, processor_ref=reply.processor_ref, intent_id=intent.pk)
            observed(seen, source=SOURCE)
        return reply

    monkeypatch.setattr(services_intents, "intent_try", told_first)
    result = refund(pending)
    assert (result.state, result.left.amount_minor) == ("failed", 10_000)
    assert IntentCall.objects.get().waiting is True
    later()
    intents_settle()
    assert ["has failed at the bank" in text for _who, text, _key in cast.NOTICES] == [True]


def test_why_the_bank_declined_is_kept_when_the_event_was_first(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    from payments import services_intents

    really = services_intents.intent_try

    def told_first(intent: Intent) -> Any:
        reply = really(intent)
        observed(told(desk, "failed", processor_ref=reply.processor_ref), source=SOURCE)
        return replace(reply, state="failed", failure="undelivered", decline_code="stolen_card")

    monkeypatch.setattr(services_intents, "intent_try", told_first)
    assert refund(desk).state == "failed"
    assert Intent.objects.get().decline_code == "stolen_card"


def test_a_refund_that_failed_later_gives_back_its_share_of_the_day(desk: Desk) -> None:
    refund(desk)
    assert refunded_today(desk.ana.pk, "EUR") == 6000
    observed(told(desk, "failed"), source=SOURCE)
    assert refunded_today(desk.ana.pk, "EUR") == 0
