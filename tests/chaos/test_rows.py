"""What is wrong in real tables and in real books of the processor is read as such."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from uuid import uuid4

import pytest
from django.utils import timezone

from agent_core.runs import services
from agent_core.runs.models import Call, Message, Run, StopRecord
from agent_core.runs.states import CallState, Role, RunState
from payments.models import Intent, Refund
from payments.sandbox.books import Books, find, give_back
from payments.states import IntentState, Operation, RefundState
from tests.chaos.books import Asked, found_wrong
from tests.chaos.rows import moved_of, tables_read
from tests.chaos.scripts import Wish
from tests.payments.cast import Desk

pytestmark = pytest.mark.django_db


class Refunded:
    """Ana's refund of 5.00, told as done: in our tables and in the processor's books."""

    def __init__(self, books: Books) -> None:
        self.books = books
        self.desk = Desk()
        conversation = services.conversation_start(owner=self.desk.ana)
        self.run = services.message_send(
            conversation=conversation, sender=self.desk.ana, text="refund 5.00 of it"
        )
        moved = self.give_back(500)
        intent_id, review_id = uuid4(), uuid4()
        values = {"amount_minor": 500, "currency": "EUR", "review_id": review_id}
        self.intent = Intent.objects.create(
            id=intent_id, operation=Operation.REFUND, target_id=self.desk.payment.pk,
            state=IntentState.SUCCEEDED, gateway="sandbox", idempotency_key=str(intent_id),
            body={}, requester=self.desk.ana, run_id=self.run.pk, processor_ref=moved,
            next_try_at=timezone.now(), settled_at=timezone.now(), **values,
        )  # fmt: skip
        Refund.objects.create(
            reference="REF-1", payment=self.desk.payment, intent=self.intent,
            state=RefundState.SUCCEEDED, processor_ref=moved, **values,
        )  # fmt: skip
        self.end()

    def give_back(self, amount: int) -> str:
        """Let money go back in the processor's books; return its name there."""
        with self.books.transaction() as db:
            payment = find(db, self.desk.payment.processor_ref)
            assert payment is not None
            return str(give_back(db, payment, amount, '{"intent": "the-same"}', "")["id"])

    def end(self) -> None:
        """End the run as the product does, by hand."""
        Run.objects.filter(pk=self.run.pk).update(state=RunState.DONE, ended_at=timezone.now())
        StopRecord.objects.create(run=self.run, rule="completed")
        self.answer()
        payload = {"rule": "completed"}
        self.run.events.create(
            conversation=self.run.conversation, kind="stop", attempt=0, payload=payload
        )

    def answer(self) -> None:
        """Add an answer to the transcript."""
        said = self.run.conversation.messages.count()
        Message.objects.create(
            conversation=self.run.conversation, run=self.run, position=said + 1,
            role=Role.ASSISTANT, text="Done.",
        )  # fmt: skip

    def wrong(self) -> dict[str, int]:
        """Return how many things each check finds, those that find something."""
        wish = Wish("refund", self.desk.payment.reference, 500)
        asked = [Asked(self.run.pk, self.run.message_id, (wish,))]
        found = found_wrong(asked, tables_read(), moved_of(self.books.read()))
        return {name: len(sentences) for name, sentences in found.items() if sentences}


@pytest.fixture
def refunded(tmp_path: Path) -> Refunded:
    """Return a turn that went well."""
    return Refunded(Books(tmp_path / "books.sqlite3"))


def test_a_turn_that_went_well_is_read_as_such(refunded: Refunded) -> None:
    assert refunded.wrong() == {}


def test_a_second_refund_in_the_processors_books_is_read(refunded: Refunded) -> None:
    refunded.give_back(500)
    assert refunded.wrong() == {"doubled": 1, "wrong ledger rows": 1}


def test_another_amount_in_our_row_is_read(refunded: Refunded) -> None:
    Refund.objects.update(amount_minor=499)
    assert refunded.wrong()["wrong ledger rows"] >= 1


def test_a_second_answer_and_a_missing_record_are_read(refunded: Refunded) -> None:
    refunded.answer()
    assert refunded.wrong() == {"doubled": 1}
    StopRecord.objects.all().delete()
    assert refunded.wrong()["lost"] == 1


def test_a_run_and_an_intent_that_nobody_has_ended_are_read(refunded: Refunded) -> None:
    conversation = services.conversation_start(owner=refunded.desk.ana)
    services.message_send(conversation=conversation, sender=refunded.desk.ana, text="hello")
    Intent.objects.update(state=IntentState.OPEN, settled_at=None)
    assert refunded.wrong() == {"stuck": 2}


def test_a_call_left_running_and_a_gap_in_the_transcript_are_read(refunded: Refunded) -> None:
    Call.objects.create(
        id=uuid4(), run=refunded.run, batch=0, position=0, tool="x", label="Refund",
        state=CallState.RUNNING, started_at=timezone.now() - timedelta(minutes=1),
    )  # fmt: skip
    Message.objects.filter(role=Role.ASSISTANT).update(position=7)
    assert refunded.wrong() == {"wrong transcripts": 2}
