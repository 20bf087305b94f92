"""Operations pause all refunds: nothing new begins, and nothing on its way or waiting is lost."""

from __future__ import annotations

from datetime import UTC, datetime
from functools import partial
from typing import Any
from uuid import uuid4

import pytest
from django.contrib.auth.models import Permission, User
from django.db import IntegrityError, transaction

from agent_core.policy import Proposal, verdict_of
from agent_core.runs import services, work
from agent_core.runs.models import Message, Run, StopRecord
from agent_core.runs.states import Role, RunState
from payments.balances import refunds_pause
from payments.errors import PauseRefused, RefundsPaused
from payments.models import Intent, Pause, Refund
from payments.outcomes import refused_answer
from payments.policies import REFUND_POLICIES
from payments.services import (
    charge_make,
    intents_settle,
    refund_make,
    refunds_go_on,
    refunds_stop,
)
from reviews.errors import ReviewRefused
from reviews.models import Review, ReviewDecision
from reviews.services import review_approve, review_reject, review_withdraw
from reviews.states import State
from tests.payments.cast import Desk
from tests.payments.processor import Processor

SAID = "Refunds are paused by operations for now."


@pytest.fixture
def olga(db: None) -> User:
    """Return somebody of operations."""
    made = User.objects.create_user("olga", first_name="Olga")
    made.user_permissions.add(Permission.objects.get(codename="pause_refunds"))
    return made


def refund(desk: Desk, review: Any, **more: Any) -> Any:
    """Refund 30.00 EUR of the desk's payment."""
    values: dict[str, Any] = {"context": desk.context(), "payment_id": desk.payment.pk} | more
    return refund_make(amount_minor=3000, currency="EUR", review_id=review, **values)


def test_the_ledger_refuses_and_leaves_the_approval_for_later(
    desk: Desk, processor: Processor, olga: User
) -> None:
    review = desk.approved(desk.payment, 3000)
    pause = refunds_stop(actor=olga, reason="the processor books twice")
    with pytest.raises(RefundsPaused) as refusal:
        refund(desk, review)
    assert str(refusal.value) == f"{SAID} Nothing was refunded."
    assert (Intent.objects.count(), Refund.objects.count()) == (0, 0)
    assert Review.objects.get(pk=review).consumed_at is None
    assert processor.refunded(desk.payment.processor_ref) == []
    text, artifact = refused_answer(refusal.value, "PAY-1")
    assert text.startswith("PAY-1: Refunds are paused")
    assert (artifact["reason"], artifact["code"]) == ("policy_block", "refund.paused")

    refunds_go_on(actor=olga, reason="the processor is well", pause_id=pause.pk)
    assert refund(desk, review).state == "succeeded"
    assert processor.refunded(desk.payment.processor_ref) == [3000]


def test_what_was_sent_before_is_settled_and_its_repeat_gets_the_first_result(
    desk: Desk, processor: Processor, olga: User
) -> None:
    """The answer was lost on the way; the pause begins; the settle task asks again."""
    call = desk.context()
    review = desk.approved(desk.payment, 3000)
    processor.fault("drop_after")
    assert refund(desk, review, context=call).state == "unknown"
    refunds_stop(actor=olga, reason="the processor books twice")
    Intent.objects.update(next_try_at="2020-01-01T00:00:00Z")
    assert intents_settle() == 1
    assert Refund.objects.get().state == "succeeded"
    assert refund(desk, review, context=call).state == "succeeded"
    assert processor.refunded(desk.payment.processor_ref) == [3000]


def test_charges_go_on(desk: Desk, olga: User) -> None:
    refunds_stop(actor=olga, reason="the processor books twice")
    invoice = desk.owed()
    made = charge_make(
        context=desk.context(),
        invoice_id=invoice.pk,
        method_id=desk.method.pk,
        amount_minor=2500,
        currency="EUR",
    )
    assert made.state == "succeeded"


def test_pausing_twice_is_one_pause_and_letting_go_on_twice_one_end(olga: User) -> None:
    first = refunds_stop(actor=olga, reason=" the processor\n books twice ")
    assert refunds_stop(actor=olga, reason="again") == first
    assert refunds_pause() == first
    assert first.reason == "the processor books twice"
    assert refunds_go_on(actor=olga, reason="well again", pause_id=first.pk) == first
    assert refunds_go_on(actor=olga, reason="again", pause_id=first.pk) == first
    assert refunds_go_on(actor=olga, reason="again", pause_id=uuid4()) is None
    assert refunds_pause() is None
    kept = Pause.objects.get()
    assert (kept.paused_by, kept.resumed_by, kept.resumed_reason) == (olga, olga, "well again")
    assert kept.resumed_at is not None
    refunds_stop(actor=olga, reason="once more")
    assert Pause.objects.count() == 2


def test_who_ends_a_pause_that_is_over_does_not_end_the_one_that_holds_now(olga: User) -> None:
    """Adam reads the first pause; Olga ends it and begins another; Adam ends what he has read."""
    first = refunds_stop(actor=olga, reason="the processor books twice")
    refunds_go_on(actor=olga, reason="well again", pause_id=first.pk)
    second = refunds_stop(actor=olga, reason="a wrong price list")
    Pause.objects.filter(pk=second.pk).update(paused_at=datetime(2026, 4, 1, 9, 30, tzinfo=UTC))
    with pytest.raises(PauseRefused, match="another one holds since 1 April 2026, "):
        refunds_go_on(actor=olga, reason="the processor is well", pause_id=first.pk)
    assert refunds_pause() == second
    first.refresh_from_db()
    assert first.resumed_reason == "well again"


@pytest.mark.parametrize("reason", ["", " \n\t\0", "x" * 301])
def test_a_reason_is_needed(olga: User, reason: str) -> None:
    with pytest.raises(PauseRefused):
        refunds_stop(actor=olga, reason=reason)
    assert not Pause.objects.exists()


def test_the_right_is_read_anew_and_counts_for_both_ways(olga: User) -> None:
    assert olga.has_perm("payments.pause_refunds")
    pause = refunds_stop(actor=olga, reason="the processor books twice")
    olga.user_permissions.clear()
    for switch in (refunds_stop, partial(refunds_go_on, pause_id=pause.pk)):
        with pytest.raises(PauseRefused, match="may not"):
            switch(actor=olga, reason="well again")
    assert refunds_pause() is not None


def test_the_database_lets_one_pause_hold(olga: User) -> None:
    refunds_stop(actor=olga, reason="the processor books twice")
    with pytest.raises(IntegrityError), transaction.atomic():
        Pause.objects.create(operation="refund", reason="again", paused_by=olga)


@pytest.mark.parametrize(
    ("more", "rule"),
    [
        ({}, "refund.paused"),
        ({"begun": True}, "refund.always"),
        ({"attaches": True}, "refund.attaches"),
        ({"disputed": True}, "refund.paused"),
        ({"paused": False}, "refund.always"),
    ],
)
def test_a_new_refund_is_blocked_before_anybody_is_asked(more: dict[str, Any], rule: str) -> None:
    facts = {
        "payment": "PAY-1",
        "currency": "EUR",
        "paused": True,
        "disputed": False,
        "begun": False,
        "attaches": False,
        "wanted_minor": 100,
        "left_minor": 500,
        "too_old": False,
        "refunded_as": "",
        "waiting_minor": 0,
        "beside_minor": 0,
        "today_minor": 0,
        "daily_limit_minor": None,
    }
    asked = Proposal(
        tool="refund_request",
        arguments={},
        rights=frozenset({"payments.request_refund"}),
        customer_id=None,
    )
    assert verdict_of(REFUND_POLICIES, asked, facts | more).rule == rule


class Turn:
    """Ana has asked for a refund of 5.00 in the chat."""

    def __init__(self, desk: Desk) -> None:
        for person in (desk.ana, desk.lea):
            User.objects.filter(pk=person.pk).update(is_superuser=True)
            person.refresh_from_db()
            desk.team.members.add(person)
        talk = services.conversation_start(owner=desk.ana)
        self.run = services.message_send(
            conversation=talk,
            sender=desk.ana,
            text=f"refund 5.00 EUR of {desk.payment.reference} because the box was crushed",
        )

    def worked(self) -> Run:
        """Work it off as far as it goes."""
        work.run_work(self.run.pk)
        self.run.refresh_from_db()
        return self.run

    def answer(self) -> str:
        """Return what the chat was told."""
        return Message.objects.get(run=self.run, role=Role.ASSISTANT).text


@pytest.fixture
def turn(transactional_db: None, processor: Processor) -> tuple[Desk, Turn, User]:
    """Return the desk, the turn, and Olga of operations."""
    desk = Desk()
    olga = User.objects.create_superuser("olga")
    return desk, Turn(desk), olga


def test_in_the_chat_a_new_request_is_refused_by_rule_and_nobody_is_asked(
    turn: tuple[Desk, Turn, User],
) -> None:
    _desk, asked, olga = turn
    refunds_stop(actor=olga, reason="the processor books twice")
    assert asked.worked().state == RunState.DONE
    assert StopRecord.objects.get(run=asked.run).rule == "policy_block"
    assert SAID in asked.answer()
    assert "Nothing was refunded" in asked.answer()
    assert not Review.objects.exists()


def test_a_waiting_review_stays_open_and_goes_through_later(
    turn: tuple[Desk, Turn, User], processor: Processor
) -> None:
    desk, asked, olga = turn
    assert asked.worked().state == RunState.WAITING
    review = Review.objects.get()
    pause = refunds_stop(actor=olga, reason="the processor books twice")
    for changes in (None, {"amount": "4.00"}):
        with pytest.raises(ReviewRefused, match="paused by operations for now, so this cannot be"):
            review_approve(review_id=review.pk, actor=desk.lea, channel="desk", changes=changes)
    review.refresh_from_db()
    assert (review.state, asked.worked().state) == (State.PENDING, RunState.WAITING)
    assert ReviewDecision.objects.filter(accepted=False).count() == 2

    refunds_go_on(actor=olga, reason="well again", pause_id=pause.pk)
    review_approve(review_id=review.pk, actor=desk.lea, channel="desk")
    assert asked.worked().state == RunState.DONE
    assert processor.refunded(desk.payment.processor_ref) == [500]


@pytest.mark.parametrize("way", ["reject", "withdraw"])
def test_a_waiting_review_can_be_ended_meanwhile(
    turn: tuple[Desk, Turn, User], processor: Processor, way: str
) -> None:
    desk, asked, olga = turn
    asked.worked()
    review = Review.objects.get()
    refunds_stop(actor=olga, reason="the processor books twice")
    if way == "reject":
        review_reject(
            review_id=review.pk, actor=desk.lea, channel="desk", sentence="Not while we are paused."
        )
    else:
        review_withdraw(review_id=review.pk, actor=desk.ana, channel="chat")
    assert asked.worked().state == RunState.DONE
    assert processor.refunded(desk.payment.processor_ref) == []


def test_what_was_approved_a_moment_before_the_pause_is_refused_and_told(
    turn: tuple[Desk, Turn, User], processor: Processor
) -> None:
    """Approved; paused; only then does a worker take the run."""
    desk, asked, olga = turn
    asked.worked()
    review_approve(review_id=Review.objects.get().pk, actor=desk.lea, channel="desk")
    refunds_stop(actor=olga, reason="the processor books twice")
    assert asked.worked().state == RunState.DONE
    assert StopRecord.objects.get(run=asked.run).rule == "policy_block"
    assert SAID in asked.answer()
    assert processor.refunded(desk.payment.processor_ref) == []
    assert not Intent.objects.exists()
