"""The ledger is the lock: old checkpoints, graphs without a review, forged and stale approvals.

Each test drives the real compiled graph around the worker (`replays.Forger`) and then reads the
processor's own books.
"""

from dataclasses import replace
from uuid import uuid4

import pytest
from django.db import IntegrityError, transaction

from agent_core.contract import RunContext
from agent_core.runs.claims import run_claim
from agent_core.runs.django_host import DjangoHost
from agent_core.runs.models import Run
from agent_core.runs.work import toolset
from payments.errors import ReviewMissing
from payments.models import Intent, Payment, Refund
from payments.services import refund_make
from reviews.errors import ReviewConsumed, ReviewMismatch, ReviewNotApproved
from reviews.services import review_approve
from tests.journeys.chat import (
    Chat,
    approve,
    outcome,
    payment_add,
    person,
    pump,
    reject,
    sent_back,
    stop,
)
from tests.journeys.replays import Forger, approval
from tests.payments.processor import Processor


def refunds() -> list[tuple[int, str]]:
    """Return amount and state of every refund that the ledger has begun."""
    rows = Refund.objects.filter(intent__isnull=False).order_by("created_at")
    return list(rows.values_list("amount_minor", "state"))


def context_of(run: Run) -> RunContext:
    """Return the context of a run as its host makes it, for a call of its own, without a fence."""
    fresh = Run.objects.select_related("conversation", "message").get(pk=run.pk)
    made = DjangoHost(fresh, toolset())
    return replace(made.context(), call_id=uuid4(), fence=lambda: None)


def refunded_once(chat: Chat) -> Run:
    """Refund 5.00 the ordinary way and return the finished run."""
    run = chat.say("refund 5.00 of PAY-10011")
    approve(chat.reviews()[0])
    run.refresh_from_db()
    assert stop(run)[0] == "completed"
    return run


def test_b10_an_old_checkpoint_of_a_finished_run_can_do_nothing(
    chat: Chat, product: Processor
) -> None:
    run = refunded_once(chat)
    asked = product.books()["requests"]
    (review,) = chat.reviews()
    Forger(run).resume({str(review.call_id): approval(review)})
    assert product.books()["requests"] == asked
    assert (refunds(), len(chat.answers())) == ([(500, "succeeded")], 1)
    assert sent_back(product, "PAY-10011") == [500]


def test_b10_even_with_the_run_forged_open_the_same_call_gets_its_first_result(
    chat: Chat, product: Processor
) -> None:
    run = refunded_once(chat)
    asked = product.books()["requests"]
    (review,) = chat.reviews()
    before = chat.calls()[0].content
    forger = Forger(run)
    forger.seize()
    forger.resume({str(review.call_id): approval(review)})
    assert product.books()["requests"] == asked
    assert (refunds(), Intent.objects.count()) == ([(500, "succeeded")], 1)
    assert chat.calls()[0].content == before


def test_b10_a_late_refusal_at_the_old_checkpoint_changes_no_book(
    chat: Chat, product: Processor
) -> None:
    run = refunded_once(chat)
    (review,) = chat.reviews()
    forger = Forger(run)
    forger.seize()
    late = {**approval(review), "state": "rejected", "sentence": "Too late."}
    forger.resume({str(review.call_id): late})
    review.refresh_from_db()
    assert (review.state, refunds()) == ("approved", [(500, "succeeded")])
    assert sent_back(product, "PAY-10011") == [500]


def test_b10_from_before_the_model_a_new_call_finds_its_place_taken(
    chat: Chat, product: Processor
) -> None:
    run = refunded_once(chat)
    forger = Forger(run)
    forger.seize()
    forger.before_model()
    assert (len(chat.calls()), len(chat.reviews()), len(chat.answers())) == (1, 1, 1)
    assert refunds() == [(500, "succeeded")]
    assert sent_back(product, "PAY-10011") == [500]


def test_b10_the_approval_of_one_refund_pays_no_other(chat: Chat, product: Processor) -> None:
    run = chat.say("refund 5.00 of PAY-10011 and 3.00 of PAY-10012")
    yes, no = chat.reviews()
    approve(yes)
    reject(no, "Once is enough.")
    run.refresh_from_db()
    forger = Forger(run)
    forger.seize()
    forger.forge({str(yes.call_id): approval(yes), str(no.call_id): approval(yes)})
    assert [outcome(call)["code"] for call in chat.calls()] == [
        "refund.completed",
        "review.missing",
    ]
    assert refunds() == [(500, "succeeded")]
    assert (sent_back(product, "PAY-10011"), sent_back(product, "PAY-10012")) == ([500], [])


def test_b10_a_refusal_turned_into_an_approval_by_hand_pays_nothing(
    chat: Chat, product: Processor
) -> None:
    run = chat.say("refund 5.00 of PAY-10011")
    (review,) = chat.reviews()
    reject(review, "No.")
    run.refresh_from_db()
    forger = Forger(run)
    forger.seize()
    forger.forge({str(review.call_id): approval(review)})
    (call,) = chat.calls()
    assert (call.state, outcome(call)["code"]) == ("refused", "review.missing")
    assert "No approval allows exactly this for PAY-10011" in call.content
    assert (refunds(), product.books()["requests"]) == ([], [])


def test_a_graph_without_its_review_node_refunds_nothing(chat: Chat, product: Processor) -> None:
    run = chat.send("refund 5.00 of PAY-10011")
    assert run_claim(run.pk, quarantined=False)
    Forger(run_claimed(run), review_node=False).begin()
    (call,) = chat.calls()
    assert (call.state, outcome(call)["reason"]) == ("refused", "policy_block")
    assert (refunds(), product.books()["requests"]) == ([], [])


def run_claimed(run: Run) -> Run:
    """Return the run with the attempt that its claim began."""
    return Run.objects.get(pk=run.pk)


@pytest.mark.parametrize("whose", ["its own pending", "nobody's", "another payment's"])
def test_in_a_graph_without_its_review_node_a_forged_approval_is_refused_by_the_ledger(
    chat: Chat, product: Processor, whose: str
) -> None:
    run = chat.say("refund 5.00 of PAY-10011")
    (review,) = chat.reviews()
    decision = approval(review)
    if whose == "nobody's":
        decision["review"] = str(uuid4())
    if whose == "another payment's":
        other = Chat(person("agent"))
        other.say("refund 5.00 of PAY-10012")
        review_approve(review_id=other.reviews()[0].pk, actor=person("lead"), channel="desk")
        decision["review"] = str(other.reviews()[0].pk)
    forger = Forger(run, review_node=False)
    forger.seize()
    forger.forge({str(review.call_id): decision})
    (call,) = chat.calls()
    assert (call.state, outcome(call)["code"]) == ("refused", "review.missing")
    assert (refunds(), Intent.objects.count(), product.books()["requests"]) == ([], 0, [])


def test_called_directly_without_an_approval_the_ledger_refuses(
    chat: Chat, product: Processor
) -> None:
    run = chat.say("refund 5.00 of PAY-10011")
    payment = Payment.objects.get(reference="PAY-10011")
    with pytest.raises(ReviewMissing):
        refund_make(
            context=context_of(run), payment_id=payment.pk, amount_minor=500, currency="EUR"
        )
    tool = toolset().tool("refund_request")
    assert tool is not None
    arguments = {"payment": "PAY-10011", "amount": "5.00"}
    message = toolset().executed(tool, arguments, context_of(run))
    assert message.artifact["reason"] == "policy_block"
    assert (refunds(), product.books()["requests"]) == ([], [])


@pytest.mark.parametrize(("amount", "payment"), [(501, "PAY-10011"), (500, "PAY-10012")])
def test_an_approval_for_another_amount_or_payment_is_refused(
    chat: Chat, product: Processor, amount: int, payment: str
) -> None:
    run = chat.say("refund 5.00 of PAY-10011")
    (review,) = chat.reviews()
    review_approve(review_id=review.pk, actor=person("lead"), channel="desk")
    with pytest.raises(ReviewMismatch):
        refund_make(
            context=context_of(run),
            payment_id=Payment.objects.get(reference=payment).pk,
            amount_minor=amount,
            currency="EUR",
            review_id=review.pk,
        )
    review.refresh_from_db()
    assert (review.consumed_at, refunds(), product.books()["requests"]) == (None, [], [])


def test_a_stale_approval_of_the_amount_before_it_was_lowered_is_refused(
    chat: Chat, product: Processor
) -> None:
    run = chat.say("refund 20.00 of PAY-10011")
    (review,) = chat.reviews()
    lead = person("lead")
    review_approve(review_id=review.pk, actor=lead, channel="desk", changes={"amount": "12.00"})
    with pytest.raises(ReviewMismatch):
        refund_make(
            context=context_of(run),
            payment_id=Payment.objects.get(reference="PAY-10011").pk,
            amount_minor=2000,
            currency="EUR",
            review_id=review.pk,
        )
    assert (refunds(), product.books()["requests"]) == ([], [])


def test_an_amount_forged_into_the_decision_pays_what_was_approved(
    chat: Chat, product: Processor
) -> None:
    run = chat.say("refund 5.00 of PAY-10011")
    (review,) = chat.reviews()
    review_approve(review_id=review.pk, actor=person("lead"), channel="desk")
    forger = Forger(run)
    forger.seize()
    forger.resume({str(review.call_id): approval(review, amount="40.00")}, old=False)
    assert refunds() == [(500, "succeeded")]
    assert sent_back(product, "PAY-10011") == [500]


def test_an_approval_is_used_up_by_its_one_refund(chat: Chat, product: Processor) -> None:
    run = refunded_once(chat)
    (review,) = chat.reviews()
    with pytest.raises(ReviewConsumed):
        refund_make(
            context=context_of(run),
            payment_id=Payment.objects.get(reference="PAY-10011").pk,
            amount_minor=500,
            currency="EUR",
            review_id=review.pk,
        )
    with pytest.raises(IntegrityError), transaction.atomic():
        Intent.objects.filter(review_id=review.pk).update(review_id=None)
    assert (refunds(), sent_back(product, "PAY-10011")) == ([(500, "succeeded")], [500])


def test_approved_but_smaller_by_the_time_it_runs_the_ledger_says_what_is_left(
    chat: Chat, product: Processor
) -> None:
    """The lead approves 60.00 of 100.00; before the worker goes on, 50.00 went back elsewhere."""
    payment = payment_add(10_000, unique="LESS")
    run = chat.say("refund 60.00 of PAY-LESS")
    (review,) = chat.reviews()
    review_approve(review_id=review.pk, actor=person("lead"), channel="desk")
    Refund.objects.create(
        reference="REF-ELSEWHERE",
        payment=payment,
        amount_minor=5_000,
        currency="EUR",
        state="succeeded",
    )
    pump()
    run.refresh_from_db()
    assert stop(run)[0] == "policy_block"
    assert "50.00 EUR can still be refunded" in chat.answer()
    assert (refunds(), product.books()["requests"]) == ([], [])


def test_a_review_that_is_pending_is_no_approval(chat: Chat, product: Processor) -> None:
    run = chat.say("refund 5.00 of PAY-10011")
    with pytest.raises(ReviewNotApproved):
        refund_make(
            context=context_of(run),
            payment_id=Payment.objects.get(reference="PAY-10011").pk,
            amount_minor=500,
            currency="EUR",
            review_id=chat.reviews()[0].pk,
        )
    assert (refunds(), product.books()["requests"]) == ([], [])
