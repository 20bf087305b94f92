"""What the audit keeps of a run: the asking, what a rule refused, and what operators did."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from agent_core.runs import claims, operating, services, work
from agent_core.runs.errors import MessageRefused
from agent_core.runs.models import Conversation, Run
from agent_core.runs.states import RunState
from agent_core.runs.tasks import sweep
from reviews.audit.models import Entry
from reviews.models import Review
from reviews.services import review_reject
from tests.runs.scripting import ScriptedModel

Play = Callable[..., ScriptedModel]
Say = Callable[[str], Run]


def recorded(*fields: str, **where: Any) -> list[Any]:
    """Return these fields of what was recorded, oldest first."""
    rows = Entry.objects.filter(**where).order_by("id").values_list(*fields, flat=len(fields) == 1)
    return list(rows)


def test_a_message_is_recorded_once_however_often_it_arrives(
    script: Play, conversation: Conversation, tom: User
) -> None:
    script("hello")
    key = conversation.pk
    for _time in range(2):
        run = services.message_send(
            conversation=conversation, sender=tom, text="hi", client_key=key
        )

    assert recorded("actor_name", "subject_id", "run_id", action="message.asked") == [
        ("tom", str(run.message_id), run.pk)
    ]


def test_a_refused_message_is_not_recorded(conversation: Conversation, tom: User) -> None:
    with pytest.raises(MessageRefused):
        services.message_send(conversation=conversation, sender=tom, text="  ")

    assert recorded("action") == []


def test_a_step_that_a_rule_refuses_is_recorded_with_the_rule(script: Play, say: Say) -> None:
    script([("probe_blocked", {"amount": "5"}), ("probe_look", {"key": "Ana"})])

    run = say("pay 5")

    (call,) = run.calls.filter(tool="probe_blocked")
    fields = ("actor_kind", "actor_name", "rule", "after", "call_id")
    assert recorded(*fields, action="call.blocked") == [
        ("assistant", "tom", "limit", {"arguments": {"amount": "5"}}, call.pk)
    ]


def test_a_persons_refusal_is_an_entry_of_the_review_alone(
    script: Play, say: Say, maria: User
) -> None:
    script([("probe_refund", {"amount": "5"})])
    run = say("refund 5")
    review_reject(review_id=Review.objects.get().pk, actor=maria, channel="desk", sentence="No.")
    services.run_wake(run.pk)
    work.run_work(run.pk)

    assert "review.rejected" in recorded("action")
    assert "call.blocked" not in recorded("action")


def test_setting_a_run_aside_and_letting_it_go_on_are_recorded(
    conversation: Conversation, tom: User, maria: User
) -> None:
    run = services.message_send(conversation=conversation, sender=tom, text="hi")
    assert claims.run_claim(run.pk, quarantined=False)
    Run.objects.filter(pk=run.pk).update(
        quarantined=True, strikes=2, lease_until=timezone.now() - timedelta(seconds=1)
    )
    sweep()
    run.refresh_from_db()
    assert run.state == RunState.PARKED

    services.run_requeue(run=run, actor=maria)
    services.run_requeue(run=run, actor=maria)

    parked, requeued = "run.parked", "run.requeued"
    assert recorded("reference", "actor_kind", action=parked) == [(run.failure_reference, "task")]
    assert recorded("actor_name", "subject_id", action=requeued) == [("maria", str(run.pk))]


def test_a_push_is_recorded_when_it_moves_something(
    conversation: Conversation, tom: User, maria: User
) -> None:
    run = services.message_send(conversation=conversation, sender=tom, text="hi")
    assert operating.run_push(run_id=run.pk, actor=maria)
    assert claims.run_claim(run.pk, quarantined=False)
    assert not operating.run_push(run_id=run.pk, actor=maria)

    assert recorded("actor_name", action="run.pushed") == ["maria"]
