"""Every check of a chaos run can fail: each wrong thing is planted once and seen reported."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID, uuid4

import pytest

from tests.chaos.books import Asked, found_wrong
from tests.chaos.rows import EffectRow, EventRow, Moved, RunRow, Tables
from tests.chaos.scripts import Wish

NOON = datetime(2026, 4, 1, 12, tzinfo=UTC)


class Played:
    """Two messages that went well: a refund of 5.00, and a charge with a ticket."""

    def __init__(self) -> None:
        self.asked = [
            Asked(uuid4(), uuid4(), (Wish("refund", "PAY-1", 500),)),
            Asked(uuid4(), uuid4(), (Wish("charge", "INV-2", 2_500), Wish("ticket", "Parcel 2"))),
        ]
        runs = [
            RunRow(
                id=one.run_id, message_id=one.message_id, state="done", final=True, rule="completed"
            )
            for one in self.asked
        ]
        self.tables = Tables(
            runs=runs,
            effects=[
                EffectRow(
                    kind="refund", target="PAY-1", amount_minor=500,
                    run_id=runs[0].id, processor_ref="re_1",
                ),
                EffectRow(
                    kind="charge", target="INV-2", amount_minor=2_500,
                    run_id=runs[1].id, processor_ref="pi_2",
                ),
                EffectRow(kind="ticket", target="Parcel 2"),
            ],
            events=[event for run in runs for event in _events(uuid4(), run.id)],
            invoices_paid=frozenset({"INV-2"}),
        )  # fmt: skip
        self.moved = [
            Moved(
                kind="refund", id="re_1", payment="pi_earlier", amount_minor=500,
                intent="i1", reference="REF-1",
            ),
            Moved(
                kind="charge", id="pi_2", payment="pi_2", amount_minor=2_500,
                intent="i2", reference="INV-2",
            ),
        ]  # fmt: skip

    def wrong(self) -> dict[str, int]:
        """Return how many things each check finds, those that find something."""
        found = found_wrong(self.asked, self.tables, self.moved)
        return {name: len(sentences) for name, sentences in found.items() if sentences}

    def run_change(self, place: int, **values: object) -> None:
        """Change a run's row."""
        self.tables.runs[place] = replace(self.tables.runs[place], **values)  # type: ignore[arg-type]


def _events(conversation: UUID, run: UUID) -> list[EventRow]:
    return [
        EventRow(
            conversation_id=conversation,
            run_id=run,
            attempt=1,
            kind=kind,
            at=NOON + timedelta(seconds=second),
        )
        for second, kind in enumerate(("run", "message", "run", "stop"))
    ]


@pytest.fixture
def played() -> Played:
    """Return what is all right, for a test to spoil."""
    return Played()


def test_what_went_well_is_not_reported(played: Played) -> None:
    assert played.wrong() == {}


def test_a_message_whose_run_is_gone_is_lost(played: Played) -> None:
    gone = played.tables.runs.pop(0)
    played.tables.events = [event for event in played.tables.events if event.run_id != gone.id]
    assert played.wrong()["lost"] == 1


@pytest.mark.parametrize("missing", ["stops", "answers"])
def test_an_end_without_record_or_answer_is_lost(played: Played, missing: str) -> None:
    played.run_change(0, **{missing: 0})
    assert played.wrong() == {"lost": 1}


@pytest.mark.parametrize("state", ["queued", "running", "pending", "decided"])
def test_a_run_that_neither_ended_nor_waits_for_people_is_stuck(played: Played, state: str) -> None:
    stuck = RunRow(id=uuid4(), message_id=uuid4(), state=state, final=False, stops=0, answers=0)
    played.tables.runs.append(stuck)
    assert played.wrong() == {"stuck": 1}


def test_a_run_that_waits_for_people_is_not_stuck(played: Played) -> None:
    waits = RunRow(id=uuid4(), message_id=uuid4(), state="waiting", final=False, stops=0, answers=0)
    played.tables.runs.append(waits)
    assert played.wrong() == {}


def test_open_work_beside_the_runs_is_stuck(played: Played) -> None:
    played.tables.work_open.append("intent 1 is open")
    assert played.wrong() == {"stuck": 1}


def test_a_parked_run_is_reported(played: Played) -> None:
    played.run_change(0, state="parked")
    assert played.wrong() == {"parked": 1}


@pytest.mark.parametrize("many", ["stops", "answers"])
def test_a_second_record_or_answer_of_a_run_is_doubled(played: Played, many: str) -> None:
    played.run_change(0, **{many: 2})
    assert played.wrong() == {"doubled": 1}


def test_a_message_sent_twice_that_got_two_runs_is_doubled(played: Played) -> None:
    first = played.asked[0]
    played.asked[0] = replace(first, doubles=frozenset({uuid4()}))
    assert played.wrong() == {"doubled": 1}


def test_two_runs_of_one_message_of_which_none_retries_the_other_are_doubled(
    played: Played,
) -> None:
    second = replace(played.tables.runs[0], id=uuid4())
    played.tables.runs.append(second)
    played.tables.events += _events(uuid4(), second.id)
    assert played.wrong() == {"doubled": 1}


def test_a_retry_is_not_doubled(played: Played) -> None:
    played.run_change(0, state="failed", rule="failed", followed=True)
    second = replace(
        played.tables.runs[0], id=uuid4(), state="done", rule="completed", followed=False
    )
    played.tables.runs.append(second)
    played.tables.events += _events(uuid4(), second.id)
    assert played.wrong() == {}


def test_a_second_refund_in_both_books_is_doubled(played: Played) -> None:
    played.tables.effects.append(replace(played.tables.effects[0], processor_ref="re_9"))
    played.moved.append(replace(played.moved[0], id="re_9", intent="i9"))
    assert played.wrong() == {"doubled": 1}


def test_a_second_refund_of_one_intent_in_the_processors_books_alone_is_doubled_and_wrong(
    played: Played,
) -> None:
    played.moved.append(replace(played.moved[0], id="re_9"))
    assert played.wrong() == {"doubled": 1, "wrong ledger rows": 1}


def test_a_second_ticket_is_doubled(played: Played) -> None:
    played.tables.effects.append(played.tables.effects[2])
    assert played.wrong() == {"doubled": 1}


def test_two_files_for_one_message_are_doubled_and_those_of_two_messages_are_not(
    played: Played,
) -> None:
    wish = Wish("export", "2026-01-01")
    played.asked = [replace(one, wishes=(*one.wishes, wish)) for one in played.asked]
    made = EffectRow(kind="export", target="2026-01-01", run_id=played.asked[0].run_id)
    played.tables.effects += [made, replace(made, run_id=played.asked[1].run_id)]
    assert played.wrong() == {}
    played.tables.effects.append(made)
    assert played.wrong() == {"doubled": 1}


def test_another_amount_in_the_processors_books_is_wrong(played: Played) -> None:
    played.moved[0] = replace(played.moved[0], amount_minor=501)
    assert played.wrong() == {"wrong ledger rows": 1}


def test_money_that_moved_without_a_row_of_ours_is_wrong(played: Played) -> None:
    played.tables.effects.pop(0)
    # The answer also tells of a refund that is not in our books.
    assert played.wrong() == {"wrong ledger rows": 2}


def test_a_row_of_ours_that_the_processor_does_not_know_is_wrong(played: Played) -> None:
    played.moved.pop(0)
    assert played.wrong() == {"wrong ledger rows": 1}


def test_an_invoice_paid_without_a_charge_is_wrong(played: Played) -> None:
    played.tables.invoices_paid = frozenset({"INV-2", "INV-3"})
    assert played.wrong() == {"wrong ledger rows": 1}


def test_an_amount_nobody_asked_for_is_wrong_though_both_books_agree(played: Played) -> None:
    played.tables.effects[0] = replace(played.tables.effects[0], amount_minor=900)
    played.moved[0] = replace(played.moved[0], amount_minor=900)
    assert played.wrong() == {"wrong ledger rows": 1}


def test_an_effect_nobody_asked_for_is_wrong(played: Played) -> None:
    played.tables.effects.append(EffectRow(kind="ticket", target="Parcel 77"))
    assert played.wrong() == {"wrong ledger rows": 1}


def test_an_answer_that_tells_of_what_was_not_done_is_wrong(played: Played) -> None:
    played.tables.effects.pop(2)
    assert played.wrong() == {"wrong ledger rows": 1}


@pytest.mark.parametrize("where", ["gaps", "calls_open"])
def test_a_gap_and_a_call_left_open_are_wrong_transcripts(played: Played, where: str) -> None:
    getattr(played.tables, where).append("something")
    assert played.wrong() == {"wrong transcripts": 1}


def test_an_event_of_a_stale_attempt_is_a_wrong_transcript(played: Played) -> None:
    first = played.tables.events[0]
    played.tables.events[0] = replace(first, attempt=2)
    assert played.wrong()["wrong transcripts"] == 1


def test_an_event_that_is_older_than_the_one_before_is_a_wrong_transcript(played: Played) -> None:
    last = played.tables.events[3]
    played.tables.events[3] = replace(last, at=NOON - timedelta(seconds=1))
    assert played.wrong() == {"wrong transcripts": 1}


def test_a_second_end_is_a_wrong_transcript(played: Played) -> None:
    played.tables.events.append(played.tables.events[3])
    assert "wrong transcripts" in played.wrong()


def test_an_end_that_no_event_tells_is_a_wrong_transcript(played: Played) -> None:
    del played.tables.events[3]
    assert played.wrong() == {"wrong transcripts": 1}
