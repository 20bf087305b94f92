"""Whole turns in one process: message, gate, acts, review, router, stop record."""

from collections.abc import Callable

from django.contrib.auth.models import User
from langchain_core.messages import ToolMessage

from agent_core.errors import ModelUnavailable
from agent_core.runs import services, work
from agent_core.runs.models import Call, Conversation, Message, Run, StopRecord
from agent_core.runs.states import CallState, Role, RunState
from reviews.models import Review
from reviews.services import review_approve, review_reject, review_withdraw
from tests.runs.scripting import ScriptedModel

Play = Callable[..., ScriptedModel]
Say = Callable[[str], Run]


def answer(run: Run) -> str:
    """Return the last line that the assistant wrote for a run."""
    found = Message.objects.filter(run=run, role=Role.ASSISTANT).last()
    return found.text if found else ""


def test_a_completed_call_ends_the_turn_with_its_own_text(
    script: Play, say: Say, effects: list[str]
) -> None:
    model = script([("probe_pay", {"amount": "5"})])

    run = say("pay 5")

    assert (run.state, answer(run)) == (RunState.DONE, "Paid 5.")
    assert effects == ["pay 5"]
    assert len(model.requests) == 1
    stop = run.stop
    assert (stop.rule, stop.model_calls_made, stop.model_calls_saved) == ("completed", 1, 1)
    assert stop.done == ["Paid 5"]


def test_a_look_up_goes_back_to_the_model(script: Play, say: Say) -> None:
    model = script([("probe_look", {"key": "Ana"})], "Ana it is")

    run = say("find Ana")

    assert (run.stop.rule, answer(run)) == ("answered", "Ana it is")
    assert model.requests[1][-1].text == "Found Ana."
    assert [call.state for call in run.calls.all()] == [CallState.DONE]


def test_the_providers_repeated_call_ids_are_never_ours(script: Play, say: Say) -> None:
    model = script([("probe_look", {"key": "A"})], [("probe_look", {"key": "B"})], "both found")

    say("find A and B")

    ids = [
        message.tool_call_id for message in model.requests[2] if isinstance(message, ToolMessage)
    ]
    assert len(set(ids)) == 2
    assert "the-provider-repeats-this" not in ids


def test_signs_that_no_row_can_hold_are_marked_and_the_turn_goes_on(script: Play, say: Say) -> None:
    model = script(
        [("probe_look", {"key": "A\x00\ud83d"}), ("probe_look", {"other\x00": "\ud83d"})],
        "half\x00 a \ud83d",
    )

    run = say("find A")

    assert (run.stop.rule, answer(run)) == ("answered", "half\ufffd a \ufffd")
    assert [call.arguments for call in run.calls.order_by("position")] == [
        {"key": "A\ufffd\ufffd"},
        {"other\ufffd": "\ufffd"},
    ]
    assert "Found A\ufffd\ufffd." in [message.text for message in model.requests[1]]


def test_something_remaining_keeps_the_turn_going(
    script: Play, say: Say, effects: list[str]
) -> None:
    script([("probe_pay", {"amount": "5", "remaining": "pay 6"})], [("probe_pay", {"amount": "6"})])

    run = say("pay 5 and 6")

    assert effects == ["pay 5", "pay 6"]
    assert answer(run) == "Paid 5.\n\nPaid 6."
    assert (run.stop.rule, run.stop.model_calls_made) == ("completed", 2)


def test_a_refund_waits_and_goes_on_after_approval(
    script: Play, say: Say, effects: list[str], maria: User
) -> None:
    script([("probe_refund", {"amount": "5"})])
    run = say("refund 5")
    assert (run.state, effects) == (RunState.WAITING, [])
    review = Review.objects.get(run_id=run.pk)

    review_approve(review_id=review.pk, actor=maria, channel="desk")
    run.refresh_from_db()
    assert run.state == RunState.DECIDED
    work.run_work(run.pk)

    run.refresh_from_db()
    assert (run.state, answer(run)) == (RunState.DONE, "Refunded 5.")
    assert effects == ["refund 5 approved"]


def test_of_two_refunds_the_rejected_one_never_runs(
    script: Play, say: Say, effects: list[str], maria: User
) -> None:
    script([("probe_refund", {"amount": "5"}), ("probe_refund", {"amount": "500"})])
    run = say("refund 5 and 500")
    small, large = (Review.objects.get(title=f"Refund {amount}") for amount in ("5", "500"))

    review_reject(review_id=large.pk, actor=maria, channel="desk", sentence="Too much.")
    run.refresh_from_db()
    assert run.state == RunState.WAITING
    review_approve(review_id=small.pk, actor=maria, channel="desk")
    work.run_work(run.pk)

    run.refresh_from_db()
    assert effects == ["refund 5 approved"]
    assert run.stop.rule == "policy_block"
    assert "Refund 500: rejected by Maria. Nothing was done. Reason: Too much." in answer(run)
    assert "Refunded 5." in answer(run)
    assert run.stop.headline.startswith("1 of 2 done")


def test_a_block_at_the_gate_holds_every_effect_of_the_batch(
    script: Play, say: Say, effects: list[str]
) -> None:
    script([("probe_pay", {"amount": "5"}), ("probe_blocked", {"amount": "9"})])

    run = say("pay 5 and 9")

    assert effects == []
    assert run.stop.rule == "policy_block"
    assert "Above your daily limit." in answer(run)


def test_a_twin_in_one_batch_is_not_executed_again(
    script: Play, say: Say, effects: list[str]
) -> None:
    script([("probe_pay", {"amount": "5"}), ("probe_pay", {"amount": "5"})])

    run = say("pay 5")

    assert effects == ["pay 5"]
    applied = [call.outcome["already_applied"] for call in run.calls.all() if call.outcome]
    assert applied == [False, True]
    assert answer(run) == "Paid 5."


def test_a_withdrawn_refund_ends_the_run_without_effect(
    script: Play, say: Say, effects: list[str], tom: User
) -> None:
    script([("probe_refund", {"amount": "5"})])
    run = say("refund 5")

    review_withdraw(review_id=Review.objects.get().pk, actor=tom, channel="chat")
    work.run_work(run.pk)

    run.refresh_from_db()
    assert (run.state, run.stop.rule, effects) == (RunState.DONE, "policy_block", [])


def test_a_tool_that_breaks_ends_the_turn_with_a_plain_sentence(script: Play, say: Say) -> None:
    script([("probe_broken", {"amount": "5"})])

    run = say("break")

    assert run.stop.rule == "fatal"
    text = answer(run)
    assert "E-" in text
    for inner in ("postgres", "RuntimeError", "probe_broken", "exploded"):
        assert inner not in text


def test_after_a_broken_turn_the_next_one_answers_every_call_exactly_once(
    script: Play, say: Say
) -> None:
    model = script([("probe_broken", {"amount": "5"})], "hello")
    say("break")

    say("hello?")

    asked = [
        call["id"] for message in model.requests[1] for call in getattr(message, "tool_calls", [])
    ]
    replies = [
        message.tool_call_id for message in model.requests[1] if isinstance(message, ToolMessage)
    ]
    assert len(asked) == 1
    assert asked == replies


def test_a_model_that_does_not_answer_fails_the_run_in_plain_words(script: Play, say: Say) -> None:
    script(ModelUnavailable("https://inner/api said 429"))

    run = say("hello")

    assert run.state == RunState.FAILED
    assert run.failure_reference in answer(run)
    assert "429" not in answer(run)


def test_a_retry_repeats_no_effect_and_no_question(
    script: Play, say: Say, effects: list[str], tom: User, conversation: Conversation
) -> None:
    script(
        [("probe_pay", {"amount": "5"}), ("probe_broken", {"amount": "1"})],
        ModelUnavailable("down"),
        [("probe_pay", {"amount": "5"}), ("probe_pay", {"amount": "1"})],
    )
    failed = say("pay 5 and break")
    assert failed.state == RunState.FAILED

    again = services.run_retry(run=failed, actor=tom)
    assert services.run_retry(run=failed, actor=tom) == again
    work.run_work(again.pk)

    again.refresh_from_db()
    assert effects == ["pay 5", "pay 1"]
    assert answer(again) == "Paid 5.\n\nPaid 1."
    assert conversation.messages.filter(role=Role.STAFF).count() == 1


def test_a_message_during_a_review_is_its_own_run_and_the_approval_still_works(
    script: Play, say: Say, effects: list[str], maria: User
) -> None:
    model = script([("probe_refund", {"amount": "5"})], "it waits")
    waiting = say("refund 5")

    status = say("what is the status?")
    assert (status.state, answer(status)) == (RunState.DONE, "it waits")
    assert "waits for a person" in str(model.requests[1])

    review_approve(review_id=Review.objects.get().pk, actor=maria, channel="desk")
    work.run_work(waiting.pk)
    waiting.refresh_from_db()
    assert (waiting.state, effects) == (RunState.DONE, ["refund 5 approved"])


def test_the_same_message_sent_twice_is_one_run(
    script: Play, conversation: Conversation, tom: User, effects: list[str]
) -> None:
    from uuid import uuid4

    script([("probe_pay", {"amount": "5"})])
    key = uuid4()
    first = services.message_send(conversation=conversation, sender=tom, text="pay", client_key=key)
    second = services.message_send(
        conversation=conversation, sender=tom, text="pay", client_key=key
    )
    work.run_work(first.pk)
    work.run_work(second.pk)

    assert first == second
    assert effects == ["pay 5"]


def test_what_is_typed_during_a_run_waits_in_line(
    script: Play, conversation: Conversation, tom: User
) -> None:
    script("one", "two")
    first = services.message_send(conversation=conversation, sender=tom, text="one")
    second = services.message_send(conversation=conversation, sender=tom, text="two")
    assert (first.state, second.state) == (RunState.QUEUED, RunState.PENDING)

    work.run_work(second.pk)
    second.refresh_from_db()
    assert second.state == RunState.PENDING
    work.run_work(first.pk)
    second.refresh_from_db()
    assert second.state == RunState.QUEUED


def test_a_cancelled_run_says_what_had_happened(
    script: Play, conversation: Conversation, tom: User
) -> None:
    script("never said")
    run = services.message_send(conversation=conversation, sender=tom, text="hello")

    services.run_cancel(run=run, actor=tom)

    run.refresh_from_db()
    assert (run.state, run.stop.rule) == (RunState.CANCELLED, "cancelled")
    assert "Nothing was done" in answer(run)


def test_card_numbers_in_what_people_type_are_never_stored(
    script: Play, conversation: Conversation, tom: User
) -> None:
    script("no")
    services.message_send(
        conversation=conversation, sender=tom, text="charge 4242 4242 4242 4242 please"
    )

    assert "4242" not in Message.objects.get().text
    assert Call.objects.count() == StopRecord.objects.count() == 0


def test_an_unknown_outcome_is_shown_as_being_checked(script: Play, say: Say) -> None:
    script([("probe_slow", {"amount": "5"})], "It is being checked.")

    run = say("slow")

    assert [call.state for call in run.calls.all()] == [CallState.UNKNOWN]
    assert run.stop.rule == "answered"
    assert run.stop.not_done
