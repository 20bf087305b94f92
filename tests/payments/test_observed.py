"""What the processor tells of a refund or a dispute: any order, any number of times, one truth."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.utils import timezone

from agent_core.contract import RunContext
from payments import errors
from payments.balances import payment_left
from payments.gateways.base import Seen
from payments.models import Dispute, Intent, IntentCall, Payment, Refund
from payments.outcomes import refund_answer
from payments.results import RefundResult
from payments.services import intents_settle, observed, refund_make, refunds_look
from payments.settled import intent_outcome
from reviews.audit.models import Entry
from tests.payments import cast
from tests.payments.cast import Desk
from tests.payments.processor import Processor
from tests.payments.test_settling import later
from tickets.models import Ticket

pytestmark = pytest.mark.django_db
SOURCE = "payments.webhook"


@pytest.fixture
def pending(ledger: Processor) -> Desk:
    """Return a desk whose refunds the processor takes and the bank confirms later."""
    return Desk(fault="refund_pending")


def refund(desk: Desk, amount: int = 6000, context: RunContext | None = None) -> RefundResult:
    """Refund so much of the desk's payment, approved."""
    return refund_make(
        context=context or desk.context(),
        payment_id=desk.payment.pk,
        amount_minor=amount,
        currency="EUR",
        review_id=desk.approved(desk.payment, amount),
    )


def told(desk: Desk, state: Any, **more: Any) -> Seen:
    """Return what the processor says of the only refund there, unless a field is given."""
    row = Refund.objects.filter(intent__isnull=False).first()
    values: dict[str, Any] = {
        "kind": "refund",
        "processor_ref": (row.processor_ref if row else "") or "re_1",
        "payment_ref": desk.payment.processor_ref,
        "amount_minor": row.amount_minor if row else 6000,
        "currency": "EUR",
        "state": state,
        "failure": "undelivered" if state == "failed" else "",
        "intent_id": row.intent_id if row else None,
        "created_at": timezone.now(),
    }
    return Seen(**(values | more))


def actions(prefix: str = "") -> list[str]:
    """List what the audit has kept, in order."""
    rows = Entry.objects.order_by("id").values_list("action", flat=True)
    return [action for action in rows if action.startswith(prefix)]


def test_a_refund_walks_from_accepted_to_settled_and_is_sent_once(
    pending: Desk, ledger: Processor
) -> None:
    result = refund(pending)
    assert (result.state, result.reason, result.code) == (
        "succeeded",
        "completed",
        "refund.accepted",
    )
    assert "on its way" in result.sentence
    said, artifact = refund_answer(result, pending.payment, None)
    assert "is on its way. The bank has not confirmed it yet. 40.00 EUR" in said
    assert artifact["reason"] == "completed"
    row = Refund.objects.get()
    assert (row.state, row.accepted_at is None, row.settled_at) == ("accepted", False, None)
    assert Intent.objects.get().state == "succeeded"
    # What is on its way counts as gone.
    assert payment_left(pending.payment) == 4000

    change = observed(told(pending, "succeeded"), source=SOURCE)
    assert (change.what, change.before, change.after) == ("moved", "accepted", "succeeded")
    row.refresh_from_db()
    assert (row.state, row.settled_at is None, row.failed_at) == ("succeeded", False, None)
    assert actions("refund.") == ["refund.settled"]
    assert ledger.asked("POST /v1/refunds") == 1
    assert cast.NOTICES == []


def test_what_is_told_again_or_late_changes_nothing(pending: Desk) -> None:
    refund(pending)
    observed(told(pending, "succeeded"), source=SOURCE)
    before = Refund.objects.values().get()
    for state in ("accepted", "succeeded", "accepted"):
        change = observed(told(pending, state), source=SOURCE)
        assert (change.what, change.changed, change.after) == ("nothing", False, "succeeded")
    assert Refund.objects.values().get() == before
    assert actions("refund.") == ["refund.settled"]


def test_a_refund_that_fails_days_later_reopens_its_case_once(
    desk: Desk, ledger: Processor
) -> None:
    context = desk.context()
    result = refund(desk, context=context)
    intent = Intent.objects.get()
    ended = intent_outcome(intent)
    assert Refund.objects.get().state == "succeeded"
    late = timezone.now() - dt.timedelta(days=9)
    Intent.objects.update(settled_at=late, next_try_at=late)

    failed = told(desk, "failed")
    ledger.refund_ends(failed.processor_ref, "failed", "lost_or_stolen_card")
    change = observed(failed, source=SOURCE)
    assert (change.what, change.failed_later) == ("moved", True)
    assert observed(failed, source=SOURCE).what == "nothing"
    assert observed(told(desk, "succeeded"), source=SOURCE).what == "nothing"

    row = Refund.objects.get()
    assert (row.state, row.failure_code, row.failed_at is None) == ("failed", "undelivered", False)
    assert payment_left(desk.payment) == 10_000
    ticket = Ticket.objects.get()
    assert ticket.payment_id == desk.payment.pk
    assert (ticket.conversation_id, ticket.requester_id) == (context.conversation_id, desk.ana.pk)
    assert result.reference in ticket.subject
    assert result.reference in ticket.body

    intents_settle()
    intents_settle()
    (notice,) = cast.NOTICES
    assert notice[0] == context.conversation_id
    assert "has failed at the bank" in notice[1]
    assert "does not have the money" in notice[1]
    assert actions("refund.") == ["refund.failed"]
    # What was said then was true then; a retried or repeated call hears what is true now.
    intent.refresh_from_db()
    said, artifact = intent_outcome(intent)
    assert ended[1]["reason"] == "completed"
    assert artifact["reason"] == "fatal"
    assert "has failed at the bank" in said
    again = refund(desk, context=context)
    assert (again.state, again.code, again.already_applied) == (
        "failed",
        "refund.undelivered",
        False,
    )
    assert refund(desk, 10_000).state == "succeeded"


def test_an_accepted_refund_that_fails_is_told_even_while_its_end_is_still_owed(
    pending: Desk, ledger: Processor
) -> None:
    ledger.fault("drop_after")
    context = pending.context()
    assert refund(pending, context=context).state == "unknown"
    refund_ref = ledger.books()["refunds"][0]["id"]
    observed(told(pending, "accepted", processor_ref=refund_ref), source=SOURCE)
    observed(told(pending, "failed", processor_ref=refund_ref), source=SOURCE)
    intents_settle()
    assert [who for who, _text, _key in cast.NOTICES] == [context.conversation_id]
    assert "has failed at the bank" in cast.NOTICES[0][1]


def test_an_event_before_the_reply_settles_the_intent_and_the_reply_adds_nothing(
    desk: Desk, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The gateway's notice comes while the try is in the air, three times, the last one old."""
    from payments import services_intents

    really, changes = services_intents.intent_try, []

    def told_first(intent: Intent) -> Any:
        reply = really(intent)
        for state in ("succeeded", "succeeded", "accepted"):
            seen = told(desk, state, processor_ref=reply.processor_ref, intent_id=intent.pk)
            changes.append(observed(seen, source=SOURCE).what)
        # Nobody is told by a notice what the call is about to say itself.
        intents_settle()
        assert cast.NOTICES == []
        return reply

    monkeypatch.setattr(services_intents, "intent_try", told_first)
    result = refund(desk)
    assert changes == ["settled", "nothing", "nothing"]
    assert (result.state, result.code) == ("succeeded", "refund.completed")
    assert (Refund.objects.count(), Refund.objects.get().state) == (1, "succeeded")
    assert actions("intent.") == ["intent.begun", "intent.sent", "intent.succeeded"]
    later()
    intents_settle()
    assert cast.NOTICES == []
    assert IntentCall.objects.get().waiting is False
    assert payment_left(desk.payment) == 4000


def test_an_event_settles_what_was_being_checked_and_its_conversation_is_told(
    desk: Desk, ledger: Processor
) -> None:
    ledger.fault("drop_after")
    context = desk.context()
    assert refund(desk, context=context).state == "unknown"
    refund_ref = ledger.books()["refunds"][0]["id"]
    change = observed(told(desk, "succeeded", processor_ref=refund_ref), source=SOURCE)
    assert (change.what, change.before, change.after) == ("settled", "unknown", "succeeded")
    intents_settle()
    assert [who for who, _text, _key in cast.NOTICES] == [context.conversation_id]
    assert ledger.asked("POST /v1/refunds") == 1


def test_a_refund_made_at_the_processor_counts_and_needs_no_review(desk: Desk) -> None:
    seen = told(desk, "succeeded", amount_minor=7000, processor_ref="re_outside")
    change = observed(seen, source=SOURCE)
    assert (change.what, change.after) == ("recorded", "succeeded")
    row = Refund.objects.get()
    assert (row.origin, row.intent_id, row.review_id) == ("outside", None, None)
    assert payment_left(desk.payment) == 3000
    assert observed(seen, source=SOURCE).what == "nothing"
    with pytest.raises(errors.RefundAboveLeft):
        refund(desk)
    assert observed(replace(seen, state="failed"), source=SOURCE).failed_later
    assert payment_left(desk.payment) == 10_000
    assert Ticket.objects.count() == 0
    assert actions("refund.") == ["refund.outside", "refund.failed"]


def test_a_second_object_under_our_metadata_is_counted_as_made_outside(desk: Desk) -> None:
    refund(desk, 3000)
    change = observed(told(desk, "succeeded", processor_ref="re_second"), source=SOURCE)
    assert change.what == "recorded"
    assert payment_left(desk.payment) == 4000


def test_metadata_that_asks_for_another_amount_is_not_believed(
    desk: Desk, ledger: Processor
) -> None:
    ledger.fault("drop_before")
    refund(desk, 3000)
    seen = told(desk, "succeeded", amount_minor=500, processor_ref="re_copied")
    assert observed(seen, source=SOURCE).what == "recorded"
    assert Intent.objects.get().state == "open"


@pytest.mark.parametrize(
    "more", [{"payment_ref": "pi_of_nobody", "intent_id": None}, {"intent_id": uuid4()}]
)
def test_what_means_no_payment_of_ours_changes_nothing(desk: Desk, more: dict[str, Any]) -> None:
    nobody = {"payment_ref": "pi_of_nobody"} | more
    change = observed(told(desk, "succeeded", **nobody), source=SOURCE)
    assert (change.what, Refund.objects.count(), Entry.objects.count()) == ("nowhere", 0, 0)


def dispute(desk: Desk, state: Any, amount: int = 10_000, name: str = "dp_1") -> Seen:
    """Return what the processor says of a dispute."""
    return told(desk, state, kind="dispute", amount_minor=amount, processor_ref=name, failure="")


def test_a_dispute_is_kept_while_it_is_open_and_ends_with_it(desk: Desk) -> None:
    assert observed(dispute(desk, "open", 4000), source=SOURCE).what == "recorded"
    desk.payment.refresh_from_db()
    assert (desk.payment.disputed, desk.payment.disputed_minor) == (True, 4000)
    with pytest.raises(errors.PaymentDisputed):
        refund(desk)
    assert observed(dispute(desk, "won", 4000), source=SOURCE).what == "moved"
    # An old telling comes last.
    assert observed(dispute(desk, "open", 4000), source=SOURCE).what == "nothing"
    desk.payment.refresh_from_db()
    assert (desk.payment.disputed, desk.payment.disputed_minor) == (False, 0)
    assert refund(desk).state == "succeeded"
    assert actions("payment.") == ["payment.disputed", "payment.disputed"]


def test_a_lost_dispute_keeps_what_it_took(desk: Desk) -> None:
    observed(dispute(desk, "lost", 4000), source=SOURCE)
    observed(dispute(desk, "won", 1000, "dp_2"), source=SOURCE)
    desk.payment.refresh_from_db()
    assert (desk.payment.disputed, desk.payment.disputed_minor) == (True, 4000)
    assert Dispute.objects.count() == 2


def test_accepted_refunds_are_asked_about_ever_more_rarely(
    pending: Desk, ledger: Processor
) -> None:
    refund(pending)
    assert refunds_look() == 0
    waits = []
    for _ in range(3):
        now = timezone.now()
        Refund.objects.update(next_look_at=now)
        assert refunds_look() == 0
        due = Refund.objects.values_list("next_look_at", flat=True).get()
        assert due is not None
        waits.append((due - now).total_seconds() // 60)
        assert refunds_look() == 0
    assert waits == [2, 4, 8]
    ledger.refund_ends(Refund.objects.get().processor_ref, "failed", "lost_or_stolen_card")
    Refund.objects.update(next_look_at=timezone.now())
    assert refunds_look() == 1
    row = Refund.objects.get()
    assert (row.state, row.failure_code, row.next_look_at) == ("failed", "undelivered", None)
    assert Ticket.objects.count() == 1


def test_a_look_without_an_answer_changes_nothing(pending: Desk, ledger: Processor) -> None:
    refund(pending)
    Refund.objects.update(next_look_at=timezone.now())
    ledger.fault("server_before")
    assert refunds_look() == 0
    assert Refund.objects.get().state == "accepted"


def test_a_charge_that_waits_is_settled_by_its_event(desk: Desk, ledger: Processor) -> None:
    from payments.services import charge_make

    ledger.fault("drop_after")
    invoice = desk.owed()
    result = charge_make(
        context=desk.context(),
        invoice_id=invoice.pk,
        method_id=desk.method.pk,
        amount_minor=2500,
        currency="EUR",
    )
    assert result.state == "unknown"
    intent = Intent.objects.get()
    seen = Seen(
        kind="payment",
        processor_ref="pi_new",
        payment_ref="pi_new",
        amount_minor=2500,
        currency="EUR",
        state="succeeded",
        intent_id=UUID(str(intent.pk)),
        created_at=timezone.now(),
    )
    assert observed(seen, source=SOURCE).what == "settled"
    assert observed(seen, source=SOURCE).what == "nothing"
    invoice.refresh_from_db()
    assert invoice.state == "paid"
    assert Payment.objects.get(invoice=invoice).processor_ref == "pi_new"
    # One that no intent of ours made belongs to nobody here.
    other = replace(seen, processor_ref="pi_other", payment_ref="pi_other", intent_id=None)
    assert observed(other, source=SOURCE).what == "nowhere"
